package edge

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/agent/network"
	"sextant/config"
	"sextant/datapath/model"
	"sextant/packet/srv6"
	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/way"
)

// ways follows the network on which the ways of services are computed. The owner goroutine has it.
type ways struct {
	follows *config.EdgeNetwork // that is followed; nil: none
	known   *network.Known      // as it was read last; nil: not yet
	ahead   *network.Known      // for the node file that Build was given last
	problem string              // why it can't be read
	weights map[protection.Link]float64
	silence string      // why the controller tells nothing
	search  *way.Search // on the network that was searched last; nil: it has changed
	on      searched    // what that network was
	detours detours
	stop    context.CancelFunc // of what follows
	nudge   chan struct{}      // the topology may have changed
}

// congestionInterval is how often the controller is asked.
const congestionInterval = 500 * time.Millisecond

// serviceWay is what is wanted of the ways to a service's backends, and what was found.
type serviceWay struct {
	want    *config.Way
	nodes   map[netip.Addr]string // that backends are behind, by SID
	answers map[string]way.Answer // by node
	names   map[netip.Addr]string // of the SIDs on all paths
	problem string                // why nothing was found; "": it was
	at      time.Time
}

// sids are the paths to a backend; none: routing's own way. w may be nil.
func (w *serviceWay) sids(b config.Backend) (lists [][]netip.Addr) {
	if w == nil {
		return nil
	}
	for _, p := range w.answers[w.nodes[b.SID]].Paths {
		lists = append(lists, p.SIDs)
	}
	return lists
}

// nameOf is the router or link that a SID on a path stands for; "" if that is not known.
func (w *serviceWay) nameOf(sid netip.Addr) string {
	if w == nil {
		return ""
	}
	return w.names[sid]
}

// short says why backends are not reached as wanted; "" if they are.
func (w *serviceWay) short() string {
	if w.problem != "" {
		return w.problem
	}
	for _, node := range slices.Sorted(maps.Keys(w.answers)) {
		if short := w.answers[node].Short; short != "" {
			return short
		}
	}
	return ""
}

// age is how long ago the way was computed.
func (w *serviceWay) age() time.Duration { return time.Since(w.at) }

// searched names a network on which ways are computed.
type searched struct {
	known *network.Known
	block srv6.Block
	from  string
}

// searchOn prepares to find paths on a network, once for all services that want a way.
func (w *ways) searchOn(known *network.Known, n *config.Node) *way.Search {
	on := searched{known, n.Domain.Block, n.Edge.Network.Node}
	if w.search == nil || w.on != on {
		view := known.View(on.block, nil)
		w.on = on
		w.search = way.NewSearch(way.Network{View: view.View, Block: view.Block, From: on.from,
			Weights: w.weights})
		w.detours.foresee(w.search, known == w.known)
	}
	return w.search
}

// end stops what follows the network.
func (w *ways) end() {
	if w.stop != nil {
		w.stop()
	}
	w.detours.end()
	*w = ways{}
}

// followNetwork begins to follow the network that the edge names.
func (e *Room) followNetwork() {
	var next *config.EdgeNetwork
	if e.Node.Edge != nil {
		next = e.Node.Edge.Network
	}
	w := &e.ways
	if w.follows == nil && next == nil || w.follows != nil && next != nil && *w.follows == *next {
		return
	}
	ahead := w.ahead
	w.end()
	if w.follows = next; next == nil {
		return
	}
	w.known = ahead // until it is read again
	var ctx context.Context
	ctx, w.stop = context.WithCancel(e.Life)
	w.nudge = make(chan struct{}, 1)
	go network.Watch(ctx, network.SourceOf(&next.Network, e.Node.Domain.Block, e.Speaker()),
		w.nudge, network.Watcher{
			Read: func(n *network.Known) {
				_ = e.Do(ctx, func() { e.networkRead(n) }) // else it is the end of the watch
			},
			Failed: func(err error) {
				_ = e.Do(ctx, func() { w.problem = err.Error() })
			},
		})
	if next.Controller != "" {
		go e.followCongestion(ctx, next.Controller)
	}
}

// RoutingNews is role.RoutingListener.
func (e *Room) RoutingNews() {
	select {
	case e.ways.nudge <- struct{}{}:
	default: // it has been nudged already, or nothing follows
	}
}

