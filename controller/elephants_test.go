package controller

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/cflb"
	"sextant/te/topology/generate"
)

const testKey = "00112233445566778899aabbccddeeff"

// startFabric runs a controller of four spines and four leaves with a host at each, whose next hops
// have addresses against the order of the spines.
func startFabric(t *testing.T, text string, changes ...func(*Config)) (*Client, func()) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := &strings.Builder{}
	fmt.Fprintf(file, "cflb:\n  keyFile: %s\n  ipv4: {fields: source-port, radix: 4}\n"+
		"  ipv6: {fields: flow-label, radix: 4}\n%s  hosts:\n", key, text)
	for leaf := range 4 {
		fmt.Fprintf(file, "  - {prefix: 10.0.%d.0/24, router: leaf%d}\n", leaf, leaf)
		fmt.Fprintf(file, "  - {prefix: \"2001:db8:%d::/48\", router: leaf%d}\n", leaf, leaf)
	}
	file.WriteString("links:\n")
	for leaf := range 4 {
		for spine := range 4 {
			fmt.Fprintf(file, "- {from: leaf%d, to: spine%d, gateways: [10.9.%d.1, "+
				"\"fd00::%d\"]}\n", leaf, spine, 9-spine, 9-spine)
		}
	}
	return start(t, file.String(), changes...)
}

func tcp4(leaf, port, to int) api.Flow {
	return api.Flow{Protocol: "tcp", Source: netip.AddrPortFrom(netip.AddrFrom4(
		[4]byte{10, 0, byte(leaf), 1}), uint16(port)), Destination: netip.AddrPortFrom(
		netip.AddrFrom4([4]byte{10, 0, byte(to), 1}), 5001)}
}

