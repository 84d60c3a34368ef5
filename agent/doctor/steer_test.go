package doctor_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/doctor"
	"sextant/config"
	"sextant/linux/facts"
)

const steerText = `
node: router1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"], mtu: 1600}
secret: 00112233445566778899aabbccddeeff
headend:
  interfaces: [{name: eth0, side: external}, {name: eth1, side: internal}]
  uplinks: [eth2]
  local: [eth3]
  source: fd00:5e::1
  policies:
    - name: video
      paths:
        - name: both
          action: mirror
          lists: [{name: north, segments: ["fcbb:bb00:11::", "fcbb:bb00:2:f::"]}, {name: south, segments: ["fcbb:bb00:12::", "fcbb:bb00:2:f::"]}]
    - {name: web, paths: [{name: only, action: path, lists: [{name: a, segments: ["fcbb:bb00:11::"], reduced: true}]}]}
merge:
  interfaces: [{name: eth4}]
  sids: [{prefix: "fcbb:bb00:1:f::/80", flows: [1, 2]}]
`

// steering are the facts of a machine that steers and merges, and on which nothing is wrong: 96
// bytes of headers leave 1504 of 1600.
func steering() facts.Facts {
	f := facts.Facts{
		Kernel:     facts.Kernel{Release: "6.12.1", BPFFS: true, ClockSource: "tsc"},
		Interfaces: map[string]facts.Interface{},
		Routes: map[netip.Addr]facts.Route{
			netip.MustParseAddr("fcbb:bb00:11::"): {Reachable: true, Interface: "eth1",
				Neighbour: "reachable"},
			netip.MustParseAddr("fcbb:bb00:12::"): {Reachable: true, Interface: "eth2",
				Neighbour: "reachable"},
		},
		Programs: []facts.Program{{Interface: "eth0", ID: 10}, {Interface: "eth1", ID: 11},
			{Interface: "eth4", ID: 14}},
		Running: &facts.Running{Node: "router1", Version: "v1"},
	}
	for name, program := range map[string]uint32{"eth0": 10, "eth1": 11, "eth4": 14} {
		f.Interfaces[name] = device()
		change(name, func(i *facts.Interface) { i.XDPProgram = program })(&f)
	}
	change("eth0", func(i *facts.Interface) { i.MTU = 1504 })(&f)
	for _, name := range []string{"eth2", "eth3"} {
		f.Interfaces[name] = device()
		change(name, func(i *facts.Interface) {
			i.XDP, i.Forwarding, i.Seg6 = "", false,
				false
		})(&f)
	}
	change("eth3", func(i *facts.Interface) { i.MTU = 1500 })(&f)
	return f
}

// bare takes the program off an interface.
func bare(i *facts.Interface) { i.XDP, i.XDPProgram = "", 0 }