// followCongestion asks the controller again and again.
func (e *Room) followCongestion(ctx context.Context, socket string) {
	tick := time.NewTicker(congestionInterval)
	defer tick.Stop()
	for {
		weights, err := network.Congestion(ctx, socket)
		_ = e.Do(ctx, func() { e.congestionTold(weights, err) })
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// congestionTold takes in what the controller said. If it says nothing, links count as they did.
func (e *Room) congestionTold(weights map[protection.Link]float64, err error) {
	w := &e.ways
	if w.silence = ""; err != nil {
		w.silence = err.Error()
		return
	}
	if maps.Equal(weights, w.weights) {
		return
	}
	w.weights, w.search = weights, nil
	e.waysChanged(func(s *config.Way) bool { return s.By == config.ByTelemetry })
}

// networkRead takes in a topology.
func (e *Room) networkRead(n *network.Known) {
	e.ways.known, e.ways.problem = n, ""
	e.Log.Info("topology of the edge's ways", "nodes", n.Graph.Nodes(), "edges", n.Graph.Edges())
	e.waysChanged(func(*config.Way) bool { return true })
	e.keepDetours()
}

// waysChanged computes the ways of the services concerned, and brings those into force that are
// others. Connections go on: a path is not part of what a connection is found by.
func (e *Room) waysChanged(concerned func(*config.Way) bool) {
	w := &e.ways
	if e.Runs == nil {
		return
	}
	for i := range e.Runs.Services {
		s := &e.Runs.Services[i]
		if s.Way == nil || !concerned(s.Way) {
			continue
		}
		s.way = e.computeWay(&s.Service, s.way, e.Node, w.known)
		e.retryLater(e.refreshPaths(s, &s.Service, s.Members))
	}
	e.reorder()
}

// readAhead reads the topology of a node file that names another than the one that is followed, for
// all its services. What is followed stays: the node file may be refused.
func (e *Room) readAhead(next *config.EdgeNetwork) {
	w := &e.ways
	w.ahead = w.known
	if next == nil || w.follows != nil && *w.follows == *next {
		return
	}
	if known, err := network.ReadFile(next.Topology); err == nil {
		w.ahead = known
	}
}

// wayOf computes the way of a service that is about to be configured; nil: it wants none. A new one
// that can't be as wanted is refused, as far as the network is known. One that could be before, or
// was when the agent ran last, is kept, with a warning: links come back.
func (e *Room) wayOf(s *config.Service, n *config.Node) (*serviceWay, error) {
	if s.Way == nil {
		return nil, nil
	}
	var before *serviceWay
	if running := e.Runs.service(s.Endpoint); running != nil {
		before = running.way
	}
	found := e.computeWay(s, before, n, e.ways.ahead)
	isNew := before == nil || !sameWay(before.want, s.Way)
	if short := found.short(); short != "" && e.ways.ahead != nil && isNew && e.Node != nil {
		return nil, &config.Problem{Kind: config.ErrConflict,
			Text: fmt.Sprintf("service %q: %s", s.Name, short), Mend: wayMend(s, n, found)}
	}
	return found, nil
}

// wayMend says what would make a way fit, with the bytes that it takes.
func wayMend(s *config.Service, n *config.Node, found *serviceWay) string {
	needs := 0
	for _, a := range found.answers {
		needs = max(needs, a.Needs)
	}
	if needs == 0 || needs > config.MaxPathSIDs {
		return "avoid less, ask for one path, or write node: NAME for each backend"
	}
	const idBytes, sidBytes, headers, srh = 2, 16, 40, 8
	bytes, room := idBytes*(needs+s.Depth), srv6.MaxCarrierCSIDs*idBytes
	text := fmt.Sprintf("write sids: %d; with chains of %d SIDs they take %d bytes, and an "+
		"address has %d", needs, s.Depth, bytes, room)
	switch {
	case n.Edge.Encapsulation != config.Carrier:
		return fmt.Sprintf("write sids: %d; with chains of %d SIDs they take %d bytes, of %d for "+
			"SIDs in the segment routing header", needs, s.Depth, sidBytes*(needs+s.Depth),
			sidBytes*srv6.MaxCarrierCSIDs)
	case bytes > room:
		text += fmt.Sprintf(": path and chain then have one each, in %d bytes of headers",
			headers+srh+sidBytes)
	}
	return text
}

// computeWay finds the paths of a service as far as the network is known; nil: not at all. Those
// that it has by telemetry stay if others are hardly better.
func (e *Room) computeWay(s *config.Service, before *serviceWay, n *config.Node,
	known *network.Known) *serviceWay {
	w := &serviceWay{want: s.Way, nodes: map[netip.Addr]string{}, at: time.Now(),
		names: map[netip.Addr]string{}}
	if known == nil {
		w.problem = "the topology has not been read yet"
		return w
	}
	search := e.ways.searchOn(known, n)
	var nodes []string
	for _, b := range s.Backends {
		node, err := nodeOf(known, b)
		if err != nil {
			w.problem = err.Error() // the others have their paths
			continue
		}
		w.nodes[b.SID] = node
		nodes = append(nodes, node)
	}
	intent := intentOf(s.Way, n.Edge.Encapsulation)
	var earlier map[string]way.Answer
	if before != nil && sameWay(before.want, s.Way) {
		earlier = before.answers
	}
	answers, err := search.Compute(intent, nodes, earlier)
	if err == nil {
		err = w.nameAll(answers, n)
	}
	if err != nil {
		w.problem = err.Error()
		return w
	}
	w.answers = answers
	return w
}

// nameAll notes what the SIDs on paths are called. It fails if there is one that the edge can't
// write.
func (w *serviceWay) nameAll(answers map[string]way.Answer, n *config.Node) error {
	for _, node := range slices.Sorted(maps.Keys(answers)) {
		for _, p := range answers[node].Paths {
			if err := w.name(p, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *serviceWay) name(p way.Path, n *config.Node) error {
	for i, sid := range p.SIDs {
		w.names[sid] = p.Names[i]
		ids, err := n.Domain.Block.CSIDs(sid)
		if n.Edge.Encapsulation == config.Carrier && (err != nil || len(ids) != 1) {
			return fmt.Errorf("SID %s of %s is not one identifier in block %s, as encapsulation "+
				"carrier wants", sid, p.Names[i], n.Domain.Block)
		}
	}
	return nil
}

// nodeOf is the node that a backend is behind: the one that it names, or whose SID it has, or that
// is called as it is.
func nodeOf(n *network.Known, b config.Backend) (string, error) {
	if b.Node != "" {
		if _, ok := n.Graph.Lookup(b.Node); !ok {
			return "", fmt.Errorf("topology %s has no node %q, which backend %s names",
				n.Graph.Name(), b.Node, b.Name)
		}
		return b.Node, nil
	}
	for v := range n.Graph.Nodes() {
		if spec := n.Graph.Node(topology.Node(v)); spec.SID.IsValid() && spec.SID.Contains(b.SID) ||
			spec.Name == b.Name {
			return spec.Name, nil
		}
	}
	return "", fmt.Errorf("topology %s has no node with SID %s or name %q; write node: and the "+
		"one that backend %s is behind", n.Graph.Name(), b.SID, b.Name, b.Name)
}

// intentOf translates what is configured.
func intentOf(c *config.Way, encapsulation config.Encapsulation) way.Intent {
	i := way.Intent{By: way.Metric(c.By), Paths: c.Disjoint, MaxSIDs: c.SIDs,
		Model: segment.ForcedAdjacency}
	if encapsulation == config.Carrier {
		i.Model = segment.Forced // the SID of a link takes two identifiers
	}
	for _, text := range c.Avoid {
		if risk, ok := config.Risk(text); ok {
			i.Risks = append(i.Risks, risk)
		} else if link, ok := protection.ParseLink(text); ok && strings.Contains(text, ">") {
			i.Links = append(i.Links, link)
		} else {
			i.Nodes = append(i.Nodes, text)
		}
	}
	return i
}

func sameWay(a, b *config.Way) bool {
	return a.By == b.By && a.Disjoint == b.Disjoint && a.SIDs == b.SIDs &&
		slices.Equal(a.Avoid, b.Avoid)
}

// wayWarnings are about ways that are not as wanted.
func (e *Room) wayWarnings() (list []string) {
	if e.Runs == nil {
		return nil
	}
	if e.ways.problem != "" {
		list = append(list, "ways of services: "+e.ways.problem+
			"; they stay as they were computed before, if they were")
	}
	if e.ways.silence != "" {
		list = append(list, "ways by telemetry: the controller does not answer: "+e.ways.silence)
	}
	for i := range e.Runs.Services {
		s := &e.Runs.Services[i]
		if s.way == nil {
			continue
		}
		if short := s.way.short(); short != "" {
			list = append(list, fmt.Sprintf("service %s: %s", s.Name, short))
		}
	}
	return list
}

// wayView says how a flow came to its path to a backend; nil if the service wants no way, or the
// backend has a path of its own, which goes before. copied: the packet takes both paths.
func (e *Room) wayView(s *Service, backend uint16, hash uint64, copied bool) *api.Way {
	if s.way == nil {
		return nil
	}
	w := s.way
	v := &api.Way{By: w.want.By, Avoid: w.want.Avoid, Problem: w.short(), Copied: copied,
		AgeSeconds: w.age().Seconds()}
	for i, m := range s.Members {
		if m.ID != backend {
			continue
		}
		if len(s.PathTo(s.Backends[i])) > 0 {
			return nil
		}
		v.Node = w.nodes[s.Backends[i].SID]
		a := w.answers[v.Node]
		v.Least, v.Own, v.Paths, v.Cost = a.Least, a.Own, len(a.Paths), a.Own
		if len(a.Paths) > 0 {
			p := a.Paths[0] // of the first copy
			if !copied {
				p = model.PathOfFlow(a.Paths, hash)
			}
			v.Cost = p.Cost
			for _, l := range p.Links {
				v.Links = append(v.Links, l.String())
			}
		}
	}
	return v
}
