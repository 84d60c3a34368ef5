package agent

import (
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/config"
	"sextant/lb/pool"
)

// effect decides what a service's backends are now, from the operator's word, their checks and the
// time. Before is the service as it runs, nil if it does not.
func (a *Agent) effect(s *config.Service, before *edgeService,
	configured []pool.Backend) health.Effect {
	members := make([]health.Member, len(configured))
	for i, b := range configured {
		usable, wavers := a.opinion(s, s.Backends[i])
		members[i] = health.Member{Backend: b, Usable: usable, Wavers: wavers}
	}
	for i, b := range s.Backends {
		members[i].Suspect = a.withdrawn[learnedKey{s.Endpoint, b.SID}]
	}
	usage := health.Usage{SlowStart: s.SlowStart}
	if a.startup.settled {
		usage.ReturnHold = s.ReturnHold
	}
	if s.Check != nil {
		usage.PanicPermille, usage.Kills = s.Check.PanicPermille, s.Check.OnFail == config.FailDown
		usage.Round, usage.Settle = s.Check.Round(), s.Check.Notice()
	}
	var earlier health.Effect
	switch {
	case before != nil:
		earlier = before.effect
	case a.node == nil && len(a.store.kept.Away) > 0: // an earlier agent knew who was away
		earlier = health.Earlier(configured, func(i int) bool {
			return slices.Contains(a.store.kept.Away,
				health.Key{Service: s.Name, Backend: s.Backends[i].Name})
		})
	}
	a.effects++
	return usage.Apply(members, earlier, a.now())
}

// noteAway writes down who is down or held, so that an agent that follows holds them too.
func (a *Agent) noteAway() {
	if a.effects == a.awayNoted || a.edge == nil {
		return
	}
	a.awayNoted = a.effects
	var away []health.Key
	for i := range a.edge.services {
		s := &a.edge.services[i]
		for j, b := range s.effect.Backends {
			if s.effect.Away(b) {
				away = append(away, health.Key{Service: s.Name, Backend: s.Backends[j].Name})
			}
		}
	}
	slices.SortFunc(away, health.Key.Compare)
	if slices.Equal(away, a.store.kept.Away) {
		return
	}
	a.store.kept.Away = away
	if err := a.store.write(); err != nil {
		a.options.Log.Warn("a restarted agent will not know which backends were away", "error", err)
	}
}

// notePanics tells of services whose checks stop being believed, or are again.
func (a *Agent) notePanics() {
	panics := map[string]bool{}
	if a.edge != nil {
		for i := range a.edge.services {
			if s := &a.edge.services[i]; s.effect.Panic {
				panics[s.Name] = true
			}
		}
	}
	for name := range panics {
		if !a.checks.panics[name] {
			a.tell(api.Event{Service: name, Status: "panic",
				Reason: "too few backends are healthy, so all that should be up are used"})
		}
	}
	for name := range a.checks.panics {
		if !panics[name] {
			a.tell(api.Event{
				Service: name, Status: "panic over",
				Reason: "those that fail get no new connections",
			})
		}
	}
	a.checks.panics = panics
}

// nextStep is when the first weight of a service that starts slowly grows; false if none does.
func (e *edgeRole) nextStep() (first time.Duration, waits bool) {
	for i := range e.services {
		if effect := e.services[i].effect; effect.Waits && (!waits || effect.Next < first) {
			first, waits = effect.Next, true
		}
	}
	return first, waits
}
