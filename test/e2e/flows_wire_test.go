package e2e_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/lab"
)

const (
	// flowWindow is how many packets are under way at most: a ring of a virtual interface with an
	// XDP program has 256 places.
	flowWindow = 128
	// flowStall is for how long nothing may come before what is under way is taken for lost.
	flowStall = 2 * time.Second
	etherSize = 14
	outerSize = 40
	kinds     = 2 // of packets of a flow: one that opens it, one that follows
)

// flowWire sends packets of flows as frames to the edge, and takes what leaves it. Packets have
// numbers, by which they are known again.
type flowWire struct {
	t             *testing.T
	lab           *lab.Lab
	in, out       int // sockets
	to            *unix.SockaddrLinklayer
	started, done atomic.Int32 // changes
	received      atomic.Int64 // packets of this pass, each counted once
	frame         [128]byte

	mutex   sync.Mutex
	base    uint32 // number of the first packet of the pass
	flows   []flow
	sights  []flowSight // by packet of the pass
	strange []string
}

// flowSight is a packet that left the edge.
type flowSight struct {
	ids           [6]uint16
	sent, started int32 // changes that were done when it was sent; that had begun when it came
	was, came     bool
}

func newFlowWire(a *agents) *flowWire {
	w := &flowWire{t: a.t, lab: a.lab, to: &unix.SockaddrLinklayer{Halen: 6}}
	inside(a.t, a.lab, "edge", func() error {
		link, err := netlink.LinkByName("client")
		if err == nil {
			copy(w.to.Addr[:], link.Attrs().HardwareAddr)
		}
		return err
	})
	w.in = w.open("client", 0)
	w.out = w.open("core", unix.ETH_P_IPV6)
	over, ended := atomic.Bool{}, make(chan struct{})
	go func() {
		defer close(ended)
		frame := make([]byte, 2048)
		for !over.Load() {
			if n, _, err := unix.Recvfrom(w.out, frame, 0); err == nil {
				w.sight(frame[:n])
			}
		}
	}()
	a.t.Cleanup(func() {
		over.Store(true)
		<-ended
		unix.Close(w.in)
		unix.Close(w.out)
	})
	return w
}

// open opens a socket for frames of a node's interface.
func (w *flowWire) open(node string, protocol uint16) (fd int) {
	inside(w.t, w.lab, node, func() error {
		d, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		w.to.Ifindex = d.Index
		if protocol == 0 {
			return nil
		}
		return errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
				&unix.Timeval{Usec: 100_000}),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8,
				Ifindex: d.Index}))
	})
	return fd
}

// packet is one of a flow: of TCP a SYN, then an ACK, of UDP a datagram. What the edge does not
// read has its number.
func (w *flowWire) packet(f *flow, kind int, number uint32) []byte {
	next, size := byte(unix.IPPROTO_TCP), 20
	if f.service.protocol == "udp" {
		next, size = unix.IPPROTO_UDP, 12
	}
	order := binary.BigEndian
	b := append(w.frame[:0], w.to.Addr[:6]...)
	b = append(b, 2, 0, 0, 0, 0, 9)
	if f.client.Is4() {
		b = append(b, 8, 0, 0x45, 0, 0, byte(20+size), 0, 1, 0x40, 0, 64, next, 0, 0)
	} else {
		b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0, 0, byte(size), next, 64)
	}
	b = append(append(b, f.client.AsSlice()...), f.service.vip.AsSlice()...)
	if f.client.Is4() {
		sum := uint32(0)
		for i := 0; i < 20; i += 2 {
			sum += uint32(order.Uint16(b[etherSize+i:]))
		}
		sum = sum&0xffff + sum>>16
		order.PutUint16(b[etherSize+10:], ^uint16(sum+sum>>16))
	}
	b = order.AppendUint16(order.AppendUint16(b, f.port), f.service.port())
	if next == unix.IPPROTO_UDP {
		return order.AppendUint32(append(b, 0, byte(size), 0, 0), number)
	}
	flags := byte(0x02) // SYN
	if kind == 1 {
		flags = 0x10
	}
	return append(order.AppendUint32(b, number), 0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0)
}

