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
	target  Target
	to      unix.Sockaddr
	unwatch func() bool // has the end of its context no longer end what waits
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
	to := sockaddr(t.Address)
	if err = t.prepare(fd); err == nil {
		err = unix.Connect(fd, to)
		if err == unix.EADDRNOTAVAIL && (t.Source.IsValid() || family == unix.AF_INET) {
			err = errPorts // bind, or the kernel, found the address
		}
	}
	if err != nil && err != unix.EINPROGRESS {
		_ = unix.Close(fd)
		return nil, err
	}
	return &connection{File: os.NewFile(uintptr(fd), "check"), target: t, to: to}, nil
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
	c.unwatch = context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(0, 1)) })
	socket, err := c.SyscallConn()
	if err != nil {
		return err
	}
	waitErr := socket.Write(func(fd uintptr) bool {
		err = unix.Connect(int(fd), c.to) // tells what became of it
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

// Close is that of [net.Conn].
func (c *connection) Close() error {
	c.unwatch()
	return c.File.Close()
}

// LocalAddr is that of [net.Conn].
func (c *connection) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.target.Source, 0))
}

// RemoteAddr is that of [net.Conn].
func (c *connection) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.target.Address) }

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

var errPorts = errors.New("no port is free to connect from")

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
