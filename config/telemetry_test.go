package config_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"sextant/config"
	"sextant/packet/telemetry"
)

// drawTelemetry makes a valid section telemetry, at interfaces that no other role has.
func drawTelemetry(t *rapid.T) *config.Telemetry {
	r := &config.Telemetry{Node: rapid.IntRange(1, 1<<32-2).Draw(t, "node"),
		Port:      rapid.Uint16Range(1, 65535).Draw(t, "INT port"),
		Namespace: rapid.IntRange(0, 65535).Draw(t, "namespace"),
		TimeShift: pick(t, 8, 12, 16, 20),
		Transit:   []string{"t1"}}
	if rapid.Bool().Draw(t, "links") {
		r.Links = []config.TelemetryLink{{Interface: "t1", RateKbps: 1000}}
	}
	if rapid.Bool().Draw(t, "source") {
		r.Source = &config.TelemetrySource{Interfaces: []string{"t0"},
			Metadata: pick(t, nil, []config.TelemetryMetadata{"node", "latency"}),
			Hops:     rapid.IntRange(1, 255).Draw(t, "hops"),
			Slots:    rapid.IntRange(0, 31).Draw(t, "slots"),
			OneIn:    rapid.IntRange(0, 1<<32-1).Draw(t, "one in"),
			Encoding: config.EncodingINT,
			Choice:   pick(t, config.ByChance, config.InTurn)}
		if rapid.Bool().Draw(t, "options") {
			r.Node &= 0xff
			r.Node++
			r.Source.Encoding = pick(t, config.EncodingIOAM, config.EncodingPathTracing)
			r.Source.Metadata, r.Source.Hops, r.Source.Slots = nil, 1+r.Source.Hops%30, 0
			r.Plain = pick(t, nil, []netip.Prefix{netip.MustParsePrefix("2001:db8:1::/48")})
		}
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, name) {
				r.Source.Watch = append(r.Source.Watch, drawWatch(t, name))
			}
		}
	}
	if rapid.Bool().Draw(t, "sink") {
		r.Sink = &config.TelemetrySink{Interfaces: []string{"t0", "t1"},
			SIDs:      []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:9::/48")},
			Collector: netip.MustParseAddrPort("[2001:db8::9]:32766"),
			Report:    pick(t, nil, []config.TelemetryReason{config.ReportEach, config.ReportEnd}),
			Gap: pick(t, 0,
				time.Duration(rapid.IntRange(1, 3600e6).Draw(t, "gap"))*time.Microsecond),
			GapRTTs:      rapid.IntRange(0, 1000).Draw(t, "RTTs"),
			QueueBytes:   rapid.IntRange(0, 1<<24-1).Draw(t, "queue"),
			QueueChange:  rapid.IntRange(1, 1<<24-1).Draw(t, "change"),
			FlowInterval: time.Duration(rapid.IntRange(0, 3600).Draw(t, "interval")) * time.Second,
			Limit:        rapid.IntRange(1, 1<<32-1).Draw(t, "limit")}
	}
	return r
}

func drawWatch(t *rapid.T, name string) config.TelemetryWatch {
	return config.TelemetryWatch{Name: name,
		Destination: pick(t, netip.Prefix{}, netip.MustParsePrefix("2001:db8::/32")),
		Protocol:    6, SourcePorts: config.PortRange{First: 1, Last: 9},
		DSCP:   pick(t, config.AnyDSCP, 0, 46),
		OneIn:  rapid.IntRange(0, 1<<32-1).Draw(t, "watch one in"),
		Choice: pick(t, config.ByChance, config.InTurn)}
}

const telemetryNode = `node: n
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: "000102030405060708090a0b0c0d0e0f"
edge:
  interfaces: [{name: eth0}]
  source: "fd00:5e::1"
  services: [{name: web, vip: "2001:db8::80", port: 443}]
`

