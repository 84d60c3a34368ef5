package agent

import (
	"context"
	"fmt"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
)

// answers are those of api.Agent that all roles have a part in.
type answers struct {
	*role.Core
	*role.Roles
}

// Services is what api.Agent says.
func (q *answers) Services(ctx context.Context, names ...string) ([]api.Service, error) {
	return role.Ask(ctx, &q.Loop, func() ([]api.Service, error) { return q.services(names) })
}

func (q *answers) services(names []string) (all []api.Service, err error) {
	for _, room := range role.Having[role.Serving](q.Roles) {
		services, err := room.Services(names)
		if err != nil {
			return nil, err
		}
		all = append(all, services...)
	}
	return all, nil
}

// Counters is what api.Agent says.
func (q *answers) Counters(ctx context.Context) ([]api.Counters, error) {
	return role.Ask(ctx, &q.Loop, q.counters)
}

func (q *answers) counters() ([]api.Counters, error) {
	var counters []api.Counters
	for _, r := range q.Running() {
		c, err := countersOf(r.Name, r.Uses())
		if err == nil {
			err = r.Count(&c)
		}
		if err != nil {
			return nil, err
		}
		counters = append(counters, c)
	}
	return counters, nil
}

func countersOf(role api.Role, p role.Program) (api.Counters, error) {
	c := api.Counters{Role: role, Drops: []api.Drop{}}
	outcomes, err := p.Outcomes()
	if err != nil {
		return c, err
	}
	for _, o := range outcomes {
		switch o.Name {
		case "passed":
			c.PassedPackets = o.Packets
		case "handed":
			c.HandedToKernelPackets = o.Packets
		case "transmitted":
			c.TransmittedPackets = o.Packets
		case "redirected":
			c.RedirectedPackets = o.Packets
		case "taken":
			c.TakenPackets = o.Packets
		case "echoed":
			c.EchoedPackets = o.Packets
		case "too_big_answered":
			c.TooBigAnsweredPackets = o.Packets
		case "translated":
			c.TranslatedPackets = o.Packets
		case "copied":
			c.CopiedPackets = o.Packets
		case "learned":
			c.LearnedPackets = o.Packets
		}
	}
	drops, err := p.Drops()
	for _, d := range drops {
		c.Drops = append(c.Drops, api.Drop{Reason: d.Name, Packets: d.Packets})
	}
	return c, err
}

// Maps is what api.Agent says.
func (q *answers) Maps(ctx context.Context) (maps []api.Map, err error) {
	err = q.Do(ctx, func() {
		for _, r := range q.Running() {
			for _, use := range r.Uses().Maps() {
				m := api.Map{Name: use.Name, Role: r.Name, Type: use.Type, Capacity: use.Capacity}
				if use.Entries >= 0 {
					m.Entries = &use.Entries
				}
				maps = append(maps, m)
			}
		}
	})
	return maps, err
}

// Explain is what api.Agent says.
func (q *answers) Explain(ctx context.Context, what api.Question) ([]api.Explanation, error) {
	return role.Ask(ctx, &q.Loop, func() ([]api.Explanation, error) { return q.explain(what) })
}

func (q *answers) explain(what api.Question) ([]api.Explanation, error) {
	x, err := q.openExplaining(what)
	if err != nil {
		return nil, err
	}
	defer x.Program.Close()
	packets, err := x.Packets(what)
	if err != nil {
		return nil, err
	}
	var list []api.Explanation
	for i, p := range packets {
		e, err := x.Packet(p.Frame)
		if err != nil {
			return nil, &api.Error{Code: api.Invalid, Message: fmt.Sprintf("packet %d: %v", i+1,
				err)}
		}
		e.Number, e.Packet = i+1, p.What
		list = append(list, e)
	}
	return list, nil
}

func (q *answers) openExplaining(what api.Question) (*explain.Explaining, error) {
	r, found := q.Chosen(what.Role)
	x := &explain.Explaining{Role: r.Name}
	switch {
	case found:
		return x, r.Room.Explain(x, what.Interface)
	case what.Role == "":
		return x, &api.Error{Code: api.NotFound, Message: "this node has no role whose program " +
			"could be asked; sextant status says what it is"}
	}
	return x, &api.Error{Code: api.NotFound,
		Message: fmt.Sprintf("this node has no %s; leave --role out", what.Role)}
}
