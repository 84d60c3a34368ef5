package telemetry

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestSocketSaysRefused sends to a port where nobody listens any more: that a datagram was refused
// is said with the next one, which is sent all the same.
func TestSocketSaysRefused(t *testing.T) {
	open := func(at string) *net.UDPConn {
		t.Helper()
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*net.UDPConn)
	}
	collector := open("127.0.0.1:0")
	at := collector.LocalAddr().(*net.UDPAddr).AddrPort()
	s := &socket{to: at}
	defer s.close()
	if err := s.write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	collector.Close()
	if err := s.write([]byte("b")); err != nil {
		t.Fatalf("before the kernel can know: %v", err)
	}
	collector = open(at.String())
	defer collector.Close()
	if err := s.write([]byte("c")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("behind a datagram that was refused: %v", err)
	}
	if err := s.write([]byte("d")); err != nil {
		t.Errorf("to a collector that is back: %v", err)
	}
	got := ""
	for b := make([]byte, 9); len(got) < 2; {
		if err := collector.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, _, err := collector.ReadFrom(b)
		if err != nil {
			t.Fatalf("came %q: %v", got, err)
		}
		got += string(b[:n])
	}
	if got != "cd" {
		t.Errorf("the collector that is back got %q", got)
	}
}
