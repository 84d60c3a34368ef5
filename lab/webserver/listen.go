package webserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// listener is a TCP socket that tells of a connection before it accepts it.
type listener struct {
	*net.TCPListener
	// The same socket once more: package net lends out a listener's descriptor,
	// but not the runtime's way of waiting for it.
	file *os.File
	raw  syscall.RawConn
}

// listen opens a listener whose queue of connections to be accepted holds backlog.
func listen(address string, backlog int) (*listener, error) {
	config := net.ListenConfig{KeepAlive: -1} // saves system calls per connection
	// The server is to look like a common one to the data plane: plain TCP.
	config.SetMultipathTCP(false)
	socket, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	l := &listener{TCPListener: socket.(*net.TCPListener)}
	if err := l.prepare(backlog); err != nil {
		l.Close()
		return nil, fmt.Errorf("emulate: set up the socket of %s: %w", address, err)
	}
	return l, nil
}

func (l *listener) prepare(backlog int) (err error) {
	if l.file, err = l.File(); err != nil {
		return err
	}
	if l.raw, err = l.file.SyscallConn(); err != nil {
		return err
	}
	// Package net listens with net.core.somaxconn; listening again sets it anew.
	return l.control(func(fd int) error {
		return os.NewSyscallError("listen",
			unix.Listen(fd, backlog))
	})
}

// Close closes the socket; connections that wait in its queue are reset.
func (l *listener) Close() error {
	if l.file != nil {
		l.file.Close()
	}
	return l.TCPListener.Close()
}

// wait blocks until there is a connection to accept.
func (l *listener) wait() error {
	return l.raw.Read(func(fd uintptr) bool {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return ready > 0 || err != nil // the error will meet the accept too
	})
}

// queued returns how many connections wait to be accepted.
func (l *listener) queued() (connections int, err error) {
	err = l.control(func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return os.NewSyscallError("getsockopt TCP_INFO", err)
		}
		// in state LISTEN: sk_ack_backlog (tcp_get_info in net/ipv4/tcp.c)
		connections = int(info.Unacked)
		return nil
	})
	return connections, err
}

func (l *listener) control(do func(fd int) error) error {
	var failure error
	if err := l.raw.Control(func(fd uintptr) { failure = do(int(fd)) }); err != nil {
		return err
	}
	return failure
}
