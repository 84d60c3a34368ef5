package config_test

import (
	"errors"
	"net/netip"
	"testing"

	"sextant/config"
)

// Protections get flow ids that nobody has, keep them, and go again.
func TestProtectionsComeAndGo(t *testing.T) {
	n := load(t, "protect")
	flows := func(n *config.Node) (flows []int) {
		for _, p := range n.Protect.Protections {
			flows = append(flows, p.Flow)
		}
		return flows
	}
	if got := flows(n); got[0] != 32768 || got[1] != 40000 || got[2] != 32776 {
		t.Errorf("flows %v", got)
	}
	less, err := config.DeleteProtection(n, "video")
	if err != nil || len(less.Protect.Protections) != 2 || len(n.Protect.Protections) != 3 {
		t.Fatalf("%v, %d left", err, len(less.Protect.Protections))
	}
	fresh := config.Protection{
		Name: "fresh", To: "R9", Egress: netip.MustParseAddr("fcbb:bb00:9:f::"),
		Matches: []config.SteeringRule{{DSCP: 12}},
		Copies:  1, Disjoint: "srlg", SIDs: 4, Model: "adjacency", Redundancy: config.NotNumbered,
	}
	more, err := config.AddProtection(less, fresh)
	if err != nil || more.Protect.Protections[2].Flow != 32768 {
		t.Fatalf("%v, flows %v", err, flows(more))
	}
	if _, err := config.AddProtection(more, fresh); !errors.Is(err, config.ErrConflict) {
		t.Errorf("added twice: %v", err)
	}
	if _, err := config.DeleteProtection(less, "video"); !errors.Is(err, config.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := config.AddProtection(load(t, "host"), fresh); !errors.Is(err, config.ErrConflict) {
		t.Errorf("added to a node without a topology: %v", err)
	}
}

func TestRates(t *testing.T) {
	for text, kbps := range map[string]int{"0": 0, "1kbit": 1, "1500kbit": 1500, "10Mbit": 10_000,
		"2Gbit": 2_000_000} {
		got, err := config.ParseRate(text)
		if err != nil || got != kbps || config.FormatRate(kbps) != text {
			t.Errorf("%s: %d, %v; %d is %s", text, got, err, kbps, config.FormatRate(kbps))
		}
	}
	for _, text := range []string{"", "10", "Mbit", "-1Mbit", "0Mbit", "1.5Mbit", "01Mbit",
		"1 Mbit", "10mbit", "2000Gbit", "99999999999999999999kbit"} {
		if got, err := config.ParseRate(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}