func (w *flowWire) send(f *flow, kind int, number uint32) {
	for {
		err := unix.Sendto(w.in, w.packet(f, kind, number), 0, w.to)
		if err == nil {
			return
		}
		if err != unix.ENOBUFS && err != unix.EINTR {
			w.t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// sight takes a frame that has left the edge.
func (w *flowWire) sight(frame []byte) {
	if len(frame) < etherSize+outerSize+32 || frame[etherSize+24] != 0xfc {
		return // what neighbors tell each other
	}
	outer := frame[etherSize:]
	inner := outer[outerSize:]
	var src, dst netip.Addr
	var upper []byte
	next := byte(0)
	switch {
	case outer[6] == unix.IPPROTO_IPV6 && len(inner) >= 52:
		src, dst = netip.AddrFrom16([16]byte(inner[8:24])), netip.AddrFrom16([16]byte(inner[24:40]))
		next, upper = inner[6], inner[40:]
	case outer[6] == unix.IPPROTO_IPIP:
		src, dst = netip.AddrFrom4([4]byte(inner[12:16])), netip.AddrFrom4([4]byte(inner[16:20]))
		next, upper = inner[9], inner[20:]
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if upper == nil {
		w.strange = append(w.strange, fmt.Sprintf("%x", frame))
		return
	}
	order := binary.BigEndian
	number := order.Uint32(upper[4:])
	if next == unix.IPPROTO_UDP {
		number = order.Uint32(upper[8:])
	}
	i := int(number - w.base)
	if i >= len(w.sights) {
		w.strange = append(w.strange, fmt.Sprintf("number %d from %v to %v", i, src, dst))
		return
	}
	f, s := &w.flows[i/kinds], &w.sights[i]
	if src != f.client || dst != f.service.vip || order.Uint16(upper) != f.port ||
		order.Uint16(upper[2:]) != f.service.port() || !s.was {
		w.strange = append(w.strange, fmt.Sprintf("number %d from %v to %v, not of %v", i, src, dst,
			f))
		return
	}
	if s.came {
		return // it was sent again
	}
	s.came, s.started = true, w.started.Load()
	for place := range s.ids {
		s.ids[place] = order.Uint16(outer[28+2*place:])
	}
	w.received.Add(1)
}

// pass sends the flows' packets, each until it has come, and returns what came of them: not that of
// flows that are left out.
func (w *flowWire) pass(flows []flow, leaveOut func(*flow) bool) []flowSight {
	w.mutex.Lock()
	w.base += uint32(len(w.sights))
	sights := make([]flowSight, kinds*len(flows))
	w.flows, w.sights = flows, sights
	w.received.Store(0)
	w.mutex.Unlock()
	sent := int64(0)
	for range 5 {
		dropped := w.dropped()
		taken := int64(0) // for lost
		missing := 0
		for i := range sights {
			f, s := &flows[i/kinds], &sights[i]
			w.mutex.Lock()
			came := s.came
			if !s.was && !leaveOut(f) && (i%kinds == 0 || f.service.protocol == "tcp") {
				s.was, s.sent = true, w.done.Load()
				sent++
			}
			w.mutex.Unlock()
			if !s.was || came {
				continue
			}
			missing++
			w.send(f, i%kinds, w.base+uint32(i))
			if sent-w.received.Load()-taken >= flowWindow &&
				!w.await(sent-taken-flowWindow/2, flowStall) {
				taken = sent - w.received.Load()
			}
		}
		if missing == 0 {
			return sights
		}
		for deadline := time.Now().Add(patience); !w.await(sent, flowStall); {
			if w.dropped() > dropped {
				break // and is sent again
			}
			if time.Now().After(deadline) {
				return sights
			}
		}
	}
	return sights
}

// await waits until so many packets have come; false: nothing came for a time.
func (w *flowWire) await(packets int64, stall time.Duration) bool {
	last, since := w.received.Load(), time.Now()
	for last < packets {
		time.Sleep(20 * time.Microsecond)
		if now := w.received.Load(); now > last {
			last, since = now, time.Now()
		} else if time.Since(since) > stall {
			return false
		}
	}
	return true
}

// dropped is what interfaces and the socket have lost on the way.
func (w *flowWire) dropped() (packets uint64) {
	return lostBy(w.t, w.lab, "client", "edge", "core")
}
