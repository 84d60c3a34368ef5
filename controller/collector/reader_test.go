package collector

import (
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReceiveBuffer: with the privilege for it, the kernel holds as many octets as asked for,
// whatever net.core.rmem_max is. It counts its own memory in, and says twice as much (socket(7)).
func TestReceiveBuffer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("without CAP_NET_ADMIN the buffer is net.core.rmem_max")
	}
	r, err := Listen(netip.MustParseAddrPort("[::1]:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	size := 0
	control := r.raw.Control(func(fd uintptr) {
		size, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	})
	if control != nil || err != nil {
		t.Fatal(control, err)
	}
	if size != 2*receiveBuffer {
		t.Errorf("%d octets, want %d", size, 2*receiveBuffer)
	}
}
