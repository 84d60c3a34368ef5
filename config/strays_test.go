package config_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
)

// drawStrays makes a valid role.
func drawStrays(t *rapid.T) *config.Strays {
	s := &config.Strays{Interfaces: []config.XDPInterface{{Name: "s0", Mode: config.Auto}}}
	if rapid.Bool().Draw(t, "device") {
		s.VRFs = append(s.VRFs, config.StrayVRF{VRF: "blue", Backup: "green",
			Except: []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:1:e046::/64")}})
	}
	if rapid.Bool().Draw(t, "namespace") || len(s.VRFs) == 0 {
		s.VRFs = append(s.VRFs, config.StrayVRF{
			Namespace: "/run/netns/" + rapid.StringMatching(`[a-z]{1,9}`).Draw(t, "path"),
			Backup:    "back",
			SIDs:      []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:1:46::/64")},
		})
	}
	return s
}

func TestDiffOfStrays(t *testing.T) {
	a := load(t, "strays")
	b, none := a.Clone(), a.Clone()
	b.Strays.VRFs[0].Backup = "gray"
	b.Strays.VRFs[1].SIDs[0] = netip.MustParsePrefix("fcbb:bb00:1:47::/64")
	b.Strays.Interfaces = b.Strays.Interfaces[:1]
	none.Strays = nil
	golden(t, "testdata/diff-strays.txt", diffText(a, b)+"--- taken out\n"+diffText(a,
		none)+"--- put in\n"+diffText(none, a))
}
