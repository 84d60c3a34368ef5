package datapath

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/lb/pool"
)

// BenchmarkPoolChange is how long it takes from a decided change of the pool (1,000 backends,
// 65,537 buckets, 2 candidates) until packets are forwarded by it: the next generation, the spare
// table, and the switch. "live" ends there; "returned" is when the kernel has seen the last packet
// of the table before off.
func BenchmarkPoolChange(b *testing.B) {
	b.Logf("%8s %-10s %-8s %10s %10s %10s %12s", "backends", "table", "change", "live, us",
		"lowest", "highest", "returned, us")
	for _, size := range []struct{ backends, buckets int }{
		{1000, 65537},
		{5000, 500009}, // what an edge gives so many (maxBackends: 5000)
	} {
		for _, method := range []pool.Method{pool.Rendezvous, pool.Exact} {
			spec := pool.Spec{Buckets: size.buckets, Seed: 1, Method: method, Candidates: 2}
			benchPoolChanges(b, spec, size.backends)
		}
	}
}

// benchPoolChanges measures each kind of change of one of so many backends.
func benchPoolChanges(b *testing.B, spec pool.Spec, backends int) {
	up := make([]pool.Backend, backends)
	for i := range up {
		up[i] = pool.Backend{ID: uint16(i + 1), Weight: 16}
	}
	with := func(edit func(*pool.Backend)) []pool.Backend {
		changed := slices.Clone(up)
		edit(&changed[backends/2])
		return changed
	}
	draining := with(func(m *pool.Backend) { m.State = pool.Draining })
	down := with(func(m *pool.Backend) { m.State = pool.Down })
	for _, c := range []struct {
		name          string
		before, after []pool.Backend
	}{
		{"drain", up, draining},
		{"undrain", draining, up},
		{"down", up, down},
		{"back", down, up},
		{"weight", up, with(func(m *pool.Backend) { m.Weight = 8 })},
		{"new", up, append(slices.Clone(up), pool.Backend{ID: uint16(backends + 1), Weight: 16})},
	} {
		b.Run(fmt.Sprintf("%d/%v/%s", backends, spec.Method, c.name), func(b *testing.B) {
			measurePoolChange(b, spec, c.name, c.before, c.after)
		})
	}
}

// poolChanges is how often each change is made, after a few that are not counted.
const poolChanges, poolWarmUp = 31, 4

func measurePoolChange(b *testing.B, spec pool.Spec, name string, before, after []pool.Backend) {
	w := newWorld(b)
	config := edgeConfig(b)
	config.Capacity = CapacityForTable(spec.Buckets)
	e, err := OpenEdge(w.dir, config)
	must(b, err)
	defer e.Close()
	at, err := pool.New(spec, before, 0)
	must(b, err)
	var live, returned []time.Duration
	for b.Loop() {
		for round := range poolChanges + poolWarmUp {
			must(b, e.SetChains(1, at))
			must(b, e.SetService(edgeServices[0], 1, spec.Buckets))
			runtime.GC() // a pool changes seldom: what the round before left is not this change's
			seen := watchTable(b, e)
			begun := time.Now()
			next, err := at.Next(after, time.Minute)
			must(b, err)
			must(b, e.SetChains(1, next))
			end := time.Since(begun)
			if switched := (<-seen).Sub(begun); round >= poolWarmUp {
				live, returned = append(live, switched), append(returned, end)
			}
		}
	}
	slices.Sort(live)
	slices.Sort(returned)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	b.Logf("%8d %-10v %-8s %10.0f %10.0f %10.0f %12.0f", len(before), spec.Method, name,
		us(live[len(live)/2]), us(live[0]), us(live[len(live)-1]), us(returned[len(returned)/2]))
}

// watchTable looks again and again which table the service has, and tells when that becomes another
// one: some 80 us later at most. It sleeps in between, since a processor that spins takes half of
// its neighbour's speed where two are one core.
func watchTable(b *testing.B, e *Edge) <-chan time.Time {
	b.Helper()
	entries, key := e.maps["services"], edgeServices[0].key()
	var first service
	must(b, entries.Lookup(key, &first))
	seen, watching := make(chan time.Time, 1), make(chan struct{})
	go func() {
		close(watching)
		for now := first; ; {
			if err := entries.Lookup(key, &now); err != nil || now.table() != first.table() {
				seen <- time.Now()
				return
			}
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 10_000}, nil) // as good if it is interrupted
		}
	}()
	<-watching
	return seen
}
