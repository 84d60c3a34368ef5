package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
)

// News has a value when the kernel has told groups of route netlink (RTNLGRP_) something that
// concerns the caller (nil: all does), until ctx ends. It is of the current network namespace. News
// that nobody has taken are one. They say only that something may be different, so who takes
// them asks the kernel how it is now; and so they come, too, when the kernel told more than it
// keeps for a reader.
func News(ctx context.Context, concerns func(h rtnetlink.Header, body []byte) bool,
	groups ...uint) (<-chan struct{}, error) {
	socket, err := hearing(groups)
	if err != nil {
		return nil, fmt.Errorf("hear from the kernel what changes: %w", err)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("hear from the kernel what changes: %w", err)
	}
	context.AfterFunc(ctx, func() { socket.Close() })
	n := &news{told: make(chan struct{}, 1), concerns: concerns, buffer: make([]byte, 1<<16)}
	go n.read(raw)
	return n.told, nil
}

func hearing(groups []uint) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	socket, address := os.NewFile(uintptr(fd), "netlink"),
		&unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	for _, group := range groups {
		address.Groups |= 1 << (group - 1)
	}
	if err := unix.Bind(fd, address); err != nil {
		socket.Close()
		return nil, err
	}
	return socket, nil
}

type news struct {
	told     chan struct{}
	concerns func(h rtnetlink.Header, body []byte) bool
	buffer   []byte
	lost     bool // messages, since the socket was empty last
}

// read reads until the socket is closed. Once the kernel has said that messages were lost, it loses
// more silently until the socket is empty: what was lost is told then.
func (n *news) read(raw syscall.RawConn) {
	for {
		var size int
		var failed error
		if err := raw.Read(func(fd uintptr) bool {
			size, _, failed = unix.Recvfrom(int(fd), n.buffer, 0)
			if failed == unix.EAGAIN && n.lost {
				n.lost = false
				n.tell()
			}
			return failed != unix.EAGAIN
		}); err != nil {
			return
		}
		switch {
		case failed == nil:
			n.take(n.buffer[:size])
		case errors.Is(failed, unix.ENOBUFS):
			n.lost = true
		default: // as good as lost; asked again without haste
			n.lost = true
			time.Sleep(time.Second)
		}
	}
}

func (n *news) take(messages []byte) {
	for len(messages) > 0 {
		h, body, rest, err := rtnetlink.Next(messages)
		if err != nil || n.concerns == nil || n.concerns(h, body) {
			n.tell()
			return
		}
		messages = rest
	}
}

func (n *news) tell() {
	select {
	case n.told <- struct{}{}:
	default: // those before are not taken yet
	}
}
