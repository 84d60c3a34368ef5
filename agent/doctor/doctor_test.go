package doctor_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/doctor"
	"sextant/config"
	"sextant/linux/facts"
)

const nodeText = `
node: both1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"], mtu: 1600}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0, side: external}, {name: eth1, side: internal, mode: native}]
  source: fd00:5e::e1
  services:
    - {name: web, vip: 2001:db8:80::80, port: 80, backends: [{name: web1, sid: "fcbb:bb00:1::"}, {name: web2, sid: "fcbb:bb00:2::"}]}
host:
  interfaces: [{name: eth2}]
  sids: [{prefix: "fcbb:bb00:9::/48", behavior: End.OFFER}]
  services: [{name: api, vip: 192.0.2.81, port: 443}, {name: rest, vip: 192.0.2.81, port: any}]
`

func device() facts.Interface {
	return facts.Interface{
		Up: true, MTU: 1600, Driver: "device", XDP: "native", Features: facts.Features{Known: true,
			Native: true, Send: true}, Forwarding: true, Seg6: true,
	}
}

// healthy are the facts of a machine on which nothing is wrong.
func healthy() facts.Facts {
	eth0 := device()
	eth0.MTU = 1500
	vip := netip.MustParseAddr("192.0.2.81")
	reached := facts.Route{Reachable: true, Interface: "eth1", Neighbour: "reachable"}
	return facts.Facts{
		Kernel:     facts.Kernel{Release: "6.12.1", BPFFS: true, Cgroup2: true, ClockSource: "tsc"},
		Interfaces: map[string]facts.Interface{"eth0": eth0, "eth1": device(), "eth2": device()},
		Local:      map[netip.Addr]bool{vip: true},
		Listeners:  []facts.Listener{{Address: netip.AddrPortFrom(netip.IPv6Unspecified(), 443)}},
		Routes: map[netip.Addr]facts.Route{netip.MustParseAddr("fcbb:bb00:1::"): reached,
			netip.MustParseAddr("fcbb:bb00:2::"): reached},
		Agents: []facts.Agent{{PID: 7, Node: "both1"}, {PID: 8, Node: "other"}},
		Running: &facts.Running{Node: "both1", Version: "v1", SIDPackets: 3,
			Drops: map[string]uint64{"edge truncated": 4}},
	}
}

// change returns an edit of one interface.
func change(name string, edit func(*facts.Interface)) func(*facts.Facts) {
	return func(f *facts.Facts) {
		i := f.Interfaces[name]
		edit(&i)
		f.Interfaces[name] = i
	}
}

