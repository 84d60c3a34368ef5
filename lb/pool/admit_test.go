package pool_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// diary remembers until when backends had buckets.
type diary struct {
	g        *pool.Generation
	backends []pool.Backend
	until    []map[uint16]time.Duration // by bucket, by id
}

func newDiary(g *pool.Generation, backends []pool.Backend) *diary {
	d := &diary{g: g, backends: backends}
	for range g.Buckets() {
		d.until = append(d.until, map[uint16]time.Duration{})
	}
	return d
}

// step brings the pool to a time.
func (d *diary) step(now time.Duration) (err error) {
	for bucket := range d.until {
		for _, id := range candidates(d.g.Chain(bucket)) {
			d.until[bucket][id] = now
		}
	}
	d.g, err = d.g.Next(d.backends, now)
	return err
}

// run does what is to be done until a time.
func (d *diary) run(until time.Duration) error {
	for {
		next, waits := d.g.NextAt()
		if !waits || next > until {
			return nil
		}
		if err := d.step(next); err != nil {
			return err
		}
		if again, waits := d.g.NextAt(); waits && again <= next {
			return fmt.Errorf("at %v the next time is %v", next, again)
		}
	}
}

// missing returns who had a bucket not longer ago than given, and is not in its chain.
func (d *diary) missing(now, ago time.Duration) error {
	for bucket := range d.until {
		for id, until := range d.until[bucket] {
			if chain := all(d.g.Chain(bucket)); now-until <= ago && !contains(chain, id) {
				return fmt.Errorf("at %v bucket %d was %d's until %v, and is offered to %v", now,
					bucket, id, until, chain)
			}
		}
	}
	return nil
}

// leaving returns an error if a bucket is offered to a backend that is to get nothing new, although
// its chain has one that may.
func (d *diary) leaving() error {
	isUp := map[uint16]bool{}
	for _, b := range d.backends {
		isUp[b.ID] = b.State == pool.Up
	}
	for bucket := range d.g.Buckets() {
		chain := d.g.Chain(bucket)
		if slices.ContainsFunc(candidates(chain), func(id uint16) bool { return !isUp[id] }) &&
			slices.ContainsFunc(all(chain), func(id uint16) bool { return isUp[id] }) {
			return fmt.Errorf("bucket %d is offered to %v of %v", bucket, candidates(chain),
				all(chain))
		}
	}
	return nil
}

// However many backends withdraw, in whatever order, who had a bucket within the last minute, or
// the drain time, is in its chain; and one that is up gets the new connections, if one is there.
func TestWithdrawingCutsNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rendezvous(20, rapid.IntRange(1, 3).Draw(t, "candidates"))
		spec.Depth = rapid.IntRange(spec.Candidates+1, pool.MaxChain).Draw(t, "depth")
		spec.Drain = rapid.SampledFrom([]time.Duration{0, 20 * time.Second}).Draw(t, "drain")
		keeps := time.Minute
		if spec.Drain > 0 {
			keeps = spec.Drain
		}
		backends := up(rapid.IntRange(2, 12).Draw(t, "backends"))
		g, err := pool.New(spec, backends, 0)
		if err != nil {
			t.Fatal(err)
		}
		d, now := newDiary(g, backends), time.Duration(0)
		for range rapid.IntRange(1, 25).Draw(t, "changes") {
			now += time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second
			if err := d.run(now); err != nil {
				t.Fatal(err)
			}
			d.backends = slices.Clone(d.backends)
			d.backends[rapid.IntRange(0, len(backends)-1).Draw(t, "backend")].State =
				rapid.SampledFrom([]pool.State{pool.Up, pool.Draining, pool.Maintenance}).Draw(t,
					"state")
			if err := d.step(now); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(d.missing(now, keeps), d.leaving()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Backends that came up one after another fill chains with those who came first. If these drain
// within the minute, and new ones wait for room, owners that are up get the new connections.
func TestFirstComersDrain(t *testing.T) {
	const comers, fresh, leave = 50, 13, 13
	spec := rendezvous(2000, 2)
	backends := up(comers + fresh)
	for i := range backends[1:] {
		backends[i+1].State = pool.Down
	}
	d := newDiary(begin(t, spec, backends), backends)
	at := time.Duration(0)
	change := func(from, to int, state pool.State) {
		for i := from; i < to; i++ {
			at += 500 * time.Millisecond
			d.backends = slices.Clone(d.backends)
			d.backends[i].State = state
			if err := d.step(at); err != nil {
				t.Fatal(err)
			}
		}
	}
	change(1, comers+fresh, pool.Up)
	change(0, leave, pool.Draining)
	if err := errors.Join(d.missing(at, time.Minute), d.leaving()); err != nil {
		t.Error(err)
	}
	offered := 0
	for bucket := range d.g.Buckets() {
		if slices.ContainsFunc(candidates(d.g.Chain(bucket)), func(id uint16) bool {
			return d.backends[id-1].State != pool.Up
		}) {
			offered++
		}
	}
	t.Logf("%d of %d buckets are offered to those that drain", offered, d.g.Buckets())
}

// Who waits for room in a full chain gets it a minute after the first of those in it left, and who
// drains is done then.
func TestFullChainHasRoomLater(t *testing.T) {
	spec := rendezvous(400, 1)
	spec.Depth = 3
	d := newDiary(begin(t, spec, up(5)), up(5))
	for i, id := range []uint16{1, 2, 3, 4} {
		d.backends = with(d.backends, id, pool.Draining)
		if err := d.step(time.Duration(i+1) * 10 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	waiting := func() (buckets int) {
		for bucket := range d.g.Buckets() {
			if !slices.Equal(candidates(d.g.Chain(bucket)), []uint16{5}) {
				buckets++
			}
		}
		return buckets
	}
	// Those that 1, 2 and 3 have had, or 1, 2 and 4, and the like.
	full := waiting()
	if full == 0 || full > 100 {
		t.Fatalf("%d of 400 buckets wait for room", full)
	}
	first, waits := d.g.NextAt()
	if !waits || first != 71*time.Second {
		t.Fatalf("the next time is %v, %v; want a minute after 1 left", first, waits)
	}
	if err := d.run(time.Hour); err != nil {
		t.Fatal(err)
	}
	if late := waiting(); late != 0 {
		t.Errorf("%d buckets are not 5's an hour later", late)
	}
	if at, waits := d.g.NextAt(); waits {
		t.Errorf("nobody waits, but at %v something happens", at)
	}
}

// A chain that is full of those who are gone for good, or that was resumed, keeps nobody waiting.
func TestNobodyWaitsInVain(t *testing.T) {
	spec := rendezvous(200, 1)
	g := begin(t, spec, up(8))
	for id := range uint16(7) {
		g = next(t, g, with(up(8), id+1, pool.Draining))
	}
	chains := make([]pool.Chain, g.Buckets())
	for bucket := range chains {
		chains[bucket] = g.Chain(bucket)
	}
	last := up(9)
	for i := range 8 {
		last[i].State = pool.Draining
	}
	resumed, err := pool.Resume(spec, chains, last, 0)
	if err != nil {
		t.Fatal(err)
	}
	gone := next(t, g, []pool.Backend{{ID: 9, Weight: 1}})
	for bucket := range chains {
		for _, g := range []*pool.Generation{resumed, gone} {
			if got := candidates(g.Chain(bucket)); !slices.Equal(got, []uint16{9}) {
				t.Fatalf("bucket %d: candidates %v, want 9", bucket, got)
			}
		}
	}
}
