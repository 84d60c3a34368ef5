package controller

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundpb"
	"sextant/agent/tracing"
	"sextant/packet/flow"
	"sextant/te/topology"
)

// How far a path is on its way to the head-end.
const (
	pathWaits   = "waits"   // for the head-end, or its answer
	pathApplied = "applied" // the head-end has it
	pathRefused = "refused"
)

// given is a path that a flow was given.
type given struct {
	router   string // the head-end's
	path     []topology.Edge
	segments []netip.Addr
	state    string
	reason   string        // of a refusal
	number   uint64        // of the gift: a later one replaces it
	took     time.Duration // from the decision until it was applied for the first time
	decided  time.Time     // when it was given for the first time
}

// gifts are the paths that flows were given, and when each is to be renewed. They belong to the
// event loop.
type gifts struct {
	flows    map[flow.Tuple]*given
	renewals []renewal // in the order of their times, as all paths are held for as long
	number   uint64
	heads    map[string]*head // by router; those that are connected, or were
}

type renewal struct {
	flow   flow.Tuple
	number uint64
	at     time.Time
}

// head is a router that has connected.
type head struct {
	session   *session // nil: it is not connected now
	since     time.Time
	version   string
	capacity  uint64
	groups    uint64 // how many prefixes can have groups
	followed  bool
	epoch     uint64 // that it follows
	applied   uint64 // paths
	refused   uint64
	adopted   uint64 // paths that it had when it connected, and that are known again
	lastError string // of the last refusal
}

func newGifts() *gifts {
	return &gifts{flows: map[flow.Tuple]*given{}, heads: map[string]*head{}}
}

// give sends a flow's path to its head-end.
func (c *Controller) give(t flow.Tuple, path []topology.Edge) {
	if !c.options.Config.Southbound.serves() {
		return
	}
	router := c.graph.Node(c.graph.From(path[0])).Name
	g := &given{router: router, path: slices.Clone(path), decided: time.Now()}
	var err error
	if g.segments, err = c.segments.of(path); err != nil {
		c.gifts.flows[t] = g
		c.refuse(t, g, err.Error())
		return
	}
	c.leave(t, g)
	c.gifts.flows[t] = g
	c.send(t, g)
}

// leave takes a flow's path from a head-end that it has left for another.
func (c *Controller) leave(t flow.Tuple, next *given) {
	old := c.gifts.flows[t]
	if old == nil || old.router == next.router {
		return
	}
	if h := c.gifts.heads[old.router]; h != nil && h.session != nil {
		h.session.clear(t)
	}
}

// send puts a path on its way, and notes when it is to be renewed.
func (c *Controller) send(t flow.Tuple, g *given) {
	c.gifts.number++
	g.number, g.state, g.reason = c.gifts.number, pathWaits, ""
	hold := c.options.Config.Southbound.Hold
	c.gifts.renewals = append(c.gifts.renewals, renewal{t, g.number, time.Now().Add(hold / 2)})
	if h := c.gifts.heads[g.router]; h != nil && h.session != nil && h.followed {
		h.session.set(southbound.Path{Flow: t, Segments: g.segments, Hold: hold})
	}
}

// refuse notes that a path is not in force: the flow goes where it went before.
func (c *Controller) refuse(t flow.Tuple, g *given, reason string) {
	g.state, g.reason = pathRefused, reason
	c.decider.Lose(t)
	if h := c.gifts.heads[g.router]; h != nil {
		h.refuses(reason)
	}
}

func (h *head) refuses(reason string) {
	h.refused++
	h.lastError = reason
}

// forgotten notes that a flow is known no more, in favour of another: its path is renewed no more.
func (c *Controller) forgotten(t flow.Tuple) {
	c.replaced++
	if g := c.gifts.flows[t]; g != nil {
		if h := c.gifts.heads[g.router]; h != nil && h.session != nil {
			h.session.out.forget(t)
		}
		delete(c.gifts.flows, t)
	}
	if all := &c.gifts.renewals; len(*all) > 2*len(c.gifts.flows)+forgottenMost {
		*all = slices.DeleteFunc(*all, func(r renewal) bool {
			g := c.gifts.flows[r.flow]
			return g == nil || g.number != r.number
		})
	}
}

