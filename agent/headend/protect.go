package headend

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/network"
	"sextant/agent/pathprobe"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/routing/bgp"
	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/srpolicy"
)

// Protections is how the head-end keeps what protections promise. Probes, links and the topology
// are watched by goroutines that call back into the owner's; paths are computed in one of their own
// (plan.go).
type Protections struct {
	*role.Core
	headend interface { // as protections see it
		steers() bool
		ComputedNow() state.Computed
		SetComputed(state.Computed) error
		keepPolicies()
		settleTraffic()
	}
	speaker func() *bgp.Speaker // nil: the node speaks no BGP
	change  func(ctx context.Context, edit func(*config.Node) (*config.Node, error)) (
		[]config.Change, error)
	adding    sync.Mutex           // of protections
	Config    *config.Protect      // that runs; nil: none
	Network   *network.Known       // as it was read last; nil: not yet
	problem   string               // why the topology can't be read
	down      map[string]bool      // interfaces that are down
	Running   []*RunningProtection // in the order of the configuration
	offered   *RunningProtection   // that was admitted, and is being added; nil: none
	prober    *pathprobe.Prober
	stop      context.CancelFunc // of the watches
	nudge     chan struct{}      // the topology may have changed
	planning  bool               // a computation runs
	decided   time.Time          // when the latest table for the head-end was begun,
	installed time.Time          // and when it was installed
	again     bool               // and another one is wanted then
	owes      string             // why the kernel does not do what the states say; "": it does
	retryAt   time.Duration      // when that is tried again, on the agent's clock
	Seed      uint64             // of the times between trials of silent lists
	// durations of computations, in seconds
	computations *prometheus.HistogramVec
}

// RunningProtection is a protection with its plan and its state.
type RunningProtection struct {
	config.Protection
	Intent  protection.Intent
	known   bool // a plan was there once
	State   protection.State
	Plan    protection.Plan
	proven  bool   // the plan's paths are those of the prover
	problem string // why there is no plan
	changed time.Time
	carries []int // slots along which the kernel sends packets
	// news that other paths may have to carry for; nil: there are none
	cause  *api.Replacement
	Latest *api.Replacement          // of the replacements; nil: there was none
	moves  uint64                    // how often other paths came to carry
	came   map[uint32]api.MergedPath // what the egress said last, by flow
	merging
	hearing
}

// IntentOf translates a configured protection.
func IntentOf(p config.Protection, s *config.Protect) protection.Intent {
	return protection.Intent{
		From: s.Node, To: p.To, Copies: p.Copies, Spares: p.Spares,
		Disjoint: segment.Disjointness(p.Disjoint), MaxSIDs: p.SIDs,
		Model: segment.Model(p.Model), RateKbps: int64(p.RateKbps), BoundPermille: s.BoundPermille,
	}
}

// reprotect brings protections from what ran to the configuration.
func (p *Protections) reprotect() {
	next := p.Node.Protect
	if len(config.Diff(&config.Node{Protect: p.Config}, &config.Node{Protect: next})) == 0 {
		return
	}
	before := p.Config
	p.Config = next
	if next == nil {
		p.end()
		p.Running, p.Network, p.problem = nil, nil, ""
		p.InstallProtections()
		p.headend.keepPolicies()
		return
	}
	earlier := p.Running
	p.Running = nil
	for _, c := range next.Protections {
		i := slices.IndexFunc(earlier, func(e *RunningProtection) bool { return e.Name == c.Name })
		intent := IntentOf(c, next)
		switch {
		case i >= 0 && earlier[i].Intent == intent:
			earlier[i].Protection = c
			p.Running = append(p.Running, earlier[i])
		case i >= 0: // what it did is done until a plan for the new intent is there
			e := *earlier[i]
			e.Protection, e.Intent, e.proven = c, intent, false
			e.State.Intent = intent
			p.Running = append(p.Running, &e)
		default:
			p.Running = append(p.Running, &RunningProtection{Protection: c, Intent: intent})
		}
	}
	p.acceptOffer()
	if before == nil || before.Topology != next.Topology || before.FRR != next.FRR ||
		before.Node != next.Node ||
		before.Probe != next.Probe ||
		!slices.Equal(before.Links, next.Links) {
		p.end()
		p.Network = nil
		p.watchProtections()
	}
	p.InstallProtections()
	p.headend.keepPolicies()
	p.plan()
}

// acceptOffer takes what was computed, and asked, before a protection came to be.
func (p *Protections) acceptOffer() {
	for _, x := range p.Running {
		if p.offered != nil && p.offered.Name == x.Name && !x.known {
			x.Begin(p.offered.Plan)
			x.proven, x.merging = true, p.offered.merging
		}
	}
	p.offered = nil
}

