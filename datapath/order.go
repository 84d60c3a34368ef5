package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/te/frer"
)

// orderLoop is the pair of interfaces by which packets come to be put in order, and go on.
const orderLoop = "srv6order"

const (
	orderEtherType = 0x88b6 // ETH_P_ORDER
	orderHeartbeat = 100 * time.Millisecond
	orderFrame     = 1 << 16
	// orderSilence is how long a flow pauses before any number is taken for the next.
	orderSilence = frer.DefaultReset
)

// Order puts the packets of instances with that setting in order (RFC 9550), in this process:
// programs can't hold packets. While none runs, packets pass as they come.
type Order struct {
	merge  *Merge
	bound  time.Duration
	in     int // packet socket with packets to order
	out    int // packet socket for those in order
	inner  net.HardwareAddr
	queues map[uint16]*orderQueue
	buffer []byte
}

// orderQueue holds the packets of an instance. Numbers of two generations are of no order with each
// other: after a reset the sender may have begun anew.
type orderQueue struct {
	*frer.Orderer[[]byte]
	generation uint16
}

// OpenOrder prepares to put packets in order, none of which is held longer than bound. It is to be
// called in the network namespace of the merge programs, and makes a pair of interfaces there.
// Close it after Run has returned.
func (m *Merge) OpenOrder(bound time.Duration) (*Order, error) {
	pair, err := openLoop(orderLoop)
	if err != nil {
		return nil, err
	}
	// Without an XDP program of its own, the end receives what is redirected to it if it has GRO.
	if err := linux.SetOffload(orderLoop+innerSuffix, linux.GRO, true); err != nil {
		return nil, err
	}
	o := &Order{
		merge: m, bound: bound, inner: pair.address,
		queues: map[uint16]*orderQueue{}, buffer: make([]byte, orderFrame),
	}
	if o.in, err = packetSocket(pair.inner, orderEtherType); err != nil {
		return nil, err
	}
	if o.out, err = packetSocket(pair.outer, 0); err != nil {
		unix.Close(o.in)
		return nil, err
	}
	if err := m.maps["order_port"].Put(uint32(0), uint32(pair.outer)); err != nil {
		return nil, errors.Join(fmt.Errorf("order packets: %w", err), o.Close())
	}
	return o, nil
}

// packetSocket opens a socket for whole frames of an interface; with protocol 0 it receives none.
func packetSocket(index int, protocol uint16) (int, error) {
	network := int(binary.NativeEndian.Uint16([]byte{byte(protocol >> 8), byte(protocol)}))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		network)
	if err != nil {
		return 0, fmt.Errorf("open a packet socket: %w; it needs CAP_NET_RAW", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(network),
		Ifindex: index}); err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("bind a packet socket to interface %d: %w", index, err)
	}
	return fd, nil
}

// Run orders packets until stop is closed.
func (o *Order) Run(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return o.drain()
		default:
		}
		now, err := monotonic()
		if err != nil {
			return err
		}
		if err := o.merge.maps["order_alive"].Put(uint32(0), now); err != nil {
			return fmt.Errorf("order packets: %w", err)
		}
		at := time.Duration(now)
		wait := orderHeartbeat
		for _, queue := range o.queues {
			o.send(queue.Expire(at))
			if due, held := queue.Due(); held {
				wait = min(wait, due-at)
			}
		}
		if err := o.receive(wait); err != nil {
			return err
		}
	}
}

// drain makes packets pass as they come, and gives on what waits for others.
func (o *Order) drain() error {
	if err := o.merge.maps["order_alive"].Put(uint32(0), uint64(0)); err != nil {
		return fmt.Errorf("end ordering: %w", err)
	}
	err := o.receive(orderHeartbeat / 10) // those that were on their way
	for _, queue := range o.queues {
		o.send(queue.Expire(math.MaxInt64))
	}
	return err
}

// receive waits for packets, and takes all there are.
func (o *Order) receive(wait time.Duration) error {
	poll := []unix.PollFd{{Fd: int32(o.in), Events: unix.POLLIN}}
	timeout := unix.NsecToTimespec(int64(max(0, wait)))
	if _, err := unix.Ppoll(poll, &timeout, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("wait for packets to order: %w", err)
	}
	for {
		n, _, err := unix.Recvfrom(o.in, o.buffer, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("receive packets to order: %w", err)
		}
		now, err := monotonic()
		if err != nil {
			return err
		}
		o.push(o.buffer[:n], time.Duration(now))
	}
}

// push takes one packet.
func (o *Order) push(frame []byte, now time.Duration) {
	const note = int(unsafe.Sizeof(orderNote{}))
	if len(frame) < note {
		return
	}
	header := (*orderNote)(unsafe.Pointer(&frame[0]))
	frame = frame[note:]
	l2 := int(header.L2)
	if len(frame) <= l2 || l2 < len(header.Addresses)+2 {
		return
	}
	// To the inner end, with the EtherType that is in front of the IP packet.
	packet := append(make([]byte, 0, len(frame)), o.inner...)
	packet = append(append(packet, loopSource...), frame[l2-2:]...)
	queue := o.queues[header.Instance]
	if queue == nil {
		queue = &orderQueue{frer.NewOrderer[[]byte](o.bound, orderSilence), header.Generation}
		o.queues[header.Instance] = queue
	}
	if header.Generation != queue.generation {
		o.send(queue.Restart())
		queue.generation = header.Generation
	}
	o.send(queue.Push(header.Number, packet, now))
}

// send gives packets to the kernel, as if they came in by the inner end. One that it has no room
// for is lost, as on a wire.
func (o *Order) send(packets [][]byte) {
	for _, p := range packets {
		_ = unix.Send(o.out, p, 0)
	}
}

// Close ends ordering. Without a Run that has returned, packets pass as they come half a second
// later.
func (o *Order) Close() error { return errors.Join(unix.Close(o.in), unix.Close(o.out)) }
