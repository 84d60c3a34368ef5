package subflows

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sextant/config"
)

// Settings are those of the node file; the controller is reached at its socket, and with files that
// are read when it is asked.
func TestSettings(t *testing.T) {
	socket, _ := startController(t)
	to := netip.MustParsePrefix("10.2.0.0/16")
	s, err := settingsOf(&config.Subflows{AfterBytes: 7, Key: make(config.CFLBKey, 16),
		IPv4:       &config.Selector{Fields: "source-port", Radix: 4, Cipher: "feistel"},
		Controller: &config.Scheduler{Socket: socket},
		Rules: []config.SubflowRule{{Name: "a", Destination: to, NextHops: "2,1,3"},
			{Name: "b", Scheduled: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Rules[0], s.Rules[1]
	if s.AfterBytes != 7 || a.Name != "a" || a.Destination != to || a.Scheduled != 0 ||
		!slices.Equal(a.Choices, []int{2, 1, 3}) || a.IPv4 == nil || a.IPv6 != nil ||
		b.Name != "b" || b.Scheduled != 2 || b.Destination.IsValid() {
		t.Errorf("settings are %+v", s)
	}
	by := &scheduler{dial: s.Controller, routes: map[string]string{}}
	given, err := by.give(t.Context(), []Subflow{{Token: 1,
		Local:  netip.MustParseAddrPort("10.0.1.1:0"),
		Remote: netip.MustParseAddrPort("10.0.2.1:443")}})
	if err != nil || len(given) != 1 {
		t.Errorf("given are %+v, %v", given, err)
	}

	token := filepath.Join(t.TempDir(), "token")
	elsewhere := config.Scheduler{Address: "controller:1", TokenFile: token}
	if _, err := clientOf(elsewhere); err == nil || !strings.Contains(err.Error(), token) {
		t.Errorf("without a file of the token: %v", err)
	}
	if err := os.WriteFile(token, []byte("t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := clientOf(elsewhere); err != nil {
		t.Errorf("with a token: %v", err)
	}
	elsewhere.TLS.CA = token
	if _, err := clientOf(elsewhere); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with a CA without certificates: %v", err)
	}
}
