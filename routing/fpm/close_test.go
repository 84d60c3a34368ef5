package fpm

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"
)

// A client that was taken off the listener just before the server ended is not served: nothing
// would end its session.
func TestNoClientBehindClose(t *testing.T) {
	s, err := Listen(t.Context(), Options{Listen: netip.MustParseAddrPort("127.0.0.1:0"),
		Tables: func(uint32) bool { return true }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	ours, zebra := net.Pipe()
	defer zebra.Close()
	if err := zebra.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if s.begin(ours) || s.State().Sessions > 0 {
		t.Error("it has a session")
	}
	if _, err := zebra.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed: %v", err)
	}
}
