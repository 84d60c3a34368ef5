package kernelfib

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
)

// socket is one of route netlink. It is for one goroutine, but for close.
type socket struct {
	file   *os.File // lets the runtime wait, so that close ends a read
	seq    uint32
	buffer []byte
}

// receiveBuffer is how much the kernel keeps for a socket that is slow: twice what 100,000 routes
// of one next hop object take.
const receiveBuffer = 64 << 20

func openSocket(groups ...int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	s := &socket{file: os.NewFile(uintptr(fd), "netlink"), buffer: make([]byte, 1<<18)}
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	// The kernel tells what it does not like, answers errors without the request, and dumps no
	// other table than the one asked for.
	for _, option := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK,
		unix.NETLINK_GET_STRICT_CHK} {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_NETLINK, option, 1))
	}
	for _, group := range groups {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP,
			group))
	}
	// else more is asked anew
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
	if err != nil {
		s.file.Close()
		return nil, fmt.Errorf("set up a netlink socket: %w", err)
	}
	return s, nil
}

func (s *socket) close() { s.file.Close() }

// control runs a system call as often as it takes; read waits for the socket to be readable, else
// writable.
func (s *socket) control(read bool, call func(fd int) error) error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	wait, failed := raw.Write, error(nil)
	if read {
		wait = raw.Read
	}
	err = wait(func(fd uintptr) bool {
		failed = call(int(fd))
		return failed != unix.EAGAIN
	})
	return errors.Join(err, failed)
}

func (s *socket) send(b []byte) error {
	return s.control(false, func(fd int) error {
		return unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	})
}

// receive returns what the kernel sent at once, valid until the next call. An error that wraps
// ENOBUFS says that messages were lost.
func (s *socket) receive() (b []byte, err error) {
	err = s.control(true, func(fd int) error {
		n, from, err := unix.Recvfrom(fd, s.buffer, 0)
		if err != nil {
			return err
		}
		b = s.buffer[:n]
		if a, ok := from.(*unix.SockaddrNetlink); !ok || a.Pid != 0 {
			b = nil // not the kernel's
		}
		return nil
	})
	return b, err
}

// drain drops what the kernel has sent, until nothing is left, which ends a dump that runs. Once
// there was no room for a message, the kernel leaves out all that follow until then, without a
// sign; and what it sent before may be of routes whose end it left out.
func (s *socket) drain() error {
	return s.control(true, func(fd int) error {
		for {
			_, _, err := unix.Recvfrom(fd, s.buffer, 0)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return nil
			case err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR):
				return err
			}
		}
	})
}

// patience bounds how long the kernel takes to answer.
const patience = 30 * time.Second

// refusal is what the kernel says of a request; nil: it was done. ok is false if the message is of
// another kind.
func refusal(h rtnetlink.Header, body []byte) (ok bool, err error) {
	answer, ok := rtnetlink.AnswerIn(h, body)
	switch {
	case !ok || answer.Errno == 0:
		return ok, nil
	case answer.Text == "":
		return true, unix.Errno(answer.Errno)
	}
	return true, fmt.Errorf("%w (%s)", unix.Errno(answer.Errno), answer.Text)
}
