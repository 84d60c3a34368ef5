package controller

import (
	"fmt"
	"time"

	"sextant/te/reroute"
	"sextant/te/topology"
)

// parallel names a link by its ends, and its place among those between them.
type parallel struct {
	from, to string
	place    int
}

func parallels(g *topology.Graph) map[parallel]topology.Edge {
	edges := map[parallel]topology.Edge{}
	for e := range topology.Edge(g.Edges()) {
		name := parallel{from: g.Node(g.From(e)).Name, to: g.Node(g.To(e)).Name}
		for {
			if _, taken := edges[name]; !taken {
				break
			}
			name.place++
		}
		edges[name] = e
	}
	return edges
}

// followTopology notes which links are gone, and which are back. With links that were never there,
// or that are not what they were, weights start again; flows keep their paths where these still
// are.
func (c *Controller) followTopology(g *topology.Graph, err error) {
	if err != nil {
		if c.problem == "" {
			c.options.Log.Warn("the topology can't be read; the last one is used on", "error", err)
		}
		c.problem = "the topology can't be read, and the last one is used: " + err.Error()
		return
	}
	c.problem = ""
	up := map[topology.Edge]bool{}
	for e := range topology.Edge(g.Edges()) {
		old := c.known(g, e, up)
		if old == topology.NoEdge {
			c.beginAnew(g)
			return
		}
		up[old] = true
	}
	for e := range topology.Edge(c.graph.Edges()) {
		c.setUp(e, up[e])
	}
}

// known is the link that one of a topology is, without those that others are. Which of parallel
// links has gone, their SIDs say: their places change with it.
func (c *Controller) known(g *topology.Graph, told topology.Edge,
	taken map[topology.Edge]bool) topology.Edge {
	from, ok := c.graph.Lookup(g.Node(g.From(told)).Name)
	if !ok {
		return topology.NoEdge
	}
	to := g.Node(g.To(told)).Name
	for _, e := range c.graph.Out(from) {
		if !taken[e] && c.graph.Node(c.graph.To(e)).Name == to && c.sameLink(e, g, told) {
			return e
		}
	}
	return topology.NoEdge
}

// sameLink tells whether a link is what it was, as far as paths, weights and segment lists go: its
// delay, which is measured and changes all the time, is part of none.
func (c *Controller) sameLink(e topology.Edge, g *topology.Graph, told topology.Edge) bool {
	old, fresh := c.graph.Edge(e), g.Edge(told)
	end := func(g *topology.Graph, v topology.Node) any { return g.Node(v).SID }
	return old.CapacityKbps == fresh.CapacityKbps && old.SID == fresh.SID &&
		old.Weight == fresh.Weight &&
		end(c.graph, old.From) == end(g, fresh.From) && end(c.graph, old.To) == end(g, fresh.To)
}

// beginAnew takes another topology.
func (c *Controller) beginAnew(g *topology.Graph) {
	next := &Controller{options: c.options, graph: g, seed: c.seed, begun: c.begun}
	if err := next.takeGraph(); err != nil {
		c.problem = "the topology has changed, and the last one is used: " + err.Error()
		return
	}
	for t, f := range c.decider.Flows() {
		if !f.Pinned {
			continue
		}
		path, err := next.names.path(c.names.routers(f.Path))
		if err == nil {
			err = next.decider.Pin(t, path, c.now())
		}
		if err != nil {
			c.options.Log.Warn("a pinned flow is pinned no more", "flow", t, "error", err)
		}
	}
	c.carryOver(next)
	if next.elephants != nil {
		if lost := next.elephants.adopt(c.elephants, time.Now()); lost > 0 {
			c.options.Log.Warn("elephants have no path in the new topology", "elephants", lost)
		}
		c.elephants = next.elephants
	}
	c.graph, c.names, c.decider, c.down = g, next.names, next.decider, next.down
	c.decider.OnReplaced(c.forgotten)
	c.segments, c.places, c.sink.places = next.segments, next.places, next.places
	c.absent = next.absent
	c.spreading = next.spreading
	c.giveAgain()
	c.spreadAnew()
	c.options.Log.Info("another topology; weights start again", "nodes", g.Nodes(), "links",
		g.Edges())
}

// carryOver lets flows keep the paths that they were given, where another topology has them: their
// lists may be others there. Those of the other flows are cleared, as their lists may name what is
// gone.
func (c *Controller) carryOver(next *Controller) {
	for t, g := range c.gifts.flows {
		if f, known := next.decider.Flow(t); known && f.Pinned {
			continue
		}
		path, err := next.names.path(c.names.routers(g.path))
		if err == nil {
			_, err = next.segments.of(path)
		}
		if _, known := c.decider.Flow(t); err == nil && known && g.state != pathRefused &&
			next.decider.Adopt(t, path, c.now()) {
			continue
		}
		if h := c.gifts.heads[g.router]; h != nil && h.session != nil {
			h.session.clear(t)
		}
	}
}

// takeGraph makes what is known of a graph: nothing yet.
func (c *Controller) takeGraph() (err error) {
	settings, err := c.options.Config.Policy.settings()
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	config, absent := c.options.Config.present(c.graph)
	c.absent = absent
	if c.names, err = newNames(c.graph, config); err != nil {
		return err
	}
	if c.places, err = newPlaces(c.graph, config, c.names); err != nil {
		return err
	}
	if c.segments, err = newSegments(c.graph, config); err != nil {
		return err
	}
	if c.decider, err = reroute.NewDecider(c.graph.All(), settings, c.seed); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	c.down = map[topology.Edge]bool{}
	if err := c.takePrefixes(config); err != nil {
		return err
	}
	return c.takeFabric(config)
}

// setUp notes that a link is up or down, and returns the decisions that follow.
func (c *Controller) setUp(e topology.Edge, up bool) []Decision {
	if c.down[e] == !up {
		return nil
	}
	c.down[e] = !up
	var decisions []Decision
	c.elephants.setUp(e, up)
	c.decider.SetUp(e, up, c.now(), func(d reroute.Decision) {
		decisions = append(decisions, c.decided(d))
	})
	c.spreadAnew()
	c.options.Log.Info("link", "from", c.graph.Node(c.graph.From(e)).Name, "to",
		c.graph.Node(c.graph.To(e)).Name, "up", up, "decisions", len(decisions))
	return decisions
}
