package linuxtest

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// HaveRoom lets a socket keep 8 MB that nothing reads meanwhile, whatever net.core.rmem_max is. It
// needs root.
func HaveRoom(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	})
	return errors.Join(err, failed)
}
