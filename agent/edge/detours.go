package edge

import (
	"context"
	"slices"
	"time"

	"sextant/config"
	"sextant/te/way"
)

// detours prepares, while nothing is wrong, the ways of services for the case that links fail. The
// owner goroutine has it.
type detours struct {
	known  *way.Detours // that are ready; nil: none are
	on     searched     // for what network they are prepared now, or were,
	wanted []way.Wanted // and for whom
	stop   context.CancelFunc
	rough  bool // ways that run were foreseen, and others may be better
	whole  bool // all that there is room for is prepared
}

const (
	// detourQuiet is how long nothing must have changed before ways are prepared, so that changes
	// that come one after the other cost little.
	detourQuiet = time.Second
	detourShare = 10       // they take at most one part in so many of a core
	detourRoom  = 32 << 20 // octets that they take at most
)

// end stops what prepares.
func (d *detours) end() {
	if d.stop != nil {
		d.stop()
	}
	*d = detours{}
}

// keepDetours begins to prepare detours if other ones are wanted than are prepared already.
func (e *Room) keepDetours() {
	w := &e.ways
	d := &w.detours
	if w.follows == nil || w.known == nil || e.Node == nil || e.Node.Edge == nil ||
		e.Node.Edge.Network == nil {
		return
	}
	on := searched{w.known, e.Node.Domain.Block, e.Node.Edge.Network.Node}
	wanted := e.wantedWays()
	if d.on == on && slices.EqualFunc(d.wanted, wanted, way.Wanted.Same) {
		return
	}
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
	if d.on, d.wanted, d.whole = on, wanted, false; len(wanted) == 0 {
		d.known = nil
		return
	}
	var ctx context.Context
	ctx, d.stop = context.WithCancel(e.Life)
	quiet := detourQuiet
	if d.rough {
		quiet = 0
	}
	go e.prepare(ctx, on, wanted, quiet)
}

// wantedWays are the ways of services that can be prepared, each intent once, with the nodes that
// backends are behind.
func (e *Room) wantedWays() (list []way.Wanted) {
	places := map[string]int{}
	for i := range e.list() {
		s := &e.Runs.Services[i]
		if s.Way == nil || s.way == nil || s.Way.By == config.ByTelemetry {
			continue
		}
		intent := intentOf(s.Way, e.Node.Edge.Encapsulation)
		at, known := places[intent.Key()]
		if !known {
			at = len(list)
			places[intent.Key()], list = at, append(list, way.Wanted{Intent: intent})
		}
		for _, node := range s.way.nodes {
			list[at].To = append(list[at].To, node)
		}
	}
	for i := range list {
		slices.Sort(list[i].To)
		list[i].To = slices.Compact(list[i].To)
	}
	return list
}

// prepare finds ways, and then detours, until all that there is room for are there.
func (e *Room) prepare(ctx context.Context, on searched, wanted []way.Wanted, quiet time.Duration) {
	if !rests(ctx, quiet) {
		return
	}
	view := on.known.View(on.block, nil)
	d := way.NewDetours(way.Network{View: view.View, Block: view.Block, From: on.from}, wanted,
		detourRoom)
	defer d.Stop()
	for more := true; more; {
		began, told := time.Now(), d.Ready()
		var err error
		if more, err = d.Step(); err != nil {
			e.Log.Warn("ways are not prepared for failures of links", "error", err)
			_ = e.Do(ctx, func() { e.detoursReady(nil, on) })
			return
		}
		if d.Ready() && !told {
			_ = e.Do(ctx, func() { e.detoursReady(d, on) }) // else it is the end
		}
		if told && !rests(ctx, (detourShare-1)*time.Since(began)) || ctx.Err() != nil {
			return
		}
	}
	_ = e.Do(ctx, func() { e.ways.detours.whole = true })
}

// rests waits; false: ctx has ended.
func rests(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// detoursReady takes detours into use, or gives them up: nil. If ways that run were foreseen by
// earlier ones, those that were searched since take their places.
func (e *Room) detoursReady(d *way.Detours, on searched) {
	w := &e.ways
	if w.detours.on != on {
		return
	}
	w.detours.known = d
	if w.detours.rough {
		w.detours.rough, w.search = false, nil
		e.waysChanged(func(s *config.Way) bool { return s.By != config.ByTelemetry })
	}
}

// foresee lets a search that begins have what was prepared.
func (d *detours) foresee(s *way.Search, follows bool) {
	if d.known == nil {
		return
	}
	if known, exact := s.Foresee(d.known); follows {
		d.rough = known && !exact
	}
}