// Begin is role.Change.
func (x *RunningProtection) Begin(plan protection.Plan) {
	x.Plan, x.known, x.problem, x.changed = plan, true, "", time.Now()
	x.State = protection.New(x.Intent, plan)
}

// end stops what watches.
func (p *Protections) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	if p.prober != nil {
		if err := p.prober.Close(); err != nil {
			p.Log.Warn("the prober did not end in order", "error", err)
		}
		p.prober = nil
	}
}

// find returns a protection that runs, nil if there is none.
func (p *Protections) find(name string) *RunningProtection {
	if i := slices.IndexFunc(p.Running,
		func(x *RunningProtection) bool { return x.Name == name }); i >= 0 {
		return p.Running[i]
	}
	return nil
}

// InstallProtections makes the head-end and the prober do what the protections' states say. What
// the head-end refuses is owed.
func (p *Protections) InstallProtections() {
	if !p.headend.steers() {
		p.owe(nil)
		return
	}
	var next state.Computed
	for _, x := range p.Running {
		if !x.known {
			next = keeping(next, x.Name, p.headend.ComputedNow())
			continue
		}
		next.Policies = append(next.Policies, x.policy(p.Node, p.headend.ComputedNow()))
		for _, m := range x.Matches {
			m.Policy = x.Name
			next.Rules = append(next.Rules, role.SteerRule(m))
		}
	}
	p.decided = time.Now()
	var err error
	if !sameComputed(next, p.headend.ComputedNow()) {
		err = p.headend.SetComputed(next)
	}
	if p.owe(err); err == nil {
		p.installed = time.Now()
		for _, x := range p.Running {
			x.carries = x.State.Carrying()
		}
	}
	p.setProbes()
}

// owe notes whether the head-end took what it was given last. What it refused is a warning, and is
// given to it again.
func (p *Protections) owe(refused error) {
	before := p.owes
	if p.owes = ""; refused != nil {
		p.owes = "protections can't be installed, and the previous paths carry; tried again " +
			"each second: " + refused.Error()
		p.retryAt = p.Now() + role.LearnInterval
	}
	if p.owes == before {
		return
	}
	if p.owes != "" {
		p.Log.Error(p.owes)
	}
	p.Rewarn()
}

// reinstall is InstallProtections when other paths may come to carry.
func (p *Protections) reinstall() {
	before := p.carrying()
	p.InstallProtections()
	for _, x := range p.Running {
		if !slices.Equal(before[x.Name], x.carries) {
			p.moved(x)
		}
	}
}

// carrying are the slots along which the kernel sends packets, by protection.
func (p *Protections) carrying() map[string][]int {
	slots := map[string][]int{}
	for _, x := range p.Running {
		slots[x.Name] = x.carries
	}
	return slots
}

// sameComputed tells that the head-end would do the same for both.
func sameComputed(c, o state.Computed) bool {
	return slices.Equal(c.Rules, o.Rules) && slices.EqualFunc(c.Policies, o.Policies,
		func(a, b srpolicy.Policy) bool {
			return a.Name == b.Name && a.DropIfInvalid == b.DropIfInvalid && a.MTU == b.MTU &&
				slices.EqualFunc(a.Paths, b.Paths, samePath)
		})
}

func samePath(a, b srpolicy.CandidatePath) bool {
	return a.Action == b.Action && slices.EqualFunc(a.Lists, b.Lists,
		func(a, b srpolicy.List) bool {
			return a.Name == b.Name && a.Redundancy == b.Redundancy && a.Flow == b.Flow &&
				slices.Equal(a.Segments, b.Segments)
		})
}

// keeping takes over what an earlier agent did for a protection, until there is a plan.
func keeping(c state.Computed, name string, now state.Computed) state.Computed {
	for _, p := range now.Policies {
		if p.Name == name {
			c.Policies = append(c.Policies, p)
		}
	}
	for _, r := range now.Rules {
		if r.Policy == name {
			c.Rules = append(c.Rules, r)
		}
	}
	return c
}

// policy is what the head-end does for a protection now.
func (x *RunningProtection) policy(n *config.Node, now state.Computed) srpolicy.Policy {
	form, _ := srpolicy.ParseRedundancy(string(x.Redundancy)) // checked when it was read
	policy := x.State.Policy(protection.Installation{
		Name: x.Name, FirstFlow: uint32(x.Flow), Egress: x.Egress, Form: form,
		Places: placesOf(now, x.Name),
	})
	policy.DropIfInvalid = x.DropIfInvalid
	policy.MTU = uint16(x.InnerMTU(n.Domain))
	return policy
}

