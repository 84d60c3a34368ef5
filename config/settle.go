package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Values that depend on others where the file does not have them.

func (n *Node) settle(given func(string) bool) []*Problem {
	if !given("domain.overhead") {
		n.Domain.Overhead = overheadOf(n.Edge)
	}
	if n.BGP != nil && !given("bgp.onStop") {
		n.BGP.OnStop = onStopOf(n)
	}
	n.Routing.setDatapaths(n, given)
	if given("secret") && given("secretFile") {
		p := invalid("both secret and secretFile are given", "delete one of the two")
		p.Path = "secretFile"
		return []*Problem{p}
	}
	return nil
}

func (b *BGP) settle(func(string) bool) []*Problem {
	if b.RouteTarget == "" {
		b.RouteTarget = fmt.Sprintf("%d:1", b.ASN)
	}
	if b.RouteDistinguisher == "" && b.RouterID.IsValid() {
		b.RouteDistinguisher = b.RouterID.String() + ":1"
	}
	return nil
}

func (n *Neighbor) settle(func(string) bool) []*Problem {
	if n.Families == nil {
		n.Families = slices.Clone(families[:len(families)-1]) // all but link-state
	}
	return nil
}

func (c *Check) settle(func(string) bool) []*Problem {
	if c.Kind.ofHTTP() && c.Path == "" {
		c.Path = "/"
	}
	if c.Kind.ofHTTP() && c.Status == (StatusRange{}) {
		c.Status = StatusRange{200, 399}
	}
	return nil
}

// settle prefers the paths that come first, and decides for lists that do not say whether they are
// numbered: those of a policy that mirrors are.
func (p *SRPolicy) settle(given func(string) bool) []*Problem {
	form := NotNumbered
	for i := range p.Paths {
		path := &p.Paths[i]
		if path.Action == ActionMirror {
			form = NumberedInTLV
		}
		if !given(fmt.Sprintf("paths[%d].preference", i)) {
			path.Preference = max(0, DefaultPreference-i)
		}
	}
	for _, path := range p.Paths {
		for i := range path.Lists {
			path.Lists[i].Redundancy = cmp.Or(path.Lists[i].Redundancy, form)
		}
	}
	return nil
}

func (s *MergeSID) settle(given func(string) bool) []*Problem {
	if given("history") {
		return nil
	}
	if !given("rate") {
		s.Rate = DefaultMergeRate
	}
	if !given("skew") {
		s.Skew = DefaultMergeSkew
	}
	return nil
}

func (p *Protect) settle(func(string) bool) []*Problem {
	numberProtections(p.Protections)
	return nil
}

// settle begins with the defaults of the policy.
func (a *Accept) settle(given func(string) bool) []*Problem {
	number := func(key string, value *int) *int {
		if given(key) {
			return value
		}
		return nil
	}
	c := AcceptChange{
		Threshold: number("threshold", &a.Threshold), Workers: number("workers", &a.Workers),
		Window: number("window", &a.Window), LowPermille: number("low", &a.LowPermille),
		HighPermille: number("high", &a.HighPermille), Initial: number("initial", &a.Initial),
		Cores: number("cores", &a.Cores),
	}
	if given("policy") {
		c.Policy = &a.Policy
	}
	settled, problems := c.on(newAccept(Average))
	*a = settled
	return problems
}

// Keys that have a meaning beside some values of others only.

func (n Node) applies(key string) bool { return key != "secret" || n.SecretFile == "" }

func (a Accept) applies(key string) bool {
	switch key {
	case "threshold":
		return a.Policy == Static
	case "workers", "window", "low", "high", "initial":
		return a.Policy == Dynamic
	case "cores":
		return a.Policy == Average || a.Policy == Delay
	}
	return true
}

func (c Check) applies(key string) bool { return key != "status" || c.Kind.ofHTTP() }

func (s MergeSID) applies(key string) bool {
	return key != "skew" && key != "rate" || s.History == 0
}

func (r SteeringRule) applies(key string) bool { return key != "dscp" || r.DSCP != AnyDSCP }

// What a list of changes says of an object that comes or goes.

func (e Edge) summary() string {
	buckets := "by need"
	if e.Buckets > 0 {
		buckets = strconv.Itoa(e.Buckets)
	}
	return fmt.Sprintf("source %s, encapsulation %s, hopLimit %d, buckets %s", e.Source,
		e.Encapsulation,
		e.HopLimit, buckets)
}

func (i EdgeInterface) summary() string { return fmt.Sprintf("side %s, mode %s", i.Side, i.Mode) }

func (i HostInterface) summary() string { return "mode " + string(i.Mode) }

func (i XDPInterface) summary() string {
	if i.Side == "" {
		return "mode " + string(i.Mode)
	}
	return fmt.Sprintf("side %s, mode %s", i.Side, i.Mode)
}

func (s Service) summary() string { return fmt.Sprintf("vip %s, %s", s.Endpoint, s.Continuity) }

func (b Backend) summary() string {
	return fmt.Sprintf("sid %s, weight %d, state %s", b.SID, b.Weight, b.State)
}

func (l Learned) summary() string { return "state " + string(l.State) }

func (s SID) summary() string { return s.Behavior.String() }

func (s HostService) summary() string {
	return fmt.Sprintf("vip %s, accept %s", s.Endpoint, s.Accept)
}

func (k HMACKey) summary() string { return fmt.Sprintf("in %s, form %s", k.KeyFile, k.Form) }

func (h Headend) summary() string { return fmt.Sprintf("source %s", h.Source) }

func (l SegmentList) summary() string {
	return fmt.Sprintf("segments %s, redundancy %s", segmentsText(l.Segments), l.Redundancy)
}

func (l LocalLink) summary() string { return "link " + l.Link }

// Items that are not known by their first key.

func (v StrayVRF) identity() string { return v.Name() }

func (s MergeSID) identity() string { return s.String() }

func (v VRF) summary() string { return v.String() }

func (p Protection) summary() string { return p.String() }
