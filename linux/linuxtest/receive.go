package linuxtest

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Receive reads a packet from a socket. The kernel does not go on with a read that a signal
// interrupts if it has a time limit (SO_RCVTIMEO, signal(7)), and the Go runtime sends signals:
// Receive starts again. Its error is EAGAIN once a read has waited for the limit.
func Receive(fd int, buffer []byte) (int, unix.Sockaddr, error) {
	for {
		n, from, err := unix.Recvfrom(fd, buffer, 0)
		if !errors.Is(err, unix.EINTR) {
			return n, from, err
		}
	}
}
