package edge

import (
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/health"
	"sextant/agent/role"
	"sextant/config"
	"sextant/lb/pool"
)

// effect decides what a service's backends are now, from the operator's word, their checks and the
// time. Before is the service as it runs, nil if it does not.
func (e *Room) effect(s *config.Service, before *Service,
	configured []pool.Backend) health.Effect {
	members := make([]health.Member, len(configured))
	for i, b := range configured {
		usable, wavers := e.checks.opinion(s, s.Backends[i])
		members[i] = health.Member{Backend: b, Usable: usable, Wavers: wavers}
	}
	for i, b := range s.Backends {
		members[i].Suspect = e.Found.Withdrawn[role.LearnedKey{Endpoint: s.Endpoint,
			SID: b.SID}]
	}
	usage := health.Usage{SlowStart: s.SlowStart}
	if e.Found.Startup.Settled {
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
	case e.Node == nil && len(e.Store.Kept.Away) > 0: // an earlier agent knew who was away
		earlier = health.Earlier(configured, func(i int) bool {
			return slices.Contains(e.Store.Kept.Away,
				health.Key{Service: s.Name, Backend: s.Backends[i].Name})
		})
	}
	e.changes++
	return usage.Apply(members, earlier, e.Now())
}

// noteAway writes down who is down or held, so that an agent that follows holds them too.
func (e *Room) noteAway() {
	if e.Runs == nil {
		return
	}
	var away []health.Key
	for i := range e.Runs.Services {
		s := &e.Runs.Services[i]
		for j, b := range s.effect.Backends {
			if s.effect.Away(b) {
				away = append(away, health.Key{Service: s.Name, Backend: s.Backends[j].Name})
			}
		}
	}
	slices.SortFunc(away, health.Key.Compare)
	if slices.Equal(away, e.Store.Kept.Away) {
		return
	}
	e.Store.Kept.Away = away
	if err := e.Store.Write(); err != nil {
		e.Log.Warn("a restarted agent will not know which backends were away", "error", err)
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
			k.Tell(api.Event{Service: name, Status: "panic",
				Reason: "too few backends are healthy, so all that should be up are used"})
		}
	}
	for name := range k.panics {
		if !panics[name] {
			k.Tell(api.Event{
				Service: name, Status: "panic over",
				Reason: "those that fail get no new connections",
			})
		}
	}
	k.panics = panics
}

// nextStep is when the first previous owner of a bucket may be forgotten, or the first weight of a
// service that starts slowly grows; false if neither is awaited.
func (e *Role) nextStep() (first time.Duration, waits bool) {
	for i := range e.Services {
		s := &e.Services[i]
		if at, ok := s.Generation.NextAt(); ok && (!waits || at < first) {
			first, waits = at, true
		}
		if s.effect.Waits && (!waits || s.effect.Next < first) {
			first, waits = s.effect.Next, true
		}
	}
	return first, waits
}