// giveAgain gives flows that are still known their paths in another topology.
func (c *Controller) giveAgain() {
	c.gifts.flows, c.gifts.renewals = map[flow.Tuple]*given{}, nil
	for t, f := range c.decider.Flows() {
		if len(f.Path) > 0 {
			c.give(t, f.Path)
		}
	}
}

// renew sends the paths whose time is half over again, of flows that are still known.
func (c *Controller) renew(now time.Time) {
	due := 0
	for _, r := range c.gifts.renewals {
		if r.at.After(now) {
			break
		}
		due++
		g := c.gifts.flows[r.flow]
		if g == nil || g.number != r.number {
			continue
		}
		if _, known := c.decider.Flow(r.flow); !known || g.state == pathRefused {
			delete(c.gifts.flows, r.flow)
			continue
		}
		c.send(r.flow, g)
	}
	c.gifts.renewals = slices.Delete(c.gifts.renewals, 0, due)
}

// connected takes a router's session in place of the one that it had. The error says why not.
func (c *Controller) connected(s *session, hello *southboundpb.Hello) error {
	if _, err := c.names.node(s.router); err != nil {
		return err
	}
	h := c.gifts.heads[s.router]
	if h == nil {
		h = &head{}
		c.gifts.heads[s.router] = h
	} else if h.session != nil {
		h.session.end(fmt.Errorf("router %s has connected again", s.router))
	}
	h.session, h.since = s, time.Now()
	h.version, h.capacity, h.groups = hello.GetVersion(), hello.GetCapacity(), hello.GetGroups()
	c.forgetSpread(s.router)
	h.followed, h.epoch = false, 0
	c.options.Log.Info("head-end connected", "router", s.router, "address", s.address)
	return nil
}

func (c *Controller) disconnected(s *session, err error) {
	h := c.gifts.heads[s.router]
	if h == nil || h.session != s {
		return
	}
	h.session, h.followed, h.epoch = nil, false, 0
	c.options.Log.Info("head-end disconnected; its flows keep their paths until their time is over",
		"router", s.router, "error", err)
}

// standing notes whether a head-end follows this controller. One that begins to gets all paths that
// are meant for it.
func (c *Controller) standing(s *session, followed bool, epoch uint64) {
	h := c.gifts.heads[s.router]
	if h == nil || h.session != s {
		return
	}
	begins := followed && !h.followed
	if h.followed != followed || h.epoch != epoch {
		c.options.Log.Info("head-end", "router", s.router, "follows", followed, "epoch", epoch)
	}
	h.followed, h.epoch = followed, epoch
	if !followed {
		c.yield(s.router)
	}
	if !begins {
		return
	}
	c.forgetSpread(s.router)
	c.spread(time.Now())
	for t, g := range c.gifts.flows {
		if g.router == s.router && g.state != pathRefused {
			c.send(t, g)
		}
	}
}

// yield forgets what flows of a head-end were given that follows another controller: that one says
// which paths they have, and the head-end does when this one is followed again. Pins stay.
func (c *Controller) yield(router string) {
	for t, g := range c.gifts.flows {
		if f, _ := c.decider.Flow(t); g.router == router && !f.Pinned {
			c.drop(t)
		}
	}
}

func (c *Controller) drop(t flow.Tuple) {
	delete(c.gifts.flows, t)
	c.decider.Lose(t)
}

// applied notes what a head-end did with changes: the paths that it was sent, without those that it
// refused.
func (c *Controller) applied(s *session, sent []flow.Tuple, refused map[flow.Tuple]string) {
	h := c.gifts.heads[s.router]
	if h == nil {
		return
	}
	for _, t := range sent {
		g := c.gifts.flows[t]
		if g == nil || g.router != s.router {
			continue
		}
		if reason, is := refused[t]; is {
			c.refuse(t, g, reason)
			continue
		}
		h.applied++
		if g.state == pathWaits {
			g.applied(c.applySeconds)
			c.trace(t, g)
		}
		g.state = pathApplied
	}
}

