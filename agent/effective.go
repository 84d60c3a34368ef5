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
func (e *edgeRoom) effect(s *config.Service, before *edgeService,
	configured []pool.Backend) health.Effect {
	members := make([]health.Member, len(configured))
	for i, b := range configured {
		usable, wavers := e.checks.opinion(s, s.Backends[i])
		members[i] = health.Member{Backend: b, Usable: usable, Wavers: wavers}
	}
	for i, b := range s.Backends {
		members[i].Suspect = e.found.withdrawn[learnedKey{s.Endpoint, b.SID}]
	}
	usage := health.Usage{SlowStart: s.SlowStart}
	if e.found.startup.settled {
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
	case e.node == nil && len(e.store.kept.Away) > 0: // an earlier agent knew who was away
		earlier = health.Earlier(configured, func(i int) bool {
			return slices.Contains(e.store.kept.Away,
				health.Key{Service: s.Name, Backend: s.Backends[i].Name})
		})
	}
	e.effects++
	return usage.Apply(members, earlier, e.now())
}

// noteAway writes down who is down or held, so that an agent that follows holds them too.
func (e *edgeRoom) noteAway() {
	if e.effects == e.awayNoted || e.runs == nil {
		return
	}
	e.awayNoted = e.effects
	var away []health.Key
	for i := range e.runs.services {
		s := &e.runs.services[i]
		for j, b := range s.effect.Backends {
			if s.effect.Away(b) {
				away = append(away, health.Key{Service: s.Name, Backend: s.Backends[j].Name})
			}
		}
	}
	slices.SortFunc(away, health.Key.Compare)
	if slices.Equal(away, e.store.kept.Away) {
		return
	}
	e.store.kept.Away = away
	if err := e.store.write(); err != nil {
		e.options.Log.Warn("a restarted agent will not know which backends were away", "error", err)
	}
}

// notePanics tells of services whose checks stop being believed, or are again.
func (k *checks) notePanics() {
	panics := map[string]bool{}
	for _, s := range k.services() {
		if s.effect.Panic {
			panics[s.Name] = true
		}
	}
	for name := range panics {
		if !k.panics[name] {
			k.tell(api.Event{Service: name, Status: "panic",
				Reason: "too few backends are healthy, so all that should be up are used"})
		}
	}
	for name := range k.panics {
		if !panics[name] {
			k.tell(api.Event{
				Service: name, Status: "panic over",
				Reason: "those that fail get no new connections",
			})
		}
	}
	k.panics = panics
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
