package health

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// connection is a TCP connection of a check. It is a [net.Conn] of the few system calls that a
// check needs.
type connection struct {
	*os.File
	from    netip.Addr // the zero value: the kernel's choice
	to      netip.AddrPort
	unwatch func() bool // has the end of its context no longer end what waits
	again   bool        // it was asked before, and there is no answer to what it was asked now
}

// open begins to connect.
func (t Target) open() (*connection, error) {
	family := unix.AF_INET6
	if t.Address.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err = t.prepare(fd); err == nil {
		err = unix.Connect(fd, sockaddr(t.Address))
		if err == unix.EADDRNOTAVAIL && (t.Source.IsValid() || family == unix.AF_INET) {
			err = errPorts // bind, or the kernel, found the address
		}
	}
	if err != nil && err != unix.EINPROGRESS {
		_ = unix.Close(fd)
		return nil, err
	}
	return &connection{File: os.NewFile(uintptr(fd), "check"), from: t.Source, to: t.Address}, nil
}

// prepare has the socket take its way, and end by RST. Its port is chosen when it connects, so that
// those of other destinations can have the same one.
func (t Target) prepare(fd int) error {
	err := errors.Join(t.mark(fd), unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER,
		&unix.Linger{Onoff: 1}))
	if err == nil && t.Source.IsValid() {
		err = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err == nil {
			err = unix.Bind(fd, sockaddr(netip.AddrPortFrom(t.Source, 0)))
		}
	}
	return err
}

// establish waits until the connection is there, or ctx ends.
func (c *connection) establish(ctx context.Context) error {
	c.watch(ctx)
	socket, err := c.SyscallConn()
	if err != nil {
		return err
	}
	to := sockaddr(c.to)
	waitErr := socket.Write(func(fd uintptr) bool {
		err = unix.Connect(int(fd), to) // tells what became of it
		if err == unix.EISCONN {
			err = nil
		}
		return err != unix.EALREADY && err != unix.EINPROGRESS && err != unix.EINTR
	})
	if waitErr != nil {
		return waitErr
	}
	return err
}

// watch has what waits end with ctx.
func (c *connection) watch(ctx context.Context) {
	c.unwatch = context.AfterFunc(ctx, func() { _ = c.SetDeadline(past) })
}

// past is a deadline that is over.
var past = time.Unix(0, 1)

// quiet says whether the connection is there, and nothing has come that is not read.
func (c *connection) quiet() bool {
	var octet [1]byte
	var err error
	return c.control(func(fd int) { _, err = unix.Read(fd, octet[:]) }) && err == unix.EAGAIN
}

// acknowledged says whether the peer has what was sent. What it sent before acknowledges nothing,
// and so is no answer, even if it comes later.
func (c *connection) acknowledged() bool {
	left := 0
	var err error
	return c.control(func(fd int) { left, err = unix.IoctlGetInt(fd, unix.SIOCOUTQ) }) &&
		err == nil && left == 0
}

func (c *connection) control(do func(fd int)) bool {
	socket, err := c.SyscallConn()
	return err == nil && socket.Control(func(fd uintptr) { do(int(fd)) }) == nil
}

// Close is that of [net.Conn].
func (c *connection) Close() error {
	c.unwatch()
	return c.File.Close()
}

// Read is that of [net.Conn]. A deadline that is over is the error that TLS can go on after.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = os.ErrDeadlineExceeded
	}
	if c.again && n > 0 {
		if c.again = false; !c.acknowledged() {
			return 0, errStale
		}
	}
	return n, err
}

// LocalAddr is that of [net.Conn].
func (c *connection) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 0))
}

// RemoteAddr is that of [net.Conn].
func (c *connection) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

var (
	errPorts = errors.New("no port is free to connect from")
	errStale = errors.New("the connection of earlier checks is of no use any more")
)

// Unmade says whether it was for want of something on this machine that the check failed, or was
// not even made: it says nothing of the backend.
func (r Result) Unmade() bool {
	if errors.Is(r.Err, errPorts) {
		return true
	}
	for _, want := range []syscall.Errno{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM} {
		if errors.Is(r.Err, want) {
			return true
		}
	}
	return false
}
