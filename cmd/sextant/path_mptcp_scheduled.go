package main

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/agent/subflows"
	"sextant/config"
	"sextant/controller"
	"sextant/linux"
)

// For how long the controller holds the path of a subflow, and how often it is asked again.
const (
	subflowHeld    = 30 * time.Second
	subflowRenewed = 10 * time.Second
)

// scheduledPaths asks a controller for the paths of subflows. What it says is a request that is
// made again: without the controller, connections go on with what they have.
type scheduledPaths struct {
	app    *app
	client *controller.Client // nil: paths are not asked for
	at     time.Time          // of the last renewal
	said   string             // the last problem, which is not repeated
	routes map[string]string  // by name of the subflow
}

func placementOf(s subflows.Subflow) controller.Placement {
	return controller.Placement{Name: s.Name(), Seconds: subflowHeld.Seconds(),
		Flow: api.Flow{Source: s.Local, Destination: s.Remote, Protocol: config.TCP}}
}

// place asks for paths: all or, with an error, none.
func (p *scheduledPaths) place(ctx context.Context, list []subflows.Subflow) (
	answers []controller.Elephant, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	var asked []controller.Placement
	for _, s := range list {
		asked = append(asked, placementOf(s))
	}
	ctx, cancel := context.WithTimeout(ctx, p.app.timeout)
	defer cancel()
	out, err := p.client.Place(ctx, asked)
	return out.Items, err
}

// say tells of a problem once.
func (p *scheduledPaths) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != p.said {
		p.app.say("path mptcp: %s; it is asked again", text)
	}
	p.said = text
}

// give returns the subflows that get paths, with the ports that take these. Each connection is
// asked for by itself: one to a host that the controller does not know holds up no other.
func (p *scheduledPaths) give(ctx context.Context, due []subflows.Subflow) (
	found []subflows.Subflow) {
	if p.routes == nil {
		p.routes = map[string]string{}
	}
	var failed error
	for ctx.Err() == nil && len(due) > 0 {
		one := due
		if i := slices.IndexFunc(due, func(s subflows.Subflow) bool {
			return s.Token != due[0].Token
		}); i > 0 {
			one = due[:i]
		}
		due = due[len(one):]
		answers, err := p.place(ctx, one)
		if failed == nil {
			failed = err
		}
		for i, answer := range answers {
			s := one[i]
			s.Local = netip.AddrPortFrom(s.Local.Addr(), answer.Flow.Source.Port())
			p.routes[s.Name()] = strings.Join(answer.Path, " ")
			found = append(found, s)
		}
	}
	p.say(failed)
	return found
}

// keep renews the paths of open subflows and releases those of connections that ended. A subflow
// that is to have another path ends; it is due again then.
func (p *scheduledPaths) keep(ctx context.Context, m *subflows.Manager) {
	if gone := m.Gone(); len(gone) > 0 {
		for _, name := range gone {
			delete(p.routes, name)
		}
		ctx, cancel := context.WithTimeout(ctx, p.app.timeout)
		defer cancel()
		p.say(p.client.Release(ctx, gone...))
	}
	if time.Since(p.at) < subflowRenewed {
		return
	}
	p.at = time.Now()
	open := m.Open()
	answers, err := p.place(ctx, open)
	p.say(err)
	for i, answer := range answers {
		if s := open[i]; answer.Moved {
			p.app.say("path mptcp: subflow from %s to %s is to take path %s", s.Local, s.Remote,
				strings.Join(answer.Path, " "))
			p.say(linux.DestroySubflow(s.Token, s.Local, s.Remote))
		}
	}
}

// text names the path of a subflow.
func (p *scheduledPaths) text(s subflows.Subflow) string {
	if s.Path == nil {
		return p.routes[s.Name()]
	}
	return choicesText(s.Path)
}