// Each fact that differs from those of a healthy head-end and egress has its name, and where it is.
func TestDiagnoseSteering(t *testing.T) {
	const north, south = "fcbb:bb00:11::", "fcbb:bb00:12::"
	route := func(sid string, r facts.Route) func(*facts.Facts) {
		return func(f *facts.Facts) { f.Routes[netip.MustParseAddr(sid)] = r }
	}
	veth := func(i *facts.Interface) { i.Driver, i.Features.Send = "veth", false }
	both := func(edits ...func(*facts.Facts)) func(*facts.Facts) {
		return func(f *facts.Facts) {
			for _, edit := range edits {
				edit(f)
			}
		}
	}
	for _, test := range []struct {
		name string
		edit func(*facts.Facts)
		want []string
	}{
		{"healthy", func(*facts.Facts) {}, nil},
		{"no interface of each kind",
			func(f *facts.Facts) { f.Interfaces = map[string]facts.Interface{} },
			[]string{"broken interface_missing eth0", "broken interface_missing eth1",
				"broken interface_missing eth2", "broken interface_missing eth3",
				"broken interface_missing eth4"}},
		{"uplink down", change("eth2", func(i *facts.Interface) { i.Up = false }),
			[]string{"broken interface_down eth2"}},
		{"generic", both(change("eth0", func(i *facts.Interface) { i.XDP = "generic" }),
			change("eth4", func(i *facts.Interface) { i.XDP = "generic" })),
			[]string{"risk generic_xdp eth0", "risk generic_xdp eth4"}},
		{"generic with GRO", change("eth4", func(i *facts.Interface) {
			i.XDP, i.GRO = "generic",
				true
		}), []string{"broken generic_gro eth4", "risk generic_xdp eth4"}},
		{"uplink without native XDP, but which sends",
			change("eth2", func(i *facts.Interface) { i.Features.Native = false }), nil},
		{"veth peer of a head-end's interface", change("eth1", veth),
			[]string{"broken veth_peer eth1"}},
		{"veth peer of clients, who are answered", change("eth0", veth),
			[]string{"broken veth_peer eth0"}},
		{"veth peer of an uplink", change("eth2", veth), []string{"broken veth_peer eth2"}},
		{"veth peers to which nothing is sent", both(change("eth3", veth), change("eth4", veth)),
			nil},
		{"uplink whose driver can't send",
			change("eth2", func(i *facts.Interface) { i.Features.Send = false }),
			[]string{"broken uplink_send eth2"}},
		{"uplink which need not, in generic mode",
			both(change("eth2", func(i *facts.Interface) { i.Features.Send = false }),
				change("eth0", func(i *facts.Interface) { i.XDP = "generic" }),
				change("eth1", func(i *facts.Interface) { i.XDP = "generic" })),
			[]string{"risk generic_xdp eth0", "risk generic_xdp eth1"}},
		{"uplink of which nothing is known",
			change("eth2", func(i *facts.Interface) { i.Features = facts.Features{} }), nil},
		{"checksums", both(change("eth0",
			func(i *facts.Interface) { i.Driver, i.TxChecksum = "veth", true }),
			change("eth2", func(i *facts.Interface) { i.Driver, i.TxChecksum = "veth", true }),
			change("eth4", func(i *facts.Interface) { i.Driver, i.TxChecksum = "veth", true })),
			[]string{"risk checksum_offload eth0", "risk checksum_offload eth2",
				"risk checksum_offload eth4"}},
		{"checksums of what goes through the loop", change("eth3",
			func(i *facts.Interface) { i.Driver, i.TxChecksum = "veth", true }), nil},
		{"MTU below the domain's", func(f *facts.Facts) {
			for _, name := range []string{"eth1", "eth2", "eth4"} {
				change(name, func(i *facts.Interface) { i.MTU = 1500 })(f)
			}
		}, []string{"broken mtu eth1", "broken mtu eth2", "broken mtu eth4"}},
		{"MTU of a mixed interface by which nothing leaves", func(f *facts.Facts) {
			for sid := range f.Routes {
				route(sid.String(), facts.Route{Reachable: true, Interface: "eth2"})(f)
			}
			change("eth1", func(i *facts.Interface) { i.MTU = 1500 })(f)
		}, []string{"notable side_mixed eth1"}},
		{"no headroom for the longest list",
			change("eth0", func(i *facts.Interface) { i.MTU = 1505 }),
			[]string{"notable mtu_headroom eth0"}},
		{"forwarding", both(change("eth0", func(i *facts.Interface) { i.Forwarding = false }),
			change("eth4", func(i *facts.Interface) { i.Forwarding = false })),
			[]string{"broken sysctl_forwarding eth0", "broken sysctl_forwarding eth4"}},
		{"seg6", both(change("eth1", func(i *facts.Interface) { i.Seg6 = false }), change("eth4",
			func(i *facts.Interface) { i.Seg6 = false })), []string{"notable sysctl_seg6 eth4"}},
		{"seg6 HMAC", change("eth4", func(i *facts.Interface) { i.Seg6HMAC = 1 }),
			[]string{"risk sysctl_seg6_hmac eth4"}},
		{"reverse path", func(f *facts.Facts) {
			client := netip.MustParseAddr("203.0.113.1")
			f.Returns = map[string]netip.Addr{"eth1": client, "eth4": client}
			change("eth1", func(i *facts.Interface) { i.RPFilter = 1 })(f)
			change("eth4", func(i *facts.Interface) { i.RPFilter = 1 })(f)
		}, []string{"risk rp_filter eth4"}},
		{"no route to a first segment, of two policies", route(north, facts.Route{}),
			[]string{"broken sid_route video/north, web/a"}},
		{"gateway", route(south, facts.Route{Reachable: true, Neighbour: "failed",
			Interface: "eth2"}), []string{"broken sid_neighbour video/south"}},
		{"path MTU", route(south, facts.Route{Reachable: true, MTU: 1400}),
			[]string{"broken path_mtu video/south"}},
		{"foreign programs", both(change("eth1", func(i *facts.Interface) { i.XDPProgram = 99 }),
			change("eth4", func(i *facts.Interface) { i.XDPProgram = 98 })),
			[]string{"broken program_foreign eth1", "broken program_foreign eth4"}},
		{"pins hidden, programs of the agent", func(f *facts.Facts) {
			f.Running.Programs, f.Programs, f.PinDir = f.Programs, []facts.Program{},
				"/sys/fs/bpf/sextant/r1"
		}, []string{"notable pins_hidden /sys/fs/bpf/sextant/r1"}},
		{"a program of another interface",
			change("eth4", func(i *facts.Interface) { i.XDPProgram = 10 }),
			[]string{"broken program_foreign eth4"}},
		{"any program on an uplink", change("eth2",
			func(i *facts.Interface) { i.XDP, i.XDPProgram = "native", 99 }), nil},
		{"foreign before the agent", func(f *facts.Facts) {
			f.Programs, f.Running = []facts.Program{}, nil
			for _, name := range []string{"eth0", "eth1"} {
				change(name, bare)(f)
			}
		}, []string{"broken program_foreign eth4", "notable agent_down agent"}},
		{"programs missing", both(change("eth0", bare), change("eth4", bare)),
			[]string{"broken program_missing eth0", "broken program_missing eth4"}},
		{"one missing, without an agent",
			both(change("eth0", bare), func(f *facts.Facts) { f.Running = nil }),
			[]string{"broken program_missing eth0", "notable agent_down agent"}},
		{"programs not asked for", both(change("eth0", bare),
			func(f *facts.Facts) { f.Programs = nil }), nil},
		{"unknown flow", func(f *facts.Facts) {
			f.Running.Drops = map[string]uint64{"merge unknown_flow": 1, "merge duplicate": 9}
		}, []string{"risk drops merge unknown_flow"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts, node := steering(), parseText(t, steerText)
			if strings.Contains(test.name, "mixed") {
				node.Headend.Interfaces[1].Side = config.Mixed
			}
			test.edit(&facts)
			if diff := cmp.Diff(test.want, diagnosed(t, node, facts)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What is too large for a head-end's packets is told with the policy or protection that leaves the
// least room.
func TestHeadendRoom(t *testing.T) {
	const protection = `
protect: {topology: /t, node: a, protections: [{name: movie, to: b, egress: "fcbb:bb00:7:f::", sids: 4, match: [{destination: "2001:db8::/64"}]}]}
`
	for _, test := range []struct{ name, text, want string }{
		{"a list", steerText, "packets of more than 1504 bytes can arrive, and do not fit behind " +
			"the 96 bytes of headers of policy video"},
		{"the policy's own MTU", strings.Replace(steerText, "name: video\n",
			"name: video\n      mtu: 1400\n", 1),
			"packets of more than 1400 bytes can arrive, and policy video takes none that are " +
				"larger"},
		{"a protection", steerText + protection, "packets of more than 1472 bytes can arrive, " +
			"and do not fit behind the 128 bytes of headers of protection movie"},
	} {
		known, got := steering(), ""
		change("eth0", func(i *facts.Interface) { i.MTU = 1600 })(&known)
		for _, f := range doctor.Diagnose(parseText(t, test.text), known, "v1") {
			if f.Code == "mtu_headroom" {
				got = f.What
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// What is asked about a machine is what the diagnoses speak of; a list that is out of use is none
// of it.
func TestWhatIsAsked(t *testing.T) {
	node := parseText(t, steerText)
	node.Headend.Policies[0].Paths[0].Lists[1].State = config.ListDown
	if diff := cmp.Diff([]string{"eth0", "eth1", "eth2", "eth3", "eth4"},
		doctor.Interfaces(node)); diff != "" {
		t.Errorf("interfaces (-want +got):\n%s", diff)
	}
	var sids []string
	for _, n := range []*config.Node{node, parseText(t, nodeText)} {
		for _, sid := range doctor.Destinations(n) {
			sids = append(sids, sid.String())
		}
	}
	if diff := cmp.Diff([]string{"fcbb:bb00:11::", "fcbb:bb00:1::", "fcbb:bb00:2::"},
		sids); diff != "" {
		t.Errorf("SIDs (-want +got):\n%s", diff)
	}
	if got := doctor.Interfaces(parseText(t, nodeText)); len(got) != 3 {
		t.Errorf("interfaces %v of an edge and a host", got)
	}
}

// An interface that hosts or clients share with the domain is named, of edges and head-ends.
func TestMixedSidesAreNamed(t *testing.T) {
	text := strings.Replace(steerText, "{name: eth1, side: internal}", "{name: eth1, side: mixed}",
		1)
	n, err := config.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range doctor.Diagnose(n, steering(), "v1") {
		found = append(found, string(f.Severity)+" "+f.Code+" "+f.On)
	}
	if diff := cmp.Diff([]string{"notable mtu_headroom eth1", "notable side_mixed eth1"},
		found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}
