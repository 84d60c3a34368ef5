package doctor_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/linux/facts"
)

const straysText = `
node: web1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
strays:
  interfaces: [{name: eth0}]
  vrfs:
    - {vrf: blue, backup: green, except: ["fcbb:bb00:1:e046::/64"]}
    - {namespace: /run/netns/web, sids: ["fcbb:bb00:1:4::/64"], backup: green}
`

const namespaceVRF = "/run/netns/web"

// besideRouter are the facts of a machine beside whose router strays are taken away, and on which
// nothing is wrong.
func besideRouter() facts.Facts {
	vip4, vip6, inside := netip.MustParseAddr("10.80.0.1"), netip.MustParseAddr("2001:db8:80::1"),
		netip.MustParseAddr("10.81.0.1")
	leaves := facts.Passage{
		Fate: facts.Forwarded, Interface: "eth0",
		Segments: []netip.Addr{netip.MustParseAddr("fcbb:bb00:d0::")},
		Source:   netip.MustParseAddr("fd00:5e::51"),
	}
	stays, strict := facts.Passage{Fate: facts.Delivered}, true
	backup := facts.Device{Exists: true, Up: true, Kind: "vrf"}
	return facts.Facts{
		Kernel:     facts.Kernel{Release: "6.12.1", BPFFS: true, ClockSource: "tsc"},
		Interfaces: map[string]facts.Interface{"eth0": device()},
		StrictVRF:  &strict,
		VRFs: map[string]facts.VRF{
			"blue": {
				Device: facts.Device{Exists: true, Up: true, Kind: "vrf"}, Backup: backup,
				Addresses: []netip.Addr{vip4, vip6},
				SIDs: []facts.VRFSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1:46::/128"),
					Behavior: "End.DT46"}},
				Here:   map[netip.Addr]facts.Passage{vip4: stays, vip6: stays},
				Strays: map[netip.Addr]facts.Passage{vip4: leaves, vip6: leaves},
			},
			namespaceVRF: {
				Device: facts.Device{Exists: true}, Backup: backup, Addresses: []netip.Addr{inside},
				SIDs:   []facts.VRFSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1:4::/64")}},
				Strays: map[netip.Addr]facts.Passage{inside: leaves},
			},
		},
		Running: &facts.Running{Node: "web1", Version: "v1",
			VRFs: []facts.VRFTraffic{{VRF: "blue", Here: 7, Strays: 3},
				{VRF: namespaceVRF, Here: 1}}},
	}
}

// ofVRF returns an edit of what is known of a VRF.
func ofVRF(name string, edit func(*facts.VRF)) func(*facts.Facts) {
	return func(f *facts.Facts) {
		v := f.VRFs[name]
		edit(&v)
		f.VRFs[name] = v
	}
}

// passes returns an edit of what becomes of the strays of the VRF blue.
func passes(p facts.Passage, destinations ...string) func(*facts.Facts) {
	return ofVRF("blue", func(v *facts.VRF) {
		for _, to := range destinations {
			v.Strays[netip.MustParseAddr(to)] = p
		}
	})
}

