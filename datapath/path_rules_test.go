package datapath

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/cflb"
)

// The first rule whose conditions all hold decides: by destination, port, protocol, user, command
// and cgroup, and one without a path leaves connections alone.
func TestPathRules(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	root, _, err := linux.CgroupRoot()
	must(t, err)
	other := filepath.Join(root, "sextant-test-rules")
	group, err := linux.CreateCgroup(other)
	must(t, err)
	defer func() { must(t, group.Remove()) }()
	text, err := os.ReadFile("/proc/thread-self/comm")
	must(t, err)
	command := strings.TrimSpace(string(text))
	me, nobody := uint32(os.Geteuid()), uint32(65534)
	path := func(index int) []cflb.Hop { return []cflb.Hop{{HopLimit: 64, Index: index}} }
	prefix := netip.MustParsePrefix
	newSteeredHost(t, cflb.SourcePort, func(h *steeredHost) {
		own := linuxtest.OwnCgroup(t)
		to := func(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
		h.reload(t, own, PathRule{Destination: prefix("192.0.2.128/25"), Path: path(1)},
			PathRule{Destination: prefix("2001:db8:0:1::/63"), Path: path(2)},
			PathRule{PortsFirst: 443, PortsLast: 445, Protocol: 6},
			PathRule{PortsFirst: 443, PortsLast: 443, Path: path(3)},
			PathRule{PortsFirst: 1, PortsLast: 79, User: &nobody, Path: path(0)},
			PathRule{PortsFirst: 1, PortsLast: 79, User: &me, Cgroup: other, Path: path(0)},
			PathRule{PortsFirst: 1, PortsLast: 69, User: &me, Cgroup: own, Path: path(2)},
			PathRule{PortsFirst: 1, PortsLast: 79, Command: "nothing"},
			PathRule{PortsFirst: 1, PortsLast: 79, Command: command, Path: path(1)})
		for _, c := range []struct {
			to     string
			kind   int
			choice int // -1: left alone
		}{
			{"192.0.2.200:80", unix.SOCK_DGRAM, 1}, {"192.0.2.1:80", unix.SOCK_DGRAM, -1},
			{"[2001:db8:0:1::9]:80", unix.SOCK_STREAM, 2},
			{"[2001:db8::9]:80", unix.SOCK_STREAM, 2},
			{"[2001:db8:0:2::9]:80", unix.SOCK_STREAM, -1},
			{"192.0.2.1:443", unix.SOCK_STREAM, -1}, {"192.0.2.1:443", unix.SOCK_DGRAM, 3},
			{"192.0.2.1:444", unix.SOCK_DGRAM, -1}, {"192.0.2.1:446", unix.SOCK_STREAM, -1},
			{"192.0.2.1:69", unix.SOCK_DGRAM, 2}, {"[2001:db8:9::9]:79", unix.SOCK_DGRAM, 1},
		} {
			for range 8 { // a port that is taken by chance names the choice once in four
				from, end := connectSteered(t, c.kind, to(c.to))
				if end == nil {
					t.Fatalf("no connection to %s", c.to)
				}
				defer end()
				if c.choice < 0 {
					continue
				}
				p := cflb.Packet{Src: from.Addr(), Dst: to(c.to).Addr(), HasPorts: true,
					Protocol: map[int]uint8{unix.SOCK_DGRAM: 17, unix.SOCK_STREAM: 6}[c.kind],
					SrcPort:  from.Port(), DstPort: to(c.to).Port(), HopLimit: 64}
				if digit, _, _ := h.config.IPv4.Digit(p, 7); digit != c.choice {
					t.Errorf("%s takes %d, want %d", c.to, digit, c.choice)
				}
			}
		}
		got, err := h.source.Counters()
		must(t, err)
		if want := (PathSourceCounters{Steered: 6 * 8, Unmatched: 5 * 8}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	})
}

// reload steers by other rules from now on.
func (h *steeredHost) reload(t *testing.T, cgroup string, rules ...PathRule) {
	t.Helper()
	h.source.Close()
	h.config.Rules, h.config.OwnNamespace = rules, true
	var err error
	h.source, err = SteerCgroup(cgroup, h.config)
	must(t, err)
}

// Rules that the programs can't hold are refused.
func TestPathRulesRefused(t *testing.T) {
	for name, rules := range map[string][]PathRule{
		"rules":   make([]PathRule, PathRulesMax+1),
		"hops":    {{Path: make([]cflb.Hop, pathHopsMax+1)}},
		"command": {{Command: "sixteen letters!"}},
		"cgroup":  {{Cgroup: "/nowhere"}},
	} {
		if _, _, err := pathRules(rules); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