// placesOf are the names of a policy's lists, in their order.
func placesOf(c state.Computed, policy string) (names []string) {
	for _, p := range c.Policies {
		if p.Name == policy && len(p.Paths) == 1 {
			for _, l := range p.Paths[0].Lists {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

// setProbes probes all lists that are known.
func (p *Protections) setProbes() {
	if p.prober == nil {
		return
	}
	var lists []pathprobe.List
	for _, x := range p.Running {
		sid := x.Egress
		if x.ProbeSID.IsValid() {
			sid = x.ProbeSID
		}
		for i, slot := range x.State.Slots {
			if slot.Used {
				lists = append(lists, pathprobe.List{Key: pathprobe.Key{Name: x.Name, Slot: i},
					Segments: slot.Path.Segments(sid)})
			}
		}
	}
	if err := p.prober.Set(lists); err != nil {
		p.Log.Error("lists can't be probed", "error", err)
	}
}

// listsProbed takes in what the prober found. What fell silent together is looked at together: if
// that is all there is, it is the way back, or this machine was busy.
func (p *Protections) listsProbed(changes []pathprobe.Change) {
	for _, x := range p.Running {
		next := x.State
		for _, c := range changes {
			if c.Name != x.Name {
				continue
			}
			status := "silent"
			if c.Answers {
				status = "answers"
			}
			p.Tell(api.Event{Policy: x.Name, List: protection.ListName(c.Slot), Status: status,
				Reason: "probes from the head-end"})
			if after := next.Probed(c.Slot, c.Answers); !slices.Equal(after.Carrying(),
				next.Carrying()) || after.Due() && !next.Due() {
				x.noticed(api.Replacement{Because: protection.ListName(c.Slot) + " " + status,
					Heard: c.Heard, Noticed: c.Noticed})
			}
			next = next.Probed(c.Slot, c.Answers)
		}
		if next.ReturnSuspected() && !x.State.ReturnSuspected() {
			p.Tell(api.Event{
				Policy: x.Name, Status: "all silent",
				Reason: "the way back of probes is suspected, and no path is switched off",
			})
		}
		p.changeState(x, next)
	}
}

// changeState makes a state the protection's. A list that is to take over does so at once; that one
// is to be left out has time until paths are computed, which takes less than to tell the kernel
// twice.
func (p *Protections) changeState(x *RunningProtection, next protection.State) {
	before, now := x.State.Carrying(), next.Carrying()
	if x.State = next; next.Due() {
		p.plan()
		takesOver := slices.ContainsFunc(now,
			func(slot int) bool { return !slices.Contains(before, slot) })
		if p.planning && !takesOver {
			return
		}
	}
	p.reinstall()
}

// noticed keeps the latest news that other paths may have to carry for.
func (x *RunningProtection) noticed(news api.Replacement) { x.cause = &news }

// moved notes that other paths carry, as was just installed.
func (p *Protections) moved(x *RunningProtection) {
	x.changed = p.installed
	x.moves++
	if x.cause != nil {
		x.Latest, x.cause = x.cause, nil
		x.Latest.Decided, x.Latest.Installed = p.decided, p.installed
	}
}

// interfaceChanged takes in that a local link is up or down.
func (p *Protections) interfaceChanged(name string, up bool) {
	i := slices.IndexFunc(p.Config.Links,
		func(l config.LocalLink) bool { return l.Interface == name })
	if i < 0 || p.down[name] == !up {
		return
	}
	if p.down = maps.Clone(p.down); p.down == nil {
		p.down = map[string]bool{}
	}
	if p.down[name] = !up; up {
		delete(p.down, name)
	}
	p.Log.Info("a local link changed", "interface", name, "link", p.Config.Links[i].Link,
		"up", up)
	what := "down"
	if up {
		what = "up"
	}
	p.networkChanged("interface " + name + " " + what)
}

// networkChanged looks at once at what can be told without computing: whether links are known to be
// down.
func (p *Protections) networkChanged(because string) {
	down := p.downLinks()
	for _, x := range p.Running {
		x.noticed(api.Replacement{Because: because, Noticed: time.Now()})
		if x.known {
			p.changeState(x, x.State.Checked(
				func(path protection.Path) string { return crossesDown(path, down) }))
		}
	}
	p.plan()
}

func crossesDown(path protection.Path, down []protection.Link) string {
	for _, l := range down {
		if path.Crosses(l) {
			return "link " + l.String() + " is down"
		}
	}
	return ""
}

// downLinks are those of the local interfaces that are down, as the topology calls them now.
func (p *Protections) downLinks() []protection.Link {
	if p.Network == nil {
		return nil
	}
	local := map[protection.Link]bool{}
	for _, l := range p.Config.Links {
		if link, ok := protection.ParseLink(l.Link); ok {
			local[link] = local[link] || p.down[l.Interface]
		}
	}
	return p.Network.Down(local)
}
