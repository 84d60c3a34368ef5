package httpserver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A socket that can't be is refused with the setting that names it.
func TestSocketsSettingIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("x", 200)) // longer than an address may be
	_, err := Listen("listener", "--telemetry", path, netip.AddrPort{},
		slog.New(slog.DiscardHandler))
	if err == nil || !strings.HasSuffix(err.Error(), "; choose another --telemetry") {
		t.Errorf("a path that is too long: %v", err)
	}
}

// A socket whose file, or folder, is removed is there again, and stops as ever.
func TestSocketThatIsRemovedComesBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	path := filepath.Join(folder, "agent.sock")
	servers, err := Listen("agent", "api.socket", path, netip.AddrPort{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	servers.Serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("here"))
	}), nil)
	ask := func() error {
		c, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		defer c.Close()
		_, _ = c.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		answer, err := io.ReadAll(c)
		if err == nil && !strings.HasSuffix(string(answer), "here") {
			err = fmt.Errorf("answer %q", answer)
		}
		return err
	}
	for _, gone := range []string{path, folder, path} {
		if err := errors.Join(ask(), os.RemoveAll(gone)); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); ask() != nil; time.Sleep(
			10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("without %s: %v", gone, ask())
			}
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("the new socket: %v, %v", info, err)
		}
	}
	servers.Stop()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end the socket is there: %v", err)
	}
	select {
	case err := <-servers.Failed():
		t.Error(err)
	default:
	}
}
