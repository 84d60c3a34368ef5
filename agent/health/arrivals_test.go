package health_test

import (
	"slices"
	"testing"
	"time"

	"sextant/agent/health"
	"sextant/lb/pool"
)

// Backends that come one after another are held, and come up in few groups: so chains have room
// when those that came first drain, and no bucket is offered to one that drains.
func TestFirstComersLeaveRoom(t *testing.T) {
	const comers, leave = 50, 13
	usage := health.Usage{ReturnHold: 3 * time.Second}
	spec := pool.Spec{Buckets: 2000, Seed: 1, Method: pool.Rendezvous, Candidates: 2}
	var members []health.Member
	var effect health.Effect
	generation, err := pool.New(spec, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	settle := func(at time.Duration) {
		effect = usage.Apply(members, effect, at)
		if generation, err = generation.Next(effect.Backends, at); err != nil {
			t.Fatal(err)
		}
	}
	// step does what is to be done until a time, and then what has come up.
	step := func(at time.Duration) {
		for effect.Waits && effect.Next < at {
			settle(effect.Next)
		}
		settle(at)
	}
	at := time.Duration(0)
	for i := range comers {
		members = append(slices.Clone(members), health.Member{Usable: true,
			Backend: pool.Backend{ID: uint16(i + 1), Weight: 1}})
		step(at)
		at += 500 * time.Millisecond
	}
	at += 2 * usage.ReturnHold
	step(at)
	for i, b := range effect.Backends {
		if b.State != pool.Up {
			t.Errorf("backend %d of %d is %v", i+1, comers, b.State)
		}
	}
	for i := range leave {
		members[i].State = pool.Draining
	}
	step(at)
	offered := 0
	for bucket := range generation.Buckets() {
		chain := generation.Chain(bucket)
		if slices.ContainsFunc(chain.IDs[:chain.Candidates], func(id uint16) bool {
			return members[id-1].State != pool.Up
		}) {
			offered++
		}
	}
	if offered > 0 {
		t.Errorf("%d of %d buckets are offered to those that drain", offered, spec.Buckets)
	}
}
