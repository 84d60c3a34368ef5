package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller"
	"sextant/te/topology"
	"sextant/te/topology/format"
)

// wayLab is the lab of paths.yaml with a topology of it, from which the edge computes paths.
type wayLab struct {
	*pathLab
	file string
	node string // of the topology, that the edge is
}

// upWays brings it up. Routing takes the left router; the right one has the less delay.
func upWays(t *testing.T, encapsulation string) *wayLab {
	w := &wayLab{pathLab: upPaths(t, encapsulation), node: "edge"}
	w.file = filepath.Join(nodeOf(t, w.lab, "edge").Dir, "network.json")
	w.network(50, 5)
	return w
}

// network writes the topology, with the delay of links to and from the routers left and right.
func (w *wayLab) network(left, right int64) {
	w.t.Helper()
	b := topology.NewBuilder("paths", time.Millisecond)
	for name, sid := range map[string]string{"edge": "", "in": "", "left": "fcbb:bb00:a1::/48",
		"right": "fcbb:bb00:a2::/48", "out": "fcbb:bb00:a3::/48"} {
		n := topology.NodeSpec{Name: name}
		if sid != "" {
			n.SID = netip.MustParsePrefix(sid)
		}
		_, err := b.AddNode(n)
		must(w.t, err)
	}
	for _, l := range []struct {
		a, b   string
		weight uint32
		delay  int64
	}{{"edge", "in", 1, 1}, {"in", "left", 1, left}, {"left", "out", 1, left},
		{"in", "right", 10, right}, {"right", "out", 10, right}} {
		for _, ends := range [][2]string{{l.a, l.b}, {l.b, l.a}} {
			from, _ := b.Lookup(ends[0])
			to, _ := b.Lookup(ends[1])
			_, err := b.AddEdge(topology.EdgeSpec{From: from, To: to, Weight: l.weight,
				Delay: l.delay, CapacityKbps: 1000, SRLGs: []uint32{l.weight}})
			must(w.t, err)
		}
	}
	text, err := format.Write(b.Build(), format.NodeLink)
	must(w.t, err)
	must(w.t, os.WriteFile(w.file+".new", text, 0o644))
	must(w.t, os.Rename(w.file+".new", w.file))
}

// want has the edge find a way; nil: none.
func (w *wayLab) want(way *config.Way) error {
	w.t.Helper()
	return w.configure(func(e *config.Edge) {
		e.Network = &config.EdgeNetwork{Network: config.Network{Topology: w.file, FRR: "/run/frr",
			Node: w.node}, Controller: w.controller()}
		s := &e.Services[0]
		s.Depth, s.Way = 4, way
		for i := range s.Backends {
			s.Backends[i].Node = "out"
		}
	})
}

func (w *wayLab) controller() string {
	return filepath.Join(nodeOf(w.t, w.lab, "edge").Dir, "controller.sock")
}

// explainedWay is what the edge says of the way of a flow.
func (w *wayLab) explainedWay() *api.Way {
	w.t.Helper()
	list, err := w.client("edge").Explain(w.t.Context(), api.Question{Flow: &api.Flow{
		Source:      netip.MustParseAddrPort("[2001:db8:c::1]:4000"),
		Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP}})
	must(w.t, err)
	return list[0].Way
}

// until waits until the edge has computed a way over a router.
func (w *wayLab) until(router string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		way := w.explainedWay()
		if strings.Contains(strings.Join(way.Links, " "), ">"+router+" ") {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the way is %+v, want one over %s", way, router)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Paths to servers are computed from what a service wants of them, follow the network without a
// broken connection, and are refused, with the bytes, where they can't be as wanted.
func TestWaysToServers(t *testing.T) {
	w := upWays(t, "carrier")
	w.open(10)
	w.take("without a way", "left")
	must(t, w.want(&config.Way{By: config.ByDelay, Disjoint: 1, SIDs: 2}))
	w.take("by least delay", "right")
	way := w.explainedWay()
	if way.Cost != 11 || way.Own != 101 || way.Node != "out" ||
		strings.Join(way.Links, " ") != "edge>in in>right right>out" {
		t.Errorf("explained as %+v", way)
	}
	w.network(5, 50)
	w.until("left")
	w.take("when delays have changed", "left")
	for _, avoid := range []string{"left", "out>left", "risk 1"} {
		err := w.want(&config.Way{By: config.ByIGP, Avoid: []string{avoid}, Disjoint: 1, SIDs: 2})
		if avoid == "risk 1" { // the edge's own link has it, too
			if err == nil || !strings.Contains(err.Error(), "crosses nothing of what is to be "+
				"avoided") {
				t.Errorf("avoid %s: %v", avoid, err)
			}
			continue
		}
		must(t, err)
		w.take("without "+avoid, "right")
	}
	must(t, w.want(&config.Way{By: config.ByIGP, Avoid: []string{"in>right"}, Disjoint: 1,
		SIDs: 2}))
	w.take("without the right router", "left")
	if err := w.want(&config.Way{By: config.ByIGP, Disjoint: 2, SIDs: 2}); err == nil ||
		!strings.Contains(err.Error(), "no second path that shares no link") {
		t.Errorf("two paths over one link: %v", err)
	}
	w.node = "in" // it has both links
	must(t, w.want(&config.Way{By: config.ByIGP, Disjoint: 2, SIDs: 2}))
	w.open(30)
	w.take("over two paths", "left", "right")
	w.node = "edge"
	w.byTelemetry()
}

// byTelemetry has a controller tell of queues, which are before one router, then before the other.
func (w *wayLab) byTelemetry() {
	w.t.Helper()
	c, err := controller.Parse(fmt.Appendf(nil, "topology: %s\napi: {socket: %s}\n"+
		"queueBytes: 1000\npolicy: {name: sextant, expiry: 1m}\n", w.file, w.controller()))
	must(w.t, err)
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, controller.Options{Config: c, Version: "test",
			Log: slog.New(slog.DiscardHandler),
			Open: func(name string) (*topology.Graph, error) {
				text, err := os.ReadFile(name)
				must(w.t, err)
				return format.Read(format.File{Name: name, Text: text}, format.Options{})
			}})
	}()
	w.t.Cleanup(func() { stop(); must(w.t, <-ended) })
	client := controller.NewClient(w.controller())
	queue := func(router string, bytes int64) (err error) {
		for range 50 { // what was seen before fades
			if _, err = client.Report(w.t.Context(), []controller.Report{{
				Flow: api.Flow{Source: netip.MustParseAddrPort("[2001:db8:c::1]:4000"),
					Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP},
				Path: []string{"edge", "in", router, "out"},
				Queues: []controller.QueueState{{From: router, To: "out",
					Bytes: bytes}}}}); err != nil {
				return err
			}
		}
		return nil
	}
	for began := time.Now(); queue("left", 900) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			w.t.Fatalf("the controller does not start within %v", patience)
		}
	}
	must(w.t, w.want(&config.Way{By: config.ByTelemetry, Disjoint: 1, SIDs: 2}))
	w.until("right")
	w.take("with a queue behind the left router", "right")
	must(w.t, queue("left", 0))
	must(w.t, queue("right", 900))
	w.until("left")
	w.take("with a queue behind the right router", "left")
}