// Each fact that differs from those of a machine where strays are taken away well has its name, and
// where it is.
func TestDiagnoseStrays(t *testing.T) {
	const vip4, vip6 = "10.80.0.1", "2001:db8:80::1"
	off := false
	for _, test := range []struct {
		name string
		edit func(*facts.Facts)
		want []string
	}{
		{"healthy", func(*facts.Facts) {}, nil},
		{"no interface", func(f *facts.Facts) { delete(f.Interfaces, "eth0") },
			[]string{"broken interface_missing eth0"}},
		{"IPv6 forwarding of the interface, which no stray needs",
			change("eth0", func(i *facts.Interface) { i.Forwarding = false }), nil},
		{"veth peer, to which nothing is sent", change("eth0",
			func(i *facts.Interface) { i.Driver, i.Features.Send = "veth", false }), nil},
		{"seg6", change("eth0", func(i *facts.Interface) { i.Seg6 = false }),
			[]string{"notable sysctl_seg6 eth0"}},
		{"no VRF device",
			func(f *facts.Facts) { f.VRFs["blue"] = facts.VRF{Backup: f.VRFs["blue"].Backup} },
			[]string{"broken interface_missing blue"}},
		{"no VRF", ofVRF("blue", func(v *facts.VRF) { v.Device.Kind = "bridge" }),
			[]string{"broken vrf_kind blue"}},
		{"VRF down", ofVRF("blue", func(v *facts.VRF) { v.Device.Up = false }),
			[]string{"broken interface_down blue"}},
		{"no namespace", func(f *facts.Facts) {
			f.VRFs[namespaceVRF] = facts.VRF{Backup: f.VRFs["blue"].Backup}
		}, []string{"broken namespace_missing /run/netns/web"}},
		{"no backup device of both, once", func(f *facts.Facts) {
			for _, name := range []string{"blue", namespaceVRF} {
				ofVRF(name, func(v *facts.VRF) { v.Backup, v.Strays = facts.Device{}, nil })(f)
			}
		}, []string{"broken interface_missing green"}},
		{"backup down", ofVRF("blue", func(v *facts.VRF) { v.Backup.Up = false }),
			[]string{"broken interface_down green"}},
		{"no SID", ofVRF("blue", func(v *facts.VRF) { v.SIDs = nil }),
			[]string{"broken vrf_sid blue"}},
		{"no SID, as the kernel refuses them", func(f *facts.Facts) {
			ofVRF("blue", func(v *facts.VRF) { v.SIDs = nil })(f)
			f.StrictVRF = &off
		}, []string{"broken vrf_sid blue", "broken sysctl_vrf_strict net.vrf.strict_mode"}},
		{"not strict, with a SID", func(f *facts.Facts) { f.StrictVRF = &off },
			[]string{"risk sysctl_vrf_strict net.vrf.strict_mode"}},
		{"no VRF devices at all", func(f *facts.Facts) { f.StrictVRF = nil }, nil},
		{"SID of a namespace not routed", ofVRF(namespaceVRF, func(v *facts.VRF) { v.SIDs = nil }),
			[]string{"broken vrf_sid fcbb:bb00:1:4::/64"}},
		{"SID by table", ofVRF("blue", func(v *facts.VRF) { v.SIDs[0].Table = true }),
			[]string{"risk vrf_sid fcbb:bb00:1:46::/128"}},
		{"SID outside the block", ofVRF("blue",
			func(v *facts.VRF) { v.SIDs[0].Prefix = netip.MustParsePrefix("fd00:c0de::46/128") }),
			[]string{"risk sid_unguarded fd00:c0de::46"}},
		{"no address", ofVRF("blue", func(v *facts.VRF) { v.Addresses = nil }),
			[]string{"broken vip_missing blue"}},
		{"no address in the namespace",
			ofVRF(namespaceVRF, func(v *facts.VRF) { v.Addresses = nil }),
			[]string{"broken vip_missing /run/netns/web"}},
		{"no route for strays", passes(facts.Passage{Fate: facts.NoRoute}, vip6),
			[]string{"broken backup_route green"}},
		{"no route for a family that no SID takes", func(f *facts.Facts) {
			ofVRF("blue", func(v *facts.VRF) { v.SIDs[0].Behavior = "End.DT4" })(f)
			passes(facts.Passage{Fate: facts.NoRoute}, vip6)(f)
		}, nil},
		{"no route for one of two addresses", func(f *facts.Facts) {
			passes(facts.Passage{Fate: facts.NoRoute}, "10.80.0.0")(f)
			ofVRF("blue", func(v *facts.VRF) {
				v.Addresses = append([]netip.Addr{netip.MustParseAddr("10.80.0.0")}, v.Addresses...)
			})(f)
		}, nil},
		{"strays refused", passes(facts.Passage{Fate: facts.Refused}, vip4),
			[]string{"broken backup_route green"}},
		{"strays delivered", passes(facts.Passage{Fate: facts.Delivered}, vip4),
			[]string{"broken backup_route green"}},
		{"nothing known of strays", passes(facts.Passage{}, vip4, vip6), nil},
		{"not forwarding, for both families once",
			passes(facts.Passage{Fate: facts.NotForwarding, Off: "net.ipv6.conf.all.forwarding"},
				vip4, vip6),
			[]string{"broken sysctl_forwarding green"}},
		{"reverse path of strays", passes(facts.Passage{Fate: facts.ReversePath}, vip4),
			[]string{"broken rp_filter green"}},
		{"reverse path in the VRF", ofVRF("blue", func(v *facts.VRF) {
			v.Here[netip.MustParseAddr(vip4)] = facts.Passage{Fate: facts.ReversePath}
		}), []string{"broken rp_filter blue"}},
		{"source of strays", passes(facts.Passage{Fate: facts.Forwarded,
			Source: netip.MustParseAddr("fd00:99::1")}, vip4),
			[]string{"broken stray_source fd00:99::1"}},
		{"source not known", passes(facts.Passage{Fate: facts.Forwarded}, vip4), nil},
		{"silent", func(f *facts.Facts) { f.Running.VRFs[1].Here = 0 },
			[]string{"notable vrf_silent /run/netns/web"}},
		{"all astray", func(f *facts.Facts) {
			f.Running.VRFs[0] = facts.VRFTraffic{VRF: "blue", Strays: 100}
		}, []string{"risk vrf_astray blue"}},
		{"the first ones astray", func(
			f *facts.Facts) {
			f.Running.VRFs[0] = facts.VRFTraffic{VRF: "blue", Strays: 99}
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := besideRouter()
			test.edit(&facts)
			if diff := cmp.Diff(test.want, diagnosed(t, parseText(t, straysText),
				facts)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