// Each fact that differs from those of a healthy machine has its name, and where it is.
func TestDiagnose(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(*facts.Facts)
		want []string // code on what: part of the text
	}{
		{"healthy", func(*facts.Facts) {}, nil},
		{"kernel too old", func(f *facts.Facts) { f.Kernel.Missing = []string{"bpf_loop"} },
			[]string{"broken kernel_feature kernel 6.12.1"}},
		{"not root", func(f *facts.Facts) { f.Kernel.Capabilities = []string{"CAP_BPF"} },
			[]string{"broken privilege this process"}},
		{"no bpf file system", func(f *facts.Facts) { f.Kernel.BPFFS = false },
			[]string{"broken bpffs /sys/fs/bpf"}},
		{"no cgroup2", func(f *facts.Facts) { f.Kernel.Cgroup2 = false },
			[]string{"broken cgroup2 cgroup2"}},
		{"slow clock", func(f *facts.Facts) { f.Kernel.ClockSource = "hpet" },
			[]string{"risk clock clock source hpet"}},
		{"no interface", func(f *facts.Facts) { delete(f.Interfaces, "eth2") },
			[]string{"broken interface_missing eth2"}},
		{"interface down", change("eth1", func(i *facts.Interface) { i.Up = false }),
			[]string{"broken interface_down eth1"}},
		{"generic", change("eth0", func(i *facts.Interface) { i.XDP = "generic" }),
			[]string{"risk generic_xdp eth0"}},
		{"generic, driver", change("eth0",
			func(i *facts.Interface) { i.XDP, i.Features.Native = "generic", false }),
			[]string{"risk generic_xdp eth0"}},
		{"generic, veth", change("eth0", func(i *facts.Interface) {
			i.XDP, i.Driver = "generic",
				"veth"
		}), []string{"risk generic_xdp eth0"}},
		{"would be generic", change("eth0",
			func(i *facts.Interface) { i.XDP, i.Features.Native = "", false }),
			[]string{"risk generic_xdp eth0"}},
		{"native refused", change("eth1", func(i *facts.Interface) {
			i.XDP, i.Features.Native = "",
				false
		}), []string{"broken generic_xdp eth1"}},
		{"features unknown", change("eth1", func(i *facts.Interface) {
			i.XDP, i.Features = "",
				facts.Features{}
		}), nil},
		{"veth peer", change("eth1", func(i *facts.Interface) {
			i.Driver, i.Features.Send = "veth",
				false
		}), []string{"broken veth_peer eth1"}},
		{"veth checksums", change("eth1",
			func(i *facts.Interface) { i.Driver, i.TxChecksum = "veth", true }),
			[]string{"risk checksum_offload eth1"}},
		{"device checksums", change("eth1", func(i *facts.Interface) { i.TxChecksum = true }), nil},
		{"generic with GRO", change("eth0", func(i *facts.Interface) {
			i.XDP, i.GRO = "generic",
				true
		}), []string{"broken generic_gro eth0", "risk generic_xdp eth0"}},
		{"generic with GRO below", change("eth0", func(i *facts.Interface) {
			i.XDP, i.GROBelow = "generic", []string{"eth9"}
		}), []string{"broken generic_gro eth0", "risk generic_xdp eth0"}},
		{"MTU below the domain's", change("eth2", func(i *facts.Interface) { i.MTU = 1500 }),
			[]string{"broken mtu eth2"}},
		{"no headroom", change("eth0", func(i *facts.Interface) { i.MTU = 1600 }),
			[]string{"notable mtu_headroom eth0"}},
		{"forwarding", change("eth2", func(i *facts.Interface) { i.Forwarding = false }),
			[]string{"broken sysctl_forwarding eth2"}},
		{"seg6", change("eth2", func(i *facts.Interface) { i.Seg6 = false }),
			[]string{"notable sysctl_seg6 eth2"}},
		{"seg6 HMAC", change("eth1", func(i *facts.Interface) { i.Seg6HMAC = 1 }),
			[]string{"risk sysctl_seg6_hmac eth1"}},
		{"reverse path", func(f *facts.Facts) {
			f.Returns = map[string]netip.Addr{"eth2": netip.MustParseAddr("203.0.113.1"),
				"eth0": netip.MustParseAddr("203.0.113.1")}
			change("eth2", func(i *facts.Interface) { i.RPFilter = 1 })(f)
		}, []string{"broken rp_filter eth2"}},
		{"VIP", func(f *facts.Facts) { f.Local[netip.MustParseAddr("192.0.2.81")] = false },
			[]string{"broken vip_missing 192.0.2.81"}},
		{"listener of another family", func(f *facts.Facts) {
			f.Listeners[0].Address = netip.MustParseAddrPort("[2001:db8::1]:443")
		}, []string{"broken listener_missing 192.0.2.81:443/tcp"}},
		{"listener of another protocol", func(f *facts.Facts) { f.Listeners[0].UDP = true },
			[]string{"broken listener_missing 192.0.2.81:443/tcp"}},
		{"listener mapped", func(f *facts.Facts) {
			f.Listeners[0].Address = netip.MustParseAddrPort("[::ffff:192.0.2.81]:443")
		}, nil},
		{"sockets not asked for", func(f *facts.Facts) { f.Listeners = nil }, nil},
		{"no route", func(f *facts.Facts) {
			f.Routes[netip.MustParseAddr("fcbb:bb00:2::")] = facts.Route{}
		}, []string{"broken sid_route web2"}},
		{"gateway", func(f *facts.Facts) {
			f.Routes[netip.MustParseAddr("fcbb:bb00:1::")] = facts.Route{Reachable: true,
				Neighbour: "failed", Interface: "eth1"}
		}, []string{"broken sid_neighbour web1"}},
		{"path MTU", func(f *facts.Facts) {
			f.Routes[netip.MustParseAddr("fcbb:bb00:1::")] = facts.Route{Reachable: true, MTU: 1400}
		}, []string{"broken path_mtu web1"}},
		{"two agents", func(f *facts.Facts) { f.Agents[1].Node = "both1" },
			[]string{"broken two_agents processes 7, 8"}},
		{"stale pins", func(f *facts.Facts) {
			f.Pins = []facts.Pin{{Path: "/sys/fs/bpf/x", What: "another shape"}}
		}, []string{"risk stale_pins /sys/fs/bpf/x"}},
		{"no agent", func(f *facts.Facts) { f.Running = nil },
			[]string{"notable agent_down agent"}},
		{"agent of another version", func(f *facts.Facts) { f.Running.Version = "v0" },
			[]string{"risk agent_version agent"}},
		{"warning", func(f *facts.Facts) { f.Running.Warnings = []string{"etcd is away"} },
			[]string{"risk agent_warning agent"}},
		{"failing", func(f *facts.Facts) {
			f.Running.Failing = []facts.Failing{{Service: "web", Backend: "web2", Error: "refused"}}
		}, []string{"broken backend_failing web web2"}},
		{"drops", func(f *facts.Facts) {
			f.Running.Drops = map[string]uint64{"edge no_route": 3, "host outside_domain": 1,
				"host ecn": 9, "edge spoofed_source": 0}
		}, []string{"risk drops edge no_route", "risk drops host outside_domain"}},
		{"silent", func(f *facts.Facts) { f.Running.SIDPackets = 0 },
			[]string{"notable locator_silent fcbb:bb00:9::/48"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := healthy()
			test.edit(&facts)
			var got []string
			for _, f := range doctor.Diagnose(parseText(t, nodeText), facts, "v1") {
				got = append(got, strings.Join([]string{string(f.Severity), f.Code, f.On}, " "))
				if f.What == "" || f.Cause == "" || f.Mend == "" {
					t.Errorf("%s does not say all: %+v", f.Code, f)
				}
				if f.Sick() != (f.Severity != doctor.Notable) {
					t.Errorf("%s, %s: sick %v", f.Code, f.Severity, f.Sick())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Where nothing is known, nothing is said but that no agent answers and what was looked for and is
// not there.
func TestNothingIsMadeUp(t *testing.T) {
	var codes []string
	for _, f := range doctor.Diagnose(parseText(t, nodeText), facts.Facts{}, "v1") {
		codes = append(codes, f.Code)
	}
	if want := []string{"bpffs", "cgroup2", "agent_down"}; !slices.Equal(codes, want) {
		t.Errorf("diagnosed %v, want %v", codes, want)
	}
}

// SIDs of all roles are looked at, each is named once, and those in the block or in a locator are
// not.
func TestUnguardedSIDs(t *testing.T) {
	text := strings.NewReplacer("source: fd00:5e::e1\n",
		"source: fd00:5e::e1\n  encapsulation: srh\n", `"fcbb:bb00:2::"`, `"fd00:c0de::2"`,
		"mtu: 1600", "mtu: 1600, overhead: 144", `"fcbb:bb00:9::/48"`, `"fd00:c0df::9/128"`).Replace(nodeText) + `
headend:
  interfaces: [{name: eth3}]
  source: fd00:5e::e1
  policies: [{name: p, paths: [{name: a, action: path, lists: [{name: l, segments: ["fd00:c0de::2", "fd00:c0e0::1", "fcbb:bb00:3::"]}]}]}]
merge:
  interfaces: [{name: eth4}]
  sids: [{prefix: "fd00:c0e1::/80", flows: [1]}]
`
	for locators, want := range map[string]string{
		"":                                 "fd00:c0de::2 fd00:c0df::9 fd00:c0e0::1 fd00:c0e1::",
		`locators: ["fd00:c0de::/31"], `:   "fd00:c0e0::1 fd00:c0e1::",
		`locators: ["fd00:c000::/24"], `:   "",
		`locators: ["fd00:c0e0::1/128"], `: "fd00:c0de::2 fd00:c0df::9 fd00:c0e1::",
	} {
		node, err := config.Parse("node.yaml",
			[]byte(strings.Replace(text, "infrastructure:", locators+"infrastructure:", 1)))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range doctor.Diagnose(node, healthy(), "v1") {
			if f.Code == "sid_unguarded" {
				got = f.On
			}
		}
		if got != want {
			t.Errorf("%q: unguarded %q, want %q", locators, got, want)
		}
	}
}