// applied notes that a head-end has the path for the first time.
func (g *given) applied(seconds prometheus.Histogram) {
	if g.took == 0 {
		g.took = time.Since(g.decided)
		seconds.Observe(g.took.Seconds())
	}
}

// trace is a span from the decision about a flow until its head-end has the path.
func (c *Controller) trace(t flow.Tuple, g *given) {
	if !tracing.On() {
		return
	}
	f := flowOf(t)
	tracing.Record("path", time.Now().Add(-g.took), "source", f.Source.String(),
		"destination", f.Destination.String(), "protocol", string(f.Protocol),
		"head-end", g.router, "path", strings.Join(c.names.routers(g.path), " "))
}

// held takes over a path that a head-end has from another controller: the flow is known again, and
// its path is renewed as long as reports mention it.
func (c *Controller) held(s *session, p southbound.Path) {
	from, err := c.names.node(s.router)
	if err != nil {
		return
	}
	if g := c.gifts.flows[p.Flow]; g != nil {
		f, _ := c.decider.Flow(p.Flow)
		if f.Pinned || g.state == pathWaits || slices.Equal(g.segments, p.Segments) {
			return
		}
		c.drop(p.Flow) // another one has changed it since
	}
	path, ok := c.segments.path(from, p.Segments)
	if !ok || !c.decider.Adopt(p.Flow, path, c.now()) {
		return
	}
	g := &given{router: s.router, path: path, segments: p.Segments, state: pathApplied,
		decided: time.Now()}
	c.gifts.number++
	g.number = c.gifts.number
	c.gifts.flows[p.Flow] = g
	hold := c.options.Config.Southbound.Hold
	c.gifts.renewals = append(c.gifts.renewals, renewal{p.Flow, g.number,
		time.Now().Add(min(hold, p.Hold) / 2)})
	slices.SortStableFunc(c.gifts.renewals, func(a, b renewal) int { return a.at.Compare(b.at) })
	if h := c.gifts.heads[s.router]; h != nil {
		h.adopted++
	}
}

// headEnds lists the routers that have connected, by name.
func (c *Controller) headEnds() []HeadEnd {
	list := []HeadEnd{}
	for router, h := range c.gifts.heads {
		out := HeadEnd{Router: router, Connected: h.session != nil, Since: h.since,
			Version: h.version, Capacity: h.capacity, Groups: h.groups,
			Followed: h.followed, Epoch: h.epoch,
			Applied: h.applied, Refused: h.refused, Adopted: h.adopted, LastError: h.lastError}
		if h.session != nil {
			out.Address = h.session.address
		}
		list = append(list, out)
	}
	slices.SortFunc(list, func(a, b HeadEnd) int { return strings.Compare(a.Router, b.Router) })
	return list
}

// headWarnings say why flows do not move although it was decided.
func (c *Controller) headWarnings(heads []HeadEnd) (warnings []string) {
	if len(heads) == 0 {
		return []string{"no head-end has connected: decisions move no flow"}
	}
	for _, h := range heads {
		switch {
		case !h.Connected:
			warnings = append(warnings, fmt.Sprintf("head-end %s is not connected: its flows keep "+
				"the paths that they have until their time is over", h.Router))
		case h.Epoch > c.epoch:
			warnings = append(warnings, fmt.Sprintf("head-end %s follows another controller, of "+
				"epoch %d; this one has %d, and moves no flow there", h.Router, h.Epoch, c.epoch))
		case h.Followed && h.Groups == 0 && len(c.spreading.prefixes) > 0:
			warnings = append(warnings, fmt.Sprintf("head-end %s does not spread flows that "+
				"begin; give its node file headend.spread", h.Router))
		case h.LastError != "" && h.Refused > 0:
			warnings = append(warnings, fmt.Sprintf("head-end %s refused %d paths, the last one "+
				"because: %s", h.Router, h.Refused, h.LastError))
		}
	}
	return warnings
}
