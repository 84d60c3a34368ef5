package doctor_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/doctor"
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

// besideRouter are the facts of a machine beside whose router strays are taken away, and on which nothing is wrong.
func besideRouter() doctor.Facts {
	vip4, vip6, inside := netip.MustParseAddr("10.80.0.1"), netip.MustParseAddr("2001:db8:80::1"), netip.MustParseAddr("10.81.0.1")
	leaves := doctor.Passage{
		Fate: doctor.Forwarded, Interface: "eth0", Segments: []netip.Addr{netip.MustParseAddr("fcbb:bb00:d0::")}, Source: netip.MustParseAddr("fd00:5e::51"),
	}
	stays, strict := doctor.Passage{Fate: doctor.Delivered}, true
	backup := doctor.Device{Exists: true, Up: true, Kind: "vrf"}
	return doctor.Facts{
		Kernel:     doctor.Kernel{Release: "6.12.1", BPFFS: true, ClockSource: "tsc"},
		Interfaces: map[string]doctor.Interface{"eth0": device()},
		StrictVRF:  &strict,
		VRFs: map[string]doctor.VRF{
			"blue": {
				Device: doctor.Device{Exists: true, Up: true, Kind: "vrf"}, Backup: backup, Addresses: []netip.Addr{vip4, vip6},
				SIDs:   []doctor.VRFSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1:46::/128"), Behavior: "End.DT46"}},
				Here:   map[netip.Addr]doctor.Passage{vip4: stays, vip6: stays},
				Strays: map[netip.Addr]doctor.Passage{vip4: leaves, vip6: leaves},
			},
			namespaceVRF: {
				Device: doctor.Device{Exists: true}, Backup: backup, Addresses: []netip.Addr{inside},
				SIDs:   []doctor.VRFSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1:4::/64")}},
				Strays: map[netip.Addr]doctor.Passage{inside: leaves},
			},
		},
		Running: &doctor.Running{Node: "web1", Version: "v1", VRFs: []doctor.VRFTraffic{{VRF: "blue", Here: 7, Strays: 3}, {VRF: namespaceVRF, Here: 1}}},
	}
}

// ofVRF returns an edit of what is known of a VRF.
func ofVRF(name string, edit func(*doctor.VRF)) func(*doctor.Facts) {
	return func(f *doctor.Facts) {
		v := f.VRFs[name]
		edit(&v)
		f.VRFs[name] = v
	}
}

// passes returns an edit of what becomes of the strays of the VRF blue.
func passes(p doctor.Passage, destinations ...string) func(*doctor.Facts) {
	return ofVRF("blue", func(v *doctor.VRF) {
		for _, to := range destinations {
			v.Strays[netip.MustParseAddr(to)] = p
		}
	})
}

