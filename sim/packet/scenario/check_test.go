package scenario

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"sextant/te/topology"
)

// Scenarios that cannot hold are refused before they run, by the key that is wrong: they would
// overflow, never end, take all memory, or simulate something else.
func TestRefused(t *testing.T) {
	const links, hosts = "links: {rate: 1Gbps, fabric: 2Gbps, delay: 2us}", ", hosts: 3}"
	for _, c := range []struct{ replace, by, complaint string }{
		{"delay: 2us", "delay: -2us", "links.delay: -2µs"},
		{"delay: 2us", "delay: 2", "this is no time; write it with its unit"},
		{"delay: 2us", "delay: 2 miles", "write times like 2us"},
		{"load: 0.3", "load: 60%", "this is no number"},
		{"packets: 50", "packets: many", "this is no whole number"},
		{"60ms", "3000h", "duration: 3000h"},
		{"packets: 50", "packets: 10000000000000", "queue.packets: 1000"},
		{"packets: 50", "host: 100000000000000000", "queue.host"},
		{"mark: 20", "mark: -1", "queue.mark: -1"},
		{"control: dctcp", "subflows: 1000000", "transport.subflows"},
		{"control: dctcp", "subflows: -3", "transport.subflows: -3"},
		{"control: dctcp", "minRTO: -1ms", "transport.minRTO"},
		{"control: dctcp", "delayedAckUs: -40000", "transport.delayedAckUs"},
		{"control: dctcp", "reordering: 4294967296", "transport.reordering"},
		{"convergence: 1ms", "probe: -1ms", "paths.probe"},
		{"convergence: 1ms", "controller: {backoff: -1ms}", "paths.controller.backoff"},
		{"convergence: 1ms", "controller: {groups: -1ms}", "paths.controller.groups"},
		{"back: 40ms", "back: 10ms", "failures[0].back: 10ms is not after"},
		{"at: 20ms, back: 40ms", "at: 60ms", "failures[0].at: 60ms; the run ends at 60ms"},
		{"duration", "seeds: 2000000000\nduration", "seeds: 2000000000"},
		{"20000", "99999999999999999", "traffic.sizes: 99999999999999999 bytes"},
		{hosts, "}", "topology.hosts: a leaf-spine needs it"},
		{hosts, ", hosts: 3, k: 4}", "topology.k: a leaf-spine has none"},
		{"leaf-spine", "leafspine", "topology.kind: \"leafspine\""},
		{"leaf-spine, leaves: 2, spines: 2, hosts: 3", "vl2, da: 4, di: 4", "topology.hosts"},
		{"leaf-spine, leaves: 2, spines: 2, hosts: 3", "file", "topology.file"},
	} {
		text := strings.Replace(small, c.replace, c.by, 1)
		if text == small {
			t.Errorf("%q is not in the scenario", c.replace)
		}
		if _, err := Parse([]byte(text), nil); err == nil ||
			!strings.Contains(err.Error(), c.complaint) {
			t.Errorf("%s for %s: %v, want it to say %q", c.by, c.replace, err, c.complaint)
		}
	}
	for _, rate := range []string{"1e300", "1e-300", "inf", "999", "101Tbps"} {
		if got, err := ParseRate(rate); err == nil {
			t.Errorf("rate %s is %g", rate, got)
		}
	}
}

// A delay of 0 is one, not that of the topology: less than with a microsecond on each link.
func TestNoDelay(t *testing.T) {
	none := strings.Replace(small, "delay: 2us", "delay: 0s", 1)
	one := strings.Replace(small, "delay: 2us", "delay: 1us", 1)
	absent := strings.Replace(small, ", delay: 2us", "", 1)
	a, b, c := run(t, none, "ecmp", 1), run(t, one, "ecmp", 1), run(t, absent, "ecmp", 1)
	if a.P50Ms > b.P50Ms-0.01 || b.P50Ms != c.P50Ms {
		t.Errorf("medians of %g ms without delay, %g with 1 us, %g as the topology has it",
			a.P50Ms, b.P50Ms, c.P50Ms)
	}
}