// spineOf decodes where a leaf sends a flow: its next hops are numbered against the spines.
func spineOf(t *testing.T, s Steered, fields cflb.Fields) string {
	t.Helper()
	key, err := config.ParseCFLBKey(testKey)
	if err != nil {
		t.Fatal(err)
	}
	codec, err := cflb.New(cflb.Parameters{Fields: fields, Radix: 4,
		Key: [cflb.KeyLength]byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	p := cflb.Packet{Src: s.Flow.Source.Addr(), Dst: s.Flow.Destination.Addr(), Protocol: 6,
		HasPorts: true, SrcPort: s.Flow.Source.Port(), DstPort: s.Flow.Destination.Port(),
		HopLimit: 64}
	if s.FlowLabel != nil {
		p.FlowLabel = *s.FlowLabel
	}
	digit, choice, _ := codec.Digit(p, 0)
	if choice != cflb.Controlled {
		t.Fatalf("%+v is %s", s, choice)
	}
	return fmt.Sprint("spine", 3-digit)
}

// Ports and labels that the controller answers with take the path as a router decodes them, and
// "recover" says so; a port that a source chose by chance, too.
func TestPortsOfAPath(t *testing.T) {
	c, stop := startFabric(t, "")
	defer stop()
	for spine := range 4 {
		path := []string{"leaf0", fmt.Sprint("spine", spine), "leaf2"}
		v6 := api.Flow{Protocol: "tcp", Source: netip.MustParseAddrPort("[2001:db8:0::1]:0"),
			Destination: netip.MustParseAddrPort("[2001:db8:2::1]:443")}
		for fields, flow := range map[cflb.Fields]api.Flow{cflb.SourcePort: tcp4(0, 0, 2),
			cflb.FlowLabel: v6} {
			s, err := c.Ports(t.Context(), PathQuestion{Flow: flow, Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if got := spineOf(t, s, fields); got != path[1] || len(s.Choices) != 1 ||
				s.Choices[0].Index != 3-spine || s.Choices[0].NextHops != 4 {
				t.Errorf("%+v goes by %s", s, got)
			}
			back, err := c.Recover(t.Context(), PathQuestion{Flow: s.Flow, FlowLabel: s.FlowLabel})
			if err != nil || !slices.Equal(back.Path, path) || back.Choices[0].How != "controlled" {
				t.Errorf("%+v, recovered: %+v, %v", s, back, err)
			}
		}
		s := Steered{Flow: tcp4(1, 40000+spine, 2)}
		back, err := c.Recover(t.Context(), PathQuestion{Flow: s.Flow})
		if err != nil || back.Path[1] != spineOf(t, s, cflb.SourcePort) {
			t.Errorf("recovered: %+v, %v", back, err)
		}
	}
	for _, bad := range []struct {
		q    PathQuestion
		text string
	}{
		{PathQuestion{Flow: tcp4(0, 0, 2), Path: []string{"leaf1", "spine0", "leaf2"}}, "begins"},
		{PathQuestion{Flow: tcp4(0, 0, 9), Path: []string{"leaf0", "spine0", "leaf2"}}, "10.0.9.1"},
		{PathQuestion{Flow: tcp4(0, 0, 2), Path: []string{"leaf0", "spine0", "leaf1", "spine0",
			"leaf2"}}, "no shortest path"},
		{PathQuestion{Flow: tcp4(0, 0, 2)}, "begins"},
	} {
		if _, err := c.Ports(t.Context(), bad.q); err == nil ||
			!strings.Contains(err.Error(), bad.text) {
			t.Errorf("%+v: %v, want %q", bad.q, err, bad.text)
		}
	}
}

// place gives a flow from one leaf to another a path.
func place(t *testing.T, c *Client, name string, from, to int) Placements {
	t.Helper()
	out, err := c.Place(t.Context(), []Placement{{Name: name, Flow: tcp4(from, 0, to)}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Elephants spread over the links, whatever the objective: four of a leaf to four others, each way
// another. Renewal keeps what they have, release makes room, a link that fails moves them.
func TestElephants(t *testing.T) {
	for _, best := range []string{"flows", "weight", "coloring"} {
		t.Run(best, func(t *testing.T) {
			c, stop := startFabric(t, "  best: "+best+"\n")
			defer stop()
			spines := map[string]string{}
			for i := range 3 {
				out := place(t, c, fmt.Sprint("e", i), 0, 1+i)
				s := out.Items[0]
				spines[spineOf(t, s.Steered, cflb.SourcePort)] = s.Name
				if s.Path[1] != spineOf(t, s.Steered, cflb.SourcePort) || s.Moved ||
					s.By != best || s.Seconds < 50 {
					t.Errorf("%+v", s)
				}
			}
			list, err := c.Elephants(t.Context())
			if err != nil || len(list) != 3 || best != "weight" && len(spines) != 3 {
				t.Fatalf("%d elephants at %v, %v", len(list), spines, err)
			}
			again, err := c.Place(t.Context(), []Placement{{Name: "e1", Flow: list[1].Flow,
				Seconds: 500}})
			if err != nil || again.Items[0].Moved || again.Items[0].Seconds < 490 ||
				again.Items[0].Flow != list[1].Flow || len(again.Moved) != 0 {
				t.Errorf("renewed: %+v, %v", again, err)
			}
			if _, err := c.SetLink(t.Context(), LinkState{From: list[1].Path[0],
				To: list[1].Path[1]}); err != nil {
				t.Fatal(err)
			}
			again, err = c.Place(t.Context(), []Placement{{Name: "e1", Flow: list[1].Flow}})
			if err != nil || !again.Items[0].Moved || again.Items[0].Path[1] == list[1].Path[1] {
				t.Errorf("after the failure of its link: %+v, %v", again, err)
			}
			if err := c.Release(t.Context(), "e0", "e1", "e2"); err != nil {
				t.Error(err)
			}
			if status, err := c.Status(t.Context()); err != nil || status.Elephants != 0 {
				t.Errorf("%d elephants are left, %v", status.Elephants, err)
			}
		})
	}
}

// A controller that knows nothing of a flow takes over the path that its port takes.
func TestElephantIsTakenOver(t *testing.T) {
	c, stop := startFabric(t, "")
	want := place(t, c, "a", 0, 1).Items[0]
	place(t, c, "b", 0, 1)
	stop()
	c, stop = startFabric(t, "")
	defer stop()
	place(t, c, "c", 0, 1) // would get the same path
	out, err := c.Place(t.Context(), []Placement{{Name: "a", Flow: want.Flow}})
	if err != nil || out.Items[0].Moved || !slices.Equal(out.Items[0].Path, want.Path) {
		t.Errorf("%+v becomes %+v, %v", want, out, err)
	}
}

// By coloring no link has two flows while no leaf has more than spines; who has to move is named,
// with ports of the new path.
func TestElephantsByColoring(t *testing.T) {
	c, stop := startFabric(t, "  best: coloring\n")
	defer stop()
	rng := rand.New(rand.NewPCG(1, 0))
	known, moved := map[string]Steered{}, 0
	take := func(name string, from, to int) {
		out := place(t, c, name, from, to)
		known[name] = out.Items[0].Steered
		for _, m := range out.Moved {
			if m.Flow == known[m.Name].Flow || !m.Moved {
				t.Errorf("%+v moved", m)
			}
			known[m.Name] = m.Steered
			moved++
		}
		checkAlone(t, known)
	}
	var to [16]int // of each of a leaf's four hosts
	for host, other := range rng.Perm(16) {
		to[host] = other / 4
		take(fmt.Sprint(host), host/4, to[host])
	}
	for range 60 { // two exchange their destinations
		a, b := rng.IntN(16), rng.IntN(16)
		if a == b {
			continue
		}
		names := []string{fmt.Sprint(a), fmt.Sprint(b)}
		if err := c.Release(t.Context(), names...); err != nil {
			t.Fatal(err)
		}
		delete(known, names[0])
		delete(known, names[1])
		to[a], to[b] = to[b], to[a]
		take(names[0], a/4, to[a])
		take(names[1], b/4, to[b])
	}
	if moved == 0 {
		t.Error("no flow had to move, so the test shows nothing of that")
	}
}

// checkAlone wants no link to have two of the flows, by what their ports say to routers.
func checkAlone(t *testing.T, known map[string]Steered) {
	t.Helper()
	used := map[string]string{}
	for name, s := range known {
		if len(s.Path) < 3 {
			continue
		}
		spine := spineOf(t, s, cflb.SourcePort)
		for _, link := range []string{s.Path[0] + ">" + spine, spine + ">" + s.Path[2]} {
			if other := used[link]; other != "" {
				t.Errorf("%s has flows %s and %s", link, other, name)
			}
			used[link] = name
		}
	}
}

// What can't be is refused, and changes nothing.
func TestElephantsRefused(t *testing.T) {
	c, stop := startFabric(t, "")
	defer stop()
	place(t, c, "a", 0, 1)
	good := Placement{Name: "b", Flow: tcp4(0, 0, 2)}
	for text, bad := range map[string]Placement{
		"a name": {Flow: tcp4(0, 0, 1)}, "is there twice": good,
		"10.0.7.1": {Name: "x", Flow: tcp4(0, 0, 7)}, "is the name of": {Name: "a",
			Flow: tcp4(0, 0, 2)},
		"two IP versions": {Name: "x", Flow: api.Flow{Protocol: "tcp",
			Source: good.Flow.Source, Destination: netip.MustParseAddrPort("[::1]:1")}},
		"choose flows": {Name: "x", Flow: good.Flow, By: "luck"},
		"seconds":      {Name: "x", Flow: good.Flow, Seconds: -1},
		"tcp or udp":   {Name: "x", Flow: api.Flow{}},
	} {
		_, err := c.Place(t.Context(), []Placement{good, bad})
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", bad, err, text)
		}
	}
	if err := c.Release(t.Context(), "a", "zz"); codeOf(err) != api.NotFound {
		t.Errorf("released: %v", err)
	}
	list, err := c.Elephants(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	plain, stopPlain := start(t, "")
	defer stopPlain()
	if _, err := plain.Elephants(t.Context()); codeOf(err) != api.Conflict ||
		!strings.Contains(err.Error(), "section cflb") {
		t.Errorf("without a network: %v", err)
	}
}

// A file that does not fit the network says what to write.
func TestFabricRefused(t *testing.T) {
	g, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(testKey), 0o600); err != nil {
		t.Fatal(err)
	}
	const ipv4, host = "  ipv4: {fields: source-port}\n", "{prefix: 10.0.0.0/9, router: leaf0}"
	const sound = ipv4 + "  keyFile: KEY\n"
	for text, file := range map[string]string{
		"keyFile":          ipv4 + "  hosts: [" + host + "]",
		"no family":        "  keyFile: KEY\n  hosts: [" + host + "]",
		"radix 1":          "  keyFile: KEY\n  ipv4: {fields: source-port, radix: 1}",
		"unknown":          "  keyFile: KEY\n  ipv4: {fields: source-port, radius: 4}",
		"cflb.hosts":       sound,
		"router \"leaf9\"": sound + "  hosts: [{prefix: 10.0.0.0/8, router: leaf9}]",
		"cflb.best":        sound + "  best: x\n  hosts: [" + host + "]",
		"both have hosts": sound + "  best: coloring\n  hosts: [" + host +
			", {prefix: 10.128.0.0/9, router: spine0}]",
	} {
		c, err := Parse([]byte("topology: x\ncflb:\n" + strings.ReplaceAll(file, "KEY", key)))
		if err == nil {
			n, namesErr := newNames(g, c)
			if namesErr != nil {
				t.Fatal(namesErr)
			}
			_, err = newFabric(c, n, nil, 0)
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Routers with hosts that no neighbor tells of now keep a controller from nothing: it says which,
// and their hosts get no paths until they are there.
func TestFabricWithAbsentRouters(t *testing.T) {
	g, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(testKey), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Parse([]byte(`topology: isis
block: fcbb:bb00::/32
routers: [{name: leaf0, cflb: 1}, {name: leaf8, cflb: 9}]
cflb:
  keyFile: ` + key + `
  ipv4: {fields: source-port}
  hosts: [{prefix: 10.0.0.0/16, router: leaf0}, {prefix: 10.8.0.0/16, router: leaf8}]
`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := newController(Options{Config: config,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, g)
	if err != nil {
		t.Fatal(err)
	}
	defer c.journal.close()
	warnings := strings.Join(c.absent, "\n")
	for _, text := range []string{`has no router "leaf8"`, "10.8.0.0/16"} {
		if !strings.Contains(warnings, text) {
			t.Errorf("warnings %q, want %q", c.absent, text)
		}
	}
	f := c.elephants.fabric
	if _, err := f.routerOf(netip.MustParseAddr("10.0.1.1")); err != nil {
		t.Errorf("a host that is there: %v", err)
	}
	if _, err := f.routerOf(netip.MustParseAddr("10.8.1.1")); codeOf(err) != api.NotFound {
		t.Errorf("a host that is not: %v", err)
	}
}
