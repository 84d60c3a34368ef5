package agent

import (
	"context"
	"fmt"
	"slices"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
)

// answers are those of api.Agent that all roles have a part in.
type answers struct {
	*role.Core
	*role.Roles
}

// turnServices is of how many services counters are read in a row: other work waits for it, some
// 4 ms with ten backends each.
const turnServices = 128

// Services is what api.Agent says. Between two turns of a long list the owner goroutine does other
// work, so that a service which is deleted meanwhile may be missing.
func (q *answers) Services(ctx context.Context, names ...string) ([]api.Service, error) {
	if len(names) == 0 {
		if err := q.Look(ctx, func() { names = q.serviceNames() }); err != nil {
			return nil, err
		}
	}
	rooms := role.Having[role.Serving](q.Roles)
	found := make([][]api.Service, len(rooms))
	for some := range slices.Chunk(names, turnServices) {
		turn := map[string]bool{}
		for _, name := range some {
			turn[name] = true
		}
		services, err := role.See(ctx, &q.Loop, func() ([][]api.Service, error) {
			return servicesOf(rooms, turn)
		})
		if err != nil {
			return nil, err
		}
		for i := range rooms {
			found[i] = append(found[i], services[i]...)
		}
	}
	return slices.Concat(found...), nil
}

// servicesOf returns the services of the names, by room.
func servicesOf(rooms []role.Serving, names map[string]bool) (found [][]api.Service, err error) {
	for _, room := range rooms {
		services, err := room.Services(names)
		if err != nil {
			return nil, err
		}
		found = append(found, services)
	}
	return found, nil
}

// serviceNames returns each name once: a service of the edge and one of the host may share it.
func (q *answers) serviceNames() (names []string) {
	known := map[string]bool{}
	for _, room := range role.Having[role.Serving](q.Roles) {
		for _, name := range room.ServiceNames() {
			if !known[name] {
				known[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Counters is what api.Agent says.
func (q *answers) Counters(ctx context.Context) ([]api.Counters, error) {
	return role.See(ctx, &q.Loop, q.counters)
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
	err = q.Look(ctx, func() {
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