// Schemes that the mode cannot have are refused before a run, by name.
func TestCheckScheme(t *testing.T) {
	rates := "mode: flow" + small[:strings.Index(small, "failures")]
	for scheme, in := range map[string][2]bool{ // of packets, of rates
		"letflow": {true, false}, "ecmp": {true, true}, "cflb": {true, true},
		"rerouted": {false, false}, "luck": {false, false},
	} {
		for i, text := range []string{small, rates} {
			c, err := Parse([]byte(text), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.CheckScheme(scheme); (err == nil) != in[i] {
				t.Errorf("%s in mode %s: %v", scheme, c.Mode, err)
			}
		}
	}
	c, err := Parse([]byte(rates), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Paths.Reroute = time.Millisecond
	if err := c.CheckScheme("rerouted"); err != nil {
		t.Error(err)
	}
}

// Times by hand: three hosts of one leaf with 1 Gb/s and 1 us. A handshake is two packets of 64
// bytes over two links; ten full segments of 1500 bytes of each of two senders leave the leaf one
// behind the other, the first sender's first, since its handshake was served first. The third flow
// has one byte, and an empty network.
func TestByHand(t *testing.T) {
	const text = `
topology: {kind: leaf-spine, leaves: 1, spines: 1, hosts: 3}
links: {rate: 1Gbps, delay: 1us}
transport: {control: reno}
traffic: {pattern: trace, trace: flows}
duration: 10ms
`
	const flows = "start_s,from,to,bytes\n0,host0-0,host0-2,14480\n0,host0-1,host0-2,14480\n" +
		"0.005,host0-0,host0-1,1\n"
	r := runWith(t, text, files{"flows": flows}, "ecmp", 1)
	const (
		perByte, delay = 8_000, 1_000_000 // ps
		full           = 1500 * perByte
		handshake      = 2 * 2 * (64*perByte + delay)
		atLeaf         = handshake + full + delay // the first sender's first segment
	)
	want := []int64{atLeaf + 19*full + delay, atLeaf + 20*full + delay,
		5_000_000_000 + handshake + 2*(53*perByte+delay)}
	for i, f := range r.Ended {
		if int64(f.Finish) != want[i] || f.Flow.Src != []int{0, 1, 0}[i] {
			t.Errorf("flow %d from host %d ends at %d ps, want %d", i, f.Flow.Src, f.Finish,
				want[i])
		}
	}
	if len(r.Ended) != len(want) || r.Drops+r.Retransmissions > 0 {
		t.Errorf("%d flows, %d drops, %d retransmissions", len(r.Ended), r.Drops,
			r.Retransmissions)
	}
}

// A run ends soon after it is asked to, although all of its packets are in a small part of it.
func TestEndsSoon(t *testing.T) {
	text := strings.Replace(small, "load: 0.3}", "load: 0.3, until: 100us}", 1)
	c, g := parsed(t, text, nil)
	least := 1.0
	if _, err := c.Run(g, "ecmp", 1, func(part float64) error {
		least = min(least, part)
		return nil
	}); err != nil || least > 1e-4 {
		t.Errorf("%v; nothing asks before a part %g is over", err, least)
	}
}

// Hosts alone send: spines over a single leaf have one neighbor, too. The rate of links between
// switches is no matter of hosts, not of those that relay either.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		topology      string
		hosts, fabric int
	}{
		{"{kind: leaf-spine, leaves: 1, spines: 2, hosts: 3}", 3, 4},
		{"{kind: leaf-spine, leaves: 2, spines: 1, hosts: 1}", 2, 4},
		{"{kind: fat-tree, k: 2}", 2, 8}, {"{kind: bcube, n: 2, k: 1}", 4, 0},
		{"{kind: vl2, da: 2, di: 2, hosts: 2}", 2, 8},
	} {
		rest := small[strings.Index(small, "\nlinks"):]
		s, g := parsed(t, "topology: "+c.topology+rest, nil)
		n, err := s.Network(g)
		if err != nil {
			t.Fatal(err)
		}
		fabric := 0
		for l := range g.Edges() {
			if n.Rate(l) > 1.5e9/8 {
				fabric++
			}
		}
		if len(n.Hosts) != c.hosts || fabric != c.fabric {
			t.Errorf("%s: %d hosts, %d links between switches; want %d and %d", c.topology,
				len(n.Hosts), fabric, c.hosts, c.fabric)
		}
	}
}

// A host to which no link leads is refused: what was sent there seemed to arrive at its switch.
func TestUnreached(t *testing.T) {
	b := topology.NewBuilder("one way", 1000)
	for _, name := range []string{"a", "b", "switch"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, ends := range [][2]topology.Node{{0, 2}, {1, 2}, {2, 1}} {
		if _, err := b.AddEdge(topology.EdgeSpec{From: ends[0], To: ends[1], Weight: 1,
			CapacityKbps: 1e6}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Parse([]byte("topology: {kind: file, file: x}\ntraffic: {pattern: permutation}\n"+
		"duration: 1ms\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Network(b.Build()); err == nil ||
		!strings.Contains(err.Error(), `leads to host "a"`) {
		t.Errorf("%v", err)
	}
}

// The page has each way to choose paths, and each key by its last name.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/howto/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, scheme := range Schemes() {
		if !strings.Contains(page, "\n| `"+scheme+"` |") {
			t.Errorf("no row of the scheme %s", scheme)
		}
	}
	var keys func(of reflect.Type)
	keys = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return
		}
		for i := range of.NumField() {
			key := of.Field(i).Tag.Get("yaml")
			if key != "" && !regexp.MustCompile(`\b`+key+`\b`).MatchString(page) {
				t.Errorf("no key %s of %s", key, of.Name())
			}
			keys(of.Field(i).Type)
		}
	}
	keys(reflect.TypeFor[Scenario]())
}
