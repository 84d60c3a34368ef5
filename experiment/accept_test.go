package experiment

import (
	"io"
	"net"
	"testing"
)

// Each connection gets back what it says, beside others that say nothing, until the listener is
// closed.
func TestAcceptAndEcho(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { Accept(listener, Echo); close(ended) }()
	for range 3 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said := make([]byte, 10_000)
	for i := range said {
		said[i] = byte(i % 251)
	}
	go func() {
		_, _ = conn.Write(said)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	heard, err := io.ReadAll(conn)
	if err != nil || string(heard) != string(said) {
		t.Errorf("%d bytes came back, %v", len(heard), err)
	}
	listener.Close()
	<-ended
}
