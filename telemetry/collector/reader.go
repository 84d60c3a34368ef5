package collector

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
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

// receive fills the batch without waiting.
func (b *Batch) receive(fd uintptr) error {
	for i := range b.messages {
		b.messages[i].header.Namelen = unix.SizeofSockaddrInet6
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.messages[0])),
		batchMost, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		b.count = 0
		return errno
	}
	b.count = int(n)
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

// Take gives the datagrams of a batch to the table, which got them at a time (nanoseconds of POSIX
// time).
func (t *Table) Take(b *Batch, nowNS int64) {
	for i := range b.count {
		m := &b.messages[i]
		if m.header.Flags&unix.MSG_TRUNC != 0 {
			t.Dropped[Oversized]++
			continue
		}
		t.Datagram(b.from(i), b.octets[i][:m.length], nowNS)
	}
}

// Reader takes datagrams from a UDP socket, up to 64 per system call.
type Reader struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	batches chan *Batch
	free    chan *Batch
	failed  chan error
	closed  chan struct{}
}

// Listen opens a UDP socket. Its kernel buffer is as large as the kernel allows.
func Listen(at netip.AddrPort) (*Reader, error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		var call *os.SyscallError
		if errors.As(err, &call) {
			err = call.Err
		}
		return nil, fmt.Errorf("listen for reports on UDP %s: %w; choose another address or port",
			at, err)
	}
	r := &Reader{conn: conn, batches: make(chan *Batch, batchesPerRead),
		free: make(chan *Batch, batchesPerRead), failed: make(chan error, 1),
		closed: make(chan struct{})}
	// what the kernel refuses leaves its default, which loses more in bursts
	_ = conn.SetReadBuffer(receiveBuffer)
	if r.raw, err = conn.SyscallConn(); err != nil {
		conn.Close()
		return nil, err
	}
	for range batchesPerRead {
		r.free <- newBatch()
	}
	return r, nil
}

// Address is where the reader listens.
func (r *Reader) Address() netip.AddrPort {
	return r.conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// Batches yields what comes. Each batch is to be given back by Done.
func (r *Reader) Batches() <-chan *Batch { return r.batches }

// Done gives a batch back.
func (r *Reader) Done(b *Batch) { r.free <- b }

// Failed yields the error that ended Run, if it was not Close.
func (r *Reader) Failed() <-chan error { return r.failed }

// Close ends the reader. It is called once.
func (r *Reader) Close() error {
	close(r.closed)
	return r.conn.Close()
}

// Run reads until Close.
func (r *Reader) Run() {
	for {
		var b *Batch
		select {
		case b = <-r.free:
		case <-r.closed:
			return
		}
		var received error
		err := r.raw.Read(func(fd uintptr) bool {
			received = b.receive(fd)
			return received != unix.EAGAIN && received != unix.EINTR
		})
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err = errors.Join(err, received); err != nil {
			r.failed <- fmt.Errorf("read reports from UDP %s: %w", r.Address(), err)
			return
		}
		r.batches <- b // has room for all there are
	}
}
