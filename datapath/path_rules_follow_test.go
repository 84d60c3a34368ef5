package datapath

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// Rules follow a cgroup that is made, removed and made again, as systemd makes that of a service;
// while there is none, rules that name it match nothing.
func TestPathRulesFollowCgroup(t *testing.T) {
	newSteeredHost(t, cflb.SourcePort, func(h *steeredHost) {
		outside := linuxtest.OwnCgroup(t)
		service := filepath.Join(outside, "again.service")
		defer func() { must(t, errors.Join(linuxtest.MoveTo(outside), os.Remove(service))) }()
		var want PathSourceCounters
		connect := func(what string, count *uint64) {
			t.Helper()
			_, end := connectSteered(t, unix.SOCK_DGRAM, netip.MustParseAddrPort("192.0.2.1:9"))
			defer end()
			*count++
			if got, err := h.source.Counters(); err != nil || got != want {
				t.Errorf("%s: counted %+v, %v; want %+v", what, got, err, want)
			}
		}
		follow := func(what string, wantChange bool, wantAbsent ...string) {
			t.Helper()
			changed, absent, err := h.source.SetRules([]PathRule{{Cgroup: service,
				Path: steeredPath}})
			if err != nil || changed != wantChange || !slices.Equal(absent, wantAbsent) {
				t.Errorf("%s: changed %v, absent %q, %v; want %v and %q", what, changed, absent,
					err, wantChange, wantAbsent)
			}
		}
		follow("not there", true, service)
		connect("not there", &want.Unmatched)
		must(t, os.Mkdir(service, 0o755))
		follow("made", true)
		connect("made, process outside", &want.Unmatched)
		must(t, linuxtest.MoveTo(service))
		connect("made", &want.Steered)
		follow("as it was", false)
		must(t, errors.Join(linuxtest.MoveTo(outside), os.Remove(service), os.Mkdir(service, 0o755),
			linuxtest.MoveTo(service)))
		connect("made again", &want.Unmatched)
		follow("made again", true)
		connect("made again, and followed", &want.Steered)
	})
}

// Rules change all at once: what both sets steer is steered at every moment between them.
func TestPathRulesChangeAtOnce(t *testing.T) {
	newSteeredHost(t, cflb.SourcePort, func(h *steeredHost) {
		other := PathRule{Destination: netip.MustParsePrefix("198.51.100.0/24")}
		all := PathRule{Path: steeredPath}
		rules := []PathRule{other, other, other, all}
		const sockets = 500
		for range sockets {
			changed := make(chan error)
			go func() {
				_, _, err := h.source.SetRules(rules)
				changed <- err
			}()
			_, end := connectSteered(t, unix.SOCK_DGRAM, netip.MustParseAddrPort("192.0.2.1:9"))
			end()
			must(t, <-changed)
			slices.Reverse(rules)
		}
		got, err := h.source.Counters()
		if want := (PathSourceCounters{Steered: sockets}); err != nil || got != want {
			t.Errorf("counted %+v, %v; want %+v", got, err, want)
		}
	})
}