// Each fact that differs from those of a machine where strays are taken away well has its name, and where it is.
func TestDiagnoseStrays(t *testing.T) {
	const vip4, vip6 = "10.80.0.1", "2001:db8:80::1"
	off := false
	for _, test := range []struct {
		name string
		edit func(*doctor.Facts)
		want []string
	}{
		{"healthy", func(*doctor.Facts) {}, nil},
		{"no interface", func(f *doctor.Facts) { delete(f.Interfaces, "eth0") }, []string{"broken interface_missing eth0"}},
		{"IPv6 forwarding of the interface, which no stray needs", change("eth0", func(i *doctor.Interface) { i.Forwarding = false }), nil},
		{"veth peer, to which nothing is sent", change("eth0", func(i *doctor.Interface) { i.Driver, i.Features.Send = "veth", false }), nil},
		{"seg6", change("eth0", func(i *doctor.Interface) { i.Seg6 = false }), []string{"notable sysctl_seg6 eth0"}},
		{"no VRF device", func(f *doctor.Facts) { f.VRFs["blue"] = doctor.VRF{Backup: f.VRFs["blue"].Backup} }, []string{"broken interface_missing blue"}},
		{"no VRF", ofVRF("blue", func(v *doctor.VRF) { v.Device.Kind = "bridge" }), []string{"broken vrf_kind blue"}},
		{"VRF down", ofVRF("blue", func(v *doctor.VRF) { v.Device.Up = false }), []string{"broken interface_down blue"}},
		{"no namespace", func(f *doctor.Facts) { f.VRFs[namespaceVRF] = doctor.VRF{Backup: f.VRFs["blue"].Backup} }, []string{"broken namespace_missing /run/netns/web"}},
		{"no backup device of both, once", func(f *doctor.Facts) {
			for _, name := range []string{"blue", namespaceVRF} {
				ofVRF(name, func(v *doctor.VRF) { v.Backup, v.Strays = doctor.Device{}, nil })(f)
			}
		}, []string{"broken interface_missing green"}},
		{"backup down", ofVRF("blue", func(v *doctor.VRF) { v.Backup.Up = false }), []string{"broken interface_down green"}},
		{"no SID", ofVRF("blue", func(v *doctor.VRF) { v.SIDs = nil }), []string{"broken vrf_sid blue"}},
		{"no SID, as the kernel refuses them", func(f *doctor.Facts) {
			ofVRF("blue", func(v *doctor.VRF) { v.SIDs = nil })(f)
			f.StrictVRF = &off
		}, []string{"broken vrf_sid blue", "broken sysctl_vrf_strict net.vrf.strict_mode"}},
		{"not strict, with a SID", func(f *doctor.Facts) { f.StrictVRF = &off }, []string{"risk sysctl_vrf_strict net.vrf.strict_mode"}},
		{"no VRF devices at all", func(f *doctor.Facts) { f.StrictVRF = nil }, nil},
		{"SID of a namespace not routed", ofVRF(namespaceVRF, func(v *doctor.VRF) { v.SIDs = nil }), []string{"broken vrf_sid fcbb:bb00:1:4::/64"}},
		{"SID by table", ofVRF("blue", func(v *doctor.VRF) { v.SIDs[0].Table = true }), []string{"risk vrf_sid fcbb:bb00:1:46::/128"}},
		{"SID outside the block", ofVRF("blue", func(v *doctor.VRF) { v.SIDs[0].Prefix = netip.MustParsePrefix("fd00:c0de::46/128") }),
			[]string{"risk sid_unguarded fd00:c0de::46"}},
		{"no address", ofVRF("blue", func(v *doctor.VRF) { v.Addresses = nil }), []string{"broken vip_missing blue"}},
		{"no address in the namespace", ofVRF(namespaceVRF, func(v *doctor.VRF) { v.Addresses = nil }), []string{"broken vip_missing /run/netns/web"}},
		{"no route for strays", passes(doctor.Passage{Fate: doctor.NoRoute}, vip6), []string{"broken backup_route green"}},
		{"no route for a family that no SID takes", func(f *doctor.Facts) {
			ofVRF("blue", func(v *doctor.VRF) { v.SIDs[0].Behavior = "End.DT4" })(f)
			passes(doctor.Passage{Fate: doctor.NoRoute}, vip6)(f)
		}, nil},
		{"no route for one of two addresses", func(f *doctor.Facts) {
			passes(doctor.Passage{Fate: doctor.NoRoute}, "10.80.0.0")(f)
			ofVRF("blue", func(v *doctor.VRF) {
				v.Addresses = append([]netip.Addr{netip.MustParseAddr("10.80.0.0")}, v.Addresses...)
			})(f)
		}, nil},
		{"strays refused", passes(doctor.Passage{Fate: doctor.Refused}, vip4), []string{"broken backup_route green"}},
		{"strays delivered", passes(doctor.Passage{Fate: doctor.Delivered}, vip4), []string{"broken backup_route green"}},
		{"nothing known of strays", passes(doctor.Passage{}, vip4, vip6), nil},
		{"not forwarding, for both families once", passes(doctor.Passage{Fate: doctor.NotForwarding, Off: "net.ipv6.conf.all.forwarding"}, vip4, vip6),
			[]string{"broken sysctl_forwarding green"}},
		{"reverse path of strays", passes(doctor.Passage{Fate: doctor.ReversePath}, vip4), []string{"broken rp_filter green"}},
		{"reverse path in the VRF", ofVRF("blue", func(v *doctor.VRF) {
			v.Here[netip.MustParseAddr(vip4)] = doctor.Passage{Fate: doctor.ReversePath}
		}), []string{"broken rp_filter blue"}},
		{"source of strays", passes(doctor.Passage{Fate: doctor.Forwarded, Source: netip.MustParseAddr("fd00:99::1")}, vip4), []string{"broken stray_source fd00:99::1"}},
		{"source not known", passes(doctor.Passage{Fate: doctor.Forwarded}, vip4), nil},
		{"silent", func(f *doctor.Facts) { f.Running.VRFs[1].Here = 0 }, []string{"notable vrf_silent /run/netns/web"}},
		{"all astray", func(f *doctor.Facts) { f.Running.VRFs[0] = doctor.VRFTraffic{VRF: "blue", Strays: 100} }, []string{"risk vrf_astray blue"}},
		{"the first ones astray", func(f *doctor.Facts) { f.Running.VRFs[0] = doctor.VRFTraffic{VRF: "blue", Strays: 99} }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := besideRouter()
			test.edit(&facts)
			if diff := cmp.Diff(test.want, diagnosed(t, parseText(t, straysText), facts)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