// TestTelemetryFaults gives sections that cannot work, and wants a word of what is wrong.
func TestTelemetryFaults(t *testing.T) {
	for want, section := range map[string]string{
		"neither source, transit nor sink": "{node: 1}",
		"node is missing":                  "{transit: [eth1]}",
		"node 0 is out of range":           "{node: 0, transit: [eth1]}",
		"one port":                         "{node: 1, port: any, transit: [eth1]}",
		"given twice":                      "{node: 1, transit: [eth1, eth1]}",
		"programs at XDP send":             "{node: 1, transit: [eth0]}",
		"free slots":                       "{node: 1, source: {interfaces: [eth1], slots: 32}}",
		`unknown choice "dice"`:            "{node: 1, source: {interfaces: [eth1], choice: dice}}",
		`unknown metadata "x"`: "{node: 1, source: {interfaces: [eth1], metadata: " +
			"[x]}}",
		"no template":             "{node: 1, transit: [eth1], timeShift: 9}",
		"a plain packet has none": `{node: 1, plain: ["2001:db8::/32"], source: {interfaces: [eth1]}}`,
		"prefixes, with the SIDs of": "{node: 1, transit: [eth1], plain: [" +
			strings.Repeat(`"2001:db8::/32", `, 1025) + "]}",
		"free slots are of INT":   encoded("ioam", "slots: 1"),
		"a trace has 61 words":    encoded("ioam", "hops: 31"),
		"neither egress-time nor": encoded("ioam", "metadata: [egress-time]"),
		"room for 84":             encoded("path-tracing", "hops: 85"),
		"and nothing else":        encoded("path-tracing", "metadata: [node]"),
		"beyond the 24 bits": "{node: 16777215, source: {interfaces: [eth1], " +
			"encoding: ioam}}",
		`unknown encoding "morse"`: encoded("morse", "hops: 1"),
		"15 nodes of 5 words": encoded("ioam",
			"hops: 15, watch: [{name: w, metadata: [node, ingress-time, queue, latency]}]"),
		"no service":                 watching("service: none"),
		"a service says destination": watching("service: web, protocol: tcp"),
		"ports need a protocol":      watching("destinationPorts: 80"),
		"two families": watching(
			`source: "10.0.0.0/8", destination: "2001:db8::/32"`),
		`watch "w" is given twice`: watching("dscp: 1}, {name: w"),
		"the sink has no SID":      sinking("sids: []"),
		"not an IPv6 prefix":       sinking(`sids: ["10.0.0.0/8"]`),
		"not an address and port":  sinking(`sids: ["fcbb::/48"], collector: "host:1"`),
	} {
		_, err := config.Parse("node.yaml", []byte(telemetryNode+"telemetry: "+section+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
}

// TestTelemetryBehindXDP gives sinks interfaces at which programs decapsulate before them: packets
// with INT would be dropped there.
func TestTelemetryBehindXDP(t *testing.T) {
	const head = `node: n
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: "000102030405060708090a0b0c0d0e0f"
`
	const host = `host:
  interfaces: [{name: eth1}]
  sids: [{prefix: "fcbb:bb00:1::/48", behavior: End.OFFER}]
`
	const merge = `merge:
  interfaces: [{name: eth1}]
  sids: [{prefix: "fcbb:bb00:7:f::/80", flows: [1, 2], rate: 1000, skew: 10ms}]
`
	const strays = `strays:
  interfaces: [{name: eth1}]
  vrfs:
    - {namespace: /run/netns/blue, sids: ["fcbb:bb00:1:46::/64"], backup: back}
`
	const device = `strays:
  interfaces: [{name: eth1}]
  vrfs: [{vrf: blue, backup: green}]
`
	for _, test := range []struct{ roles, sids, refused string }{
		{strays, "fcbb:bb00:1::/48", "strays.vrfs[0].sids[0]"},
		{strays, "fcbb:bb00:2::/48", ""},
		{strings.ReplaceAll(strays, "eth1", "eth2"), "fcbb:bb00:1::/48", ""},
		{device, "fcbb:bb00:1::/48", ""},
		{host, "fcbb:bb00:1::/48", "host.sids[0]"},
		{host, "fcbb:bb00::/32", "host.sids[0]"},
		{host, "fcbb:bb00:2::/48", ""},
		{strings.ReplaceAll(host, "eth1", "eth2"), "fcbb:bb00:1::/48", ""},
		{merge, "fcbb:bb00:7::/48", "merge.sids[0]"},
		{merge, "fcbb:bb00:7:e::/64", ""},
		{strings.ReplaceAll(merge, "eth1", "eth2"), "fcbb:bb00:7::/48", ""},
		{"", "fcbb:bb00:7::/48", ""},
	} {
		n, err := config.Parse("node.yaml", []byte(head+test.roles+"telemetry: "+
			sinking(`sids: ["`+test.sids+`"]`)+"\n"))
		if test.refused == "" && err != nil {
			t.Errorf("%s%s: %v", test.roles, test.sids, err)
		}
		if test.refused != "" && (err == nil || !strings.Contains(err.Error(), "before the sink") ||
			!strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s%s: %v; want it refused for %s", test.roles, test.sids, err, test.refused)
		}
		if err == nil && strings.Contains(strings.Join(config.Warnings(n), "\n"),
			"strays to SIDs of blue") != (test.roles == device) {
			t.Errorf("%s%s: warnings %q", test.roles, test.sids, config.Warnings(n))
		}
	}
}

func encoded(encoding, keys string) string {
	return "{node: 1, source: {interfaces: [eth1], encoding: " + encoding + ", " + keys + "}}"
}

func watching(match string) string {
	return "{node: 1, source: {interfaces: [eth1], watch: [{name: w, " + match + "}]}}"
}

func sinking(keys string) string {
	if !strings.Contains(keys, "collector") {
		keys += `, collector: "[::1]:1"`
	}
	return "{node: 1, sink: {interfaces: [eth1], " + keys + "}}"
}

// TestTelemetryWatch adds, changes and removes items of the watch list, one of which names a
// service.
func TestTelemetryWatch(t *testing.T) {
	n, err := config.Parse("node.yaml", []byte(telemetryNode+
		"telemetry: {node: 1, source: {interfaces: [eth1]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Telemetry.Source.Instructions(nil); got != telemetry.NodeID|telemetry.Queue {
		t.Errorf("without metadata, nodes write %x", got)
	}
	service, dscp, oneIn := "web", 46, 7
	metadata := []config.TelemetryMetadata{"latency", "node"}
	for name, change := range map[string]config.TelemetryWatchChange{
		"web": {Service: &service}, "voice": {DSCP: &dscp, Metadata: &metadata}} {
		if n, err = config.AddTelemetryWatch(n, name, change); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := config.AddTelemetryWatch(n, "web", config.TelemetryWatchChange{}); err == nil {
		t.Error("an item was added twice")
	}
	n, err = config.SetTelemetryWatch(n, "web", config.TelemetryWatchChange{OneIn: &oneIn})
	if err != nil || !n.HasTelemetryWatch("voice") || len(n.Telemetry.Source.Watch) != 2 {
		t.Fatalf("%+v, error %v", n.Telemetry.Source.Watch, err)
	}
	said := n.Telemetry.Source.Watch[slices.IndexFunc(n.Telemetry.Source.Watch,
		func(w config.TelemetryWatch) bool { return w.Name == "voice" })].Metadata
	if got := n.Telemetry.Source.MetadataOf(said); !slices.Equal(got,
		[]config.TelemetryMetadata{"node", "latency"}) {
		t.Errorf("of voice, nodes write %v", got)
	}
	n, err = config.DeleteTelemetryWatch(n, "voice")
	if err != nil {
		t.Fatal(err)
	}
	want := config.TelemetryWatch{Name: "web", Service: "web", OneIn: 7, Choice: config.ByChance,
		DSCP: config.AnyDSCP, Protocol: 6,
		Destination:      netip.MustParsePrefix("2001:db8::80/128"),
		DestinationPorts: config.PortRange{First: 443, Last: 443}}
	if got := n.TelemetryWatches(); len(got) != 1 || !cmp.Equal(got[0], want,
		cmpopts.EquateComparable(netip.Prefix{})) {
		t.Errorf("watched are %+v, want %+v", got, want)
	}
	if _, err := config.DeleteTelemetryWatch(n, "voice"); err == nil {
		t.Error("what is not there was removed")
	}
	if _, err := config.SetTelemetryWatch(n, "voice", config.TelemetryWatchChange{}); err == nil {
		t.Error("what is not there was changed")
	}
	if _, err := config.AddTelemetryWatch(&config.Node{Name: "n"}, "x",
		config.TelemetryWatchChange{}); err == nil {
		t.Error("a node that is no source got a watch list")
	}
}

// TestTelemetryRoom has figures that were added up by hand from docs/reference/telemetry.md.
func TestTelemetryRoom(t *testing.T) {
	for section, want := range map[string]int{
		encoded("int", "hops: 3"):                             8 + 4 + 12 + 3*8,
		encoded("int", "hops: 3, slots: 5"):                   8 + 4 + 12 + 6*8,
		encoded("int", "hops: 2, metadata: [ingress-time]"):   8 + 4 + 12 + 2*8,
		encoded("ioam", "hops: 3"):                            40, // 6 + 10 + 24
		encoded("ioam", "hops: 2, metadata: [node]"):          24, // 6 + 10 + 8
		encoded("ioam", "hops: 1, metadata: [latency, node]"): 24,
		encoded("path-tracing", "hops: 12"):                   48, // 6 + 36, in eights
		encoded("path-tracing", "hops: 6"):                    24,
		encoded("int", "hops: 1, oneIn: 0, watch: [{name: a, oneIn: 0, metadata: [node, queue, "+
			"latency]}]"): 0,
		encoded("int", "hops: 1, watch: [{name: a, metadata: [node, queue, latency]}]"): 24 + 12,
	} {
		n, err := config.Parse("node.yaml", []byte(telemetryNode+"telemetry: "+section+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Telemetry.Source.Room(); got != want {
			t.Errorf("%s: %d octets, want %d", section, got, want)
		}
	}
}
