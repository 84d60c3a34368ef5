// Package network reads the topology on which paths are computed, and follows its changes.
package network

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sextant/config"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
	"sextant/routing/linkstate"
	"sextant/te/protection"
	"sextant/te/topology"
	"sextant/te/topology/format"
)

// Known is a topology that was read. It does not change.
type Known struct {
	Graph *topology.Graph
	text  []byte // by which a change is known
}

// View is the network without links that are down.
func (n *Known) View(block srv6.Block, down []protection.Link) protection.Network {
	var edges []topology.Edge
	for _, l := range down {
		for _, direction := range []protection.Link{l, l.Reverse()} {
			if e, ok := protection.EdgeOf(n.Graph, direction); ok {
				edges = append(edges, e)
			}
		}
	}
	return protection.Network{View: n.Graph.All().Without(edges...), Block: block}
}

// Down names the links of this topology that are down, by whether each local one is, with the names
// that these have while all are told of. Once routers tell no more of one of parallel links, those
// behind it are called otherwise. Those that are gone are taken to be down; while others that are
// down are still told of, what can be one of these is down.
func (n *Known) Down(local map[protection.Link]bool) []protection.Link {
	off := map[protection.Link]bool{}
	for l, down := range local {
		all, downs := 0, 0
		for other, down := range local {
			if other.From == l.From && other.To == l.To {
				all = max(all, other.Number+1)
				if down {
					downs++
				}
			}
		}
		told := n.between(l)
		gone := max(all-told, 0)
		if !down || gone >= downs {
			continue
		}
		for number := max(l.Number-gone, 0); number <= min(l.Number, told-1); number++ {
			off[protection.Link{From: l.From, To: l.To, Number: number}] = true
		}
	}
	return slices.Collect(maps.Keys(off))
}

// between is how many links there are with the ends of one.
func (n *Known) between(l protection.Link) int {
	for l.Number = 0; ; l.Number++ {
		if _, is := protection.EdgeOf(n.Graph, l); !is {
			return l.Number
		}
	}
}

const (
	// interval is how often a topology's file is looked at.
	interval = time.Second
	// BGP tells a topology piece by piece: it is read when nothing came for settleQuiet, or
	// settleMost after the first piece.
	settleQuiet = 100 * time.Millisecond
	settleMost  = time.Second
)

// Source is where a topology comes from.
type Source struct {
	name    string       // as in the node file
	speaker *bgp.Speaker // nil: the node speaks no BGP
	frr     linkstate.FRR
}

// SourceOf is the source that a node file names.
func SourceOf(n *config.Network, block srv6.Block, speaker *bgp.Speaker) Source {
	return Source{name: n.Topology, speaker: speaker,
		frr: linkstate.FRR{Directory: n.FRR, Block: block}}
}

// Watcher is told what a source says, one thing after the other.
type Watcher struct {
	Read   func(*Known) // a topology, or another one
	Failed func(error)  // it can't be read, for another reason than before
}

// Watch reads the topology when it begins and when it has changed, until ctx ends. Nudge says that
// a source which is not looked at again and again may have changed.
func Watch(ctx context.Context, source Source, nudge <-chan struct{}, w Watcher) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last []byte
	problem := ""
	for ctx.Err() == nil {
		n, err := source.Read(ctx)
		switch {
		case err != nil && err.Error() != problem:
			problem = err.Error()
			w.Failed(err)
		case err == nil && (problem != "" || !bytes.Equal(n.text, last)):
			last, problem = n.text, ""
			w.Read(n)
		}
		due := tick.C
		if source.name == config.FromBGP && err == nil {
			due = nil // the neighbors' news come by nudges
		}
		select {
		case <-ctx.Done():
			return
		case <-nudge:
			settle(ctx, nudge)
		case <-due:
		}
	}
}

// settle waits until no more news comes.
func settle(ctx context.Context, news <-chan struct{}) {
	most := time.After(settleMost)
	for {
		select {
		case <-news:
		case <-time.After(settleQuiet):
			return
		case <-most:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Read reads a file, or what routers have told so far.
func (s Source) Read(ctx context.Context) (*Known, error) {
	var g *topology.Graph
	var err error
	switch s.name {
	case config.FromBGP:
		g, err = s.readBGP()
	case config.FromOSPF6:
		g, _, err = s.frr.OSPF6(ctx)
	case config.FromISIS:
		g, _, err = s.frr.ISIS(ctx)
	default:
		return ReadFile(s.name)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the topology: %w", err)
	case g.Nodes() == 0:
		return nil, fmt.Errorf("no router has told of itself by %s yet", s.name)
	}
	return &Known{g, []byte(fingerprint(g))}, nil
}

// ReadFile reads a topology from a file.
func ReadFile(path string) (*Known, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the topology: %w", err)
	}
	g, err := format.Read(format.File{Name: filepath.Base(path), Text: text}, format.Options{})
	return &Known{g, text}, err
}

func (s Source) readBGP() (*topology.Graph, error) {
	if s.speaker == nil {
		return nil, fmt.Errorf("the node speaks no BGP; restart the agent if bgp is new in its " +
			"node file")
	}
	if neighbor, telling := s.speaker.TellingLinkState(); telling {
		return nil, fmt.Errorf("neighbor %s has not told all that it knows yet", neighbor)
	}
	routes, err := s.speaker.LinkState()
	if err != nil {
		return nil, err
	}
	g, _, err := linkstate.Graph("bgp", routes)
	if err == nil && g.Nodes() == 0 {
		err = fmt.Errorf("no neighbor has told of a node by BGP-LS; let the families of one " +
			"include link-state")
	}
	return g, err
}

// fingerprint is all that a graph holds.
func fingerprint(g *topology.Graph) string {
	var b strings.Builder
	for v := range topology.Node(g.Nodes()) {
		fmt.Fprintln(&b, g.Node(v))
	}
	for e := range topology.Edge(g.Edges()) {
		fmt.Fprintln(&b, g.Edge(e))
	}
	return b.String()
}
