package linkemu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Both directions of a socket's memory: 10,000 frames of 1,500 bytes and what the kernel adds.
const socketMemory = 32 << 20

// openPacket opens a socket that receives what the interface receives, but not what it sends, and
// sends without a queueing discipline.
func openPacket(iface string) (fd int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open a packet socket on interface %s: %w", iface, err)
		}
	}()
	device, err := net.InterfaceByName(iface)
	if err != nil {
		return -1, err
	}
	// Protocol 0 receives nothing until bind says what, so that nothing of other interfaces comes
	// first.
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, socketMemory},
		{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, socketMemory},
	} {
		if err := unix.SetsockoptInt(fd, option.level, option.name, option.value); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	everything := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}) // in network order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything,
		Ifindex: device.Index}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// overruns reads how many frames the kernel has dropped because the socket's memory was full, since
// the last call.
func overruns(fd int) uint64 {
	stats, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(stats.Drops)
}

// batchMost is how many frames one system call takes.
const batchMost = 64

// message is struct mmsghdr of recvmmsg(2).
type message struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

// controlRoom holds a timestamp (cmsg(3)).
const controlRoom = 64

// batch is the memory of one system call on many frames.
type batch struct {
	messages [batchMost]message
	vectors  [batchMost]unix.Iovec
	controls [batchMost][controlRoom]byte
}

func newBatch() *batch {
	b := &batch{}
	for i := range b.messages {
		b.messages[i].header.Iov = &b.vectors[i]
		b.messages[i].header.Iovlen = 1
	}
	return b
}

// put makes data the room or the content of message i.
func (b *batch) put(i int, data []byte) {
	b.vectors[i].Base = &data[0]
	b.vectors[i].SetLen(len(data))
}

// receive reads frames into the first messages, without waiting.
func (b *batch) receive(fd, count int) (int, error) {
	for i := range count {
		b.messages[i].header.Control = &b.controls[i][0]
		b.messages[i].header.SetControllen(controlRoom)
	}
	return b.call(unix.SYS_RECVMMSG, fd, count)
}

// send sends the first messages, as many as can be sent without waiting.
func (b *batch) send(fd, count int) (int, error) {
	for i := range count {
		b.messages[i].header.Control = nil
		b.messages[i].header.SetControllen(0)
	}
	return b.call(unix.SYS_SENDMMSG, fd, count)
}

func (b *batch) call(number uintptr, fd, count int) (int, error) {
	first := uintptr(unsafe.Pointer(&b.messages[0]))
	n, _, errno := unix.RawSyscall6(number, uintptr(fd), first, uintptr(count), unix.MSG_DONTWAIT,
		0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// at is when the kernel received message i, by the wall clock; now if it does not tell.
func (b *batch) at(i int, now time.Duration) time.Duration {
	header := (*unix.Cmsghdr)(unsafe.Pointer(&b.controls[i][0]))
	if b.messages[i].header.Controllen == 0 || header.Level != unix.SOL_SOCKET ||
		header.Type != unix.SO_TIMESTAMPNS {
		return now
	}
	stamp := (*unix.Timespec)(unsafe.Pointer(&b.controls[i][unix.SizeofCmsghdr]))
	return time.Duration(stamp.Nano())
}

// truncated tells that message i was longer than its room.
func (b *batch) truncated(i int) bool { return b.messages[i].header.Flags&unix.MSG_TRUNC != 0 }

// poller waits for sockets, to the nanosecond.
type poller struct {
	fd     int
	events [batchMost]unix.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an epoll instance: %w", err)
	}
	return &poller{fd: fd}, nil
}

// add waits for a descriptor too, and calls it by a number.
func (p *poller) add(fd, number int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(number)}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("wait for a socket: %w", err)
	}
	return nil
}

// wait returns what is ready, after the timeout at the latest; a negative one never ends
// (epoll_pwait2(2), Linux 5.11).
func (p *poller) wait(timeout time.Duration) ([]unix.EpollEvent, error) {
	var limit *unix.Timespec
	if timeout >= 0 {
		limit = new(unix.NsecToTimespec(int64(timeout)))
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd),
		uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)),
		uintptr(unsafe.Pointer(limit)), 0, 0)
	if errno != 0 && !errors.Is(errno, unix.EINTR) {
		return nil, fmt.Errorf("wait for frames: %w; this needs Linux 5.11 or newer", errno)
	}
	if errno != 0 {
		return nil, nil
	}
	return p.events[:n], nil
}
