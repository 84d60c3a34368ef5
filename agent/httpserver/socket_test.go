package httpserver

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
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
