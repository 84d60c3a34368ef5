package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"sextant/config"
)

// Target is where a check connects to, and which way.
type Target struct {
	Service, Backend string
	Address          netip.AddrPort // the VIP and a port
	SID              netip.Addr     // of the backend
	Source           netip.Addr     // of the connection; the zero value: the kernel's choice
	// of the backend's host, who is asked for passive signals; the zero value: nobody
	Agent    netip.AddrPort
	Endpoint config.Endpoint // of the service, by which he is asked
	// by which the kernel routes the connection to the SID; 0: as any other
	Mark uint32
}

// connect opens a TCP connection. Closing it resets it, for all checks of a service share its VIP's
// port, and connections that wait for the end of TIME_WAIT would use up the edge's ports.
func (t Target) connect(ctx context.Context) (*connection, error) {
	c, err := t.open()
	if err == nil {
		if err = c.establish(ctx); err != nil {
			c.Close()
		}
	}
	if err != nil {
		if t.sourceless() {
			err = errSourceless
		}
		return nil, fmt.Errorf("connect to %s at %s: %w", t.Address, t.SID, cause(err))
	}
	return c, nil
}

// sourceless says whether this node has no address of the VIP's family: the kernel then sends IPv4
// from 0.0.0.0, to which nobody answers.
func (t Target) sourceless() bool {
	if t.Source.IsValid() || t.Address.Addr().Is6() {
		return false
	}
	dialer := net.Dialer{Control: func(_, _ string, socket syscall.RawConn) (err error) {
		failed := socket.Control(func(fd uintptr) { err = t.mark(int(fd)) })
		return errors.Join(failed, err)
	}}
	conn, err := dialer.Dial("udp", t.Address.String()) // which sends nothing
	if err != nil {
		return false
	}
	defer conn.Close()
	from, ok := conn.LocalAddr().(*net.UDPAddr)
	return ok && from.IP.IsUnspecified()
}

func (t Target) mark(fd int) error {
	if t.Mark == 0 {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, int(t.Mark)); err != nil {
		return fmt.Errorf("mark a check's socket: %w; run the agent with CAP_NET_ADMIN", err)
	}
	return nil
}

// cause leaves out what the message names itself.
func cause(err error) error {
	var call *os.SyscallError
	var operation *net.OpError
	var file *os.PathError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errTimeout
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &operation):
		return operation.Err
	case errors.As(err, &file):
		return file.Err
	}
	return err
}

var (
	errTimeout    = errors.New("no answer in time")
	errSourceless = errors.New("this node has no IPv4 address to check from; give it one to " +
		"which the hosts have a route, and name it by check.source if it has several")
)
