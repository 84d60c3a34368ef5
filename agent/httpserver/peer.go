package httpserver

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// withPeer says who is at the other end of a Unix socket, as the kernel knows it.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if bounded, ok := c.(*boundedConn); ok {
		c = bounded.Conn
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return ctx
	}
	var peer *unix.Ucred
	var failure error
	err = raw.Control(func(fd uintptr) {
		peer, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failure != nil {
		return ctx
	}
	id := strconv.FormatUint(uint64(peer.Uid), 10)
	name := "uid " + id
	if u, err := user.LookupId(id); err == nil {
		name = u.Username
	}
	return api.WithCaller(ctx, fmt.Sprintf("%s (process %d)", name, peer.Pid))
}
