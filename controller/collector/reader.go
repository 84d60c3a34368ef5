package collector

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batchMost      = 64       // datagrams of one system call
	maxDatagram    = 9216     // octets; a longer one is dropped
	receiveBuffer  = 32 << 20 // octets that the kernel may hold meanwhile
	batchesPerRead = 4        // that a Reader has under way
)

// message is struct mmsghdr of recvmmsg(2).
type message struct {
	header unix.Msghdr
	length uint32
	_      [4]byte
}

// Batch is the memory of one system call on many datagrams.
type Batch struct {
	count    int
	kind     Source
	home     chan *Batch
	full     uint64 // what the kernel had no room for, since the batch before
	messages [batchMost]message
	vectors  [batchMost]unix.Iovec
	names    [batchMost]unix.RawSockaddrInet6 // fits an IPv4 address, too
	octets   [batchMost][maxDatagram]byte
}

func newBatch() *Batch {
	b := &Batch{}
	for i := range b.messages {
		b.vectors[i].Base = &b.octets[i][0]
		b.vectors[i].SetLen(maxDatagram)
		b.messages[i].header.Iov = &b.vectors[i]
		b.messages[i].header.Iovlen = 1
		b.messages[i].header.Name = (*byte)(unsafe.Pointer(&b.names[i]))
	}
	return b
}

// Done gives the batch back to its reader.
func (b *Batch) Done() { b.home <- b }

// receive fills the batch without waiting.
func (b *Batch) receive(fd uintptr) error {
	for i := range b.messages {
		b.messages[i].header.Namelen = unix.SizeofSockaddrInet6
	}
	b.full = 0
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.messages[0])),
		batchMost, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		b.count = 0
		return errno
	}
	b.count = int(n)
	if b.kind == FromPacket { // reading the statistics clears them
		if s, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET,
			unix.PACKET_STATISTICS); err == nil {
			b.full = uint64(s.Drops)
		}
	}
	return nil
}

// from returns the address that datagram i came from.
func (b *Batch) from(i int) netip.Addr {
	if b.names[i].Family == unix.AF_INET {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(&b.names[i]))
		return netip.AddrFrom4(four.Addr)
	}
	return netip.AddrFrom16(b.names[i].Addr).Unmap()
}

// Moment is a time, in nanoseconds: POSIX time, which can be set, for what is shown, and a steady
// one for how long ago something was.
type Moment struct{ PosixNS, SteadyNS int64 }

// Now is the moment that it is. Steady time begins with the process.
func Now() Moment {
	now := time.Now()
	return Moment{now.UnixNano(), int64(now.Sub(begun))}
}

var begun = time.Now()

// Take gives what is in a batch to the table, which got it at a moment.
func (t *Table) Take(b *Batch, now Moment) {
	nowNS := now.SteadyNS
	t.aheadNS = now.PosixNS - nowNS
	t.Dropped[KernelFull] += b.full
	for i := range b.count {
		m := &b.messages[i]
		octets := b.octets[i][:min(m.length, maxDatagram)]
		switch {
		case m.header.Flags&unix.MSG_TRUNC != 0:
			t.Dropped[Oversized]++
		case b.kind == FromReport:
			t.Datagram(b.from(i), octets, nowNS)
		case b.kind == FromEvent:
			t.Event(octets, nowNS)
		default:
			t.Packet(octets, nowNS)
		}
	}
}

// Reader takes datagrams from a socket, up to 64 per system call.
type Reader struct {
	kind    Source
	what    string // for errors
	socket  io.Closer
	address netip.AddrPort
	raw     syscall.RawConn
	free    chan *Batch
	closed  chan struct{}
}

// Listen opens a UDP socket. Its kernel buffer is as large as the kernel allows: with CAP_NET_ADMIN
// larger than net.core.rmem_max, which is 0.2 MB on most machines and full after some hundred
// reports.
func Listen(at netip.AddrPort) (*Reader, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err
		}
		return nil, fmt.Errorf("listen for reports on UDP %s: %w; choose another address or port",
			at, err)
	}
	r, err := newReader(FromReport, "reports from UDP "+conn.LocalAddr().String(), conn)
	if err != nil {
		return nil, err
	}
	r.address = conn.LocalAddr().(*net.UDPAddr).AddrPort()
	// what the kernel refuses leaves its default, which loses more in bursts
	_ = conn.SetReadBuffer(receiveBuffer)
	_ = r.raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	})
	return r, nil
}

// newReader makes a reader of a socket, which it closes if that fails.
func newReader(kind Source, what string, socket interface {
	syscall.Conn
	io.Closer
}) (*Reader, error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	r := &Reader{kind: kind, what: what, socket: socket, raw: raw,
		free: make(chan *Batch, batchesPerRead), closed: make(chan struct{})}
	for range batchesPerRead {
		b := newBatch()
		b.kind, b.home = kind, r.free
		r.free <- b
	}
	return r, nil
}

// Address is where a reader of reports listens.
func (r *Reader) Address() netip.AddrPort { return r.address }

// Close ends the reader. It is called once.
func (r *Reader) Close() error {
	close(r.closed)
	return r.socket.Close()
}

// Run reads until Close, and gives what comes to out. Each batch is to be given back by its Done.
// The error is what ended it, if it was not Close.
func (r *Reader) Run(out chan<- *Batch) error {
	for {
		var b *Batch
		select {
		case b = <-r.free:
		case <-r.closed:
			return nil
		}
		var received error
		err := r.raw.Read(func(fd uintptr) bool {
			received = b.receive(fd)
			return received != unix.EAGAIN && received != unix.EINTR
		})
		select {
		case <-r.closed:
			return nil
		default:
		}
		switch {
		case received == unix.ENOBUFS && r.kind == FromEvent:
			b.full, received = 1, nil // netlink(7): messages were lost
		case received == unix.ENETDOWN && r.kind == FromPacket:
			received = nil // packet(7): the interface went down, and may come up again
		}
		if err = errors.Join(err, received); err != nil {
			return fmt.Errorf("read %s: %w", r.what, err)
		}
		select {
		case out <- b:
		case <-r.closed:
			return nil
		}
	}
}
