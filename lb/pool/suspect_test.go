package pool_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// Suspects change no chain but for the order of those behind the candidates: others come before
// them, and both in the order that they had.
func TestSuspectsAreNamedLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rendezvous(60, rapid.IntRange(1, 3).Draw(t, "candidates"))
		backends := up(rapid.IntRange(2, 6).Draw(t, "backends"))
		with, err := pool.New(spec, backends, 0)
		if err != nil {
			t.Fatal(err)
		}
		without := with
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			b := &backends[rapid.IntRange(0, len(backends)-1).Draw(t, "which")]
			b.State = rapid.SampledFrom([]pool.State{pool.Up, pool.Draining, pool.Down}).Draw(t,
				"state")
			b.Suspect = rapid.Bool().Draw(t, "suspect")
			plain := slices.Clone(backends)
			suspect := map[uint16]bool{}
			for i := range plain {
				suspect[plain[i].ID], plain[i].Suspect = plain[i].Suspect, false
			}
			if with, err = with.Next(backends, time.Duration(step)*time.Second); err != nil {
				t.Fatal(err)
			}
			if without, err = without.Next(plain, time.Duration(step)*time.Second); err != nil {
				t.Fatal(err)
			}
			for bucket := range spec.Buckets {
				c, p := with.Chain(bucket), without.Chain(bucket)
				want := slices.Clone(candidates(p))
				for _, last := range []bool{false, true} {
					for _, id := range past(p) {
						if suspect[id] == last {
							want = append(want, id)
						}
					}
				}
				if !slices.Equal(candidates(c), candidates(p)) || !slices.Equal(all(c), want) {
					t.Fatalf("bucket %d: %v, want %v; suspects %v", bucket, all(c), want, suspect)
				}
			}
		}
	})
}

// Where a new candidate waits for room, new connections stay with a backend that works, if one had
// the bucket.
func TestNewConnectionsDoNotWaitAtSuspects(t *testing.T) {
	spec := rendezvous(400, 1)
	spec.Depth = 3
	d := newDiary(begin(t, spec, up(5)), up(5))
	for i, id := range []uint16{1, 2, 3, 4} {
		d.backends = with(d.backends, id, pool.Draining)
		d.backends[id-1].Suspect = id != 2
		if err := d.step(time.Duration(i+1) * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	waiting := 0
	for bucket := range d.g.Buckets() {
		c := d.g.Chain(bucket)
		first := candidates(c)[0]
		if first == 5 {
			continue
		}
		if waiting++; first != 2 && contains(all(c), 2) && d.until[bucket][2] > 0 {
			t.Errorf("bucket %d: %v of %v takes new connections, and 2 had them", bucket, first,
				all(c))
		}
	}
	if waiting == 0 {
		t.Error("nobody waits")
	}
	if err := d.missing(4*time.Second, time.Minute); err != nil {
		t.Error(err)
	}
}
