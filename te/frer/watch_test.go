package frer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// observation is a sample with what is to be found in it.
type observation struct {
	at   time.Duration
	s    Sample
	want []Finding
}

func observe(t *testing.T, w *Watch, steps []observation) {
	t.Helper()
	for _, step := range steps {
		if diff := cmp.Diff(step.want, w.Observe(step.at, step.s)); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", step.at, diff)
		}
	}
}

func TestWatch(t *testing.T) {
	observe(t, NewWatch(3*time.Second, 0), []observation{
		{0, Sample{100, 100, []uint64{100, 100}}, nil},
		{time.Second, Sample{200, 199, []uint64{200, 199}}, nil},
		{2 * time.Second, Sample{300, 199, []uint64{300, 199}}, nil},
		{5 * time.Second, Sample{500, 199, []uint64{500, 199}},
			[]Finding{{Path: 1, Silent: 3 * time.Second}}},
		{6 * time.Second, Sample{600, 200, []uint64{600, 200}}, nil},
		{60 * time.Second, Sample{600, 200, []uint64{600, 200}}, nil}, // the flow pauses
		{61 * time.Second, Sample{700, 300, []uint64{700, 300}}, nil},
		{62 * time.Second, Sample{800, 600, []uint64{900, 500}},
			[]Finding{{Path: -1, Excess: 200}}},
		{63 * time.Second, Sample{10, 10, []uint64{10, 10}}, nil}, // counters began anew
	})
	if got, want := (Finding{Path: 1, Silent: 3 * time.Second}).String(),
		"path 2 has been silent for 3s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A packet every ten seconds, the second copy of which comes a moment later or is lost now and
// then, is no silence; a path by which five in a row did not come is.
func TestWatchOfASlowFlow(t *testing.T) {
	w := NewWatch(time.Second, 0)
	w.Observe(0, Sample{1, 1, []uint64{1, 1}})
	first, second := uint64(1), uint64(1)
	for turn := range 40 {
		at := time.Duration(turn+1) * 10 * time.Second
		first++
		if found := w.Observe(at, Sample{first, second, []uint64{first, second}}); found != nil {
			t.Fatalf("%s: %v", at, found)
		}
		if turn%8 >= 3 { // three of eight are lost
			second++
		}
		if found := w.Observe(at+250*time.Millisecond,
			Sample{first, second, []uint64{first, second}}); found != nil {
			t.Fatalf("%s: %v", at, found)
		}
	}
	for turn := range 5 {
		first++
		found := w.Observe(time.Duration(500+10*turn)*time.Second,
			Sample{first, second, []uint64{first, second}})
		if want := turn == 4; (len(found) == 1 && found[0].Path == 1) != want {
			t.Errorf("packet %d without a copy: %v", turn+1, found)
		}
	}
}

// Of eight paths two carry. Spares are not silent; a path that fails is until another one carries
// in its place.
func TestWatchOfSpares(t *testing.T) {
	second := time.Second
	observe(t, NewWatch(second, 2), []observation{
		{0, Sample{0, 0, []uint64{0, 0, 0, 0}}, nil},
		{1 * second, Sample{100, 100, []uint64{100, 100, 0, 0}}, nil},
		{2 * second, Sample{200, 200, []uint64{200, 200, 0, 0}}, nil},
		{3 * second, Sample{300, 300, []uint64{300, 300, 0, 0}}, nil},
		{4 * second, Sample{400, 300, []uint64{300, 400, 0, 0}}, nil},
		{5 * second, Sample{500, 300, []uint64{300, 500, 0, 0}},
			[]Finding{{Path: 0, Silent: second}}},
		{6 * second, Sample{600, 350, []uint64{300, 600, 50, 0}}, nil},
		{9 * second, Sample{900, 650, []uint64{300, 900, 350, 0}}, nil},
		// the first one is tried again
		{10 * second, Sample{1000, 850, []uint64{400, 1000, 450, 0}}, nil},
		{11 * second, Sample{1100, 1250, []uint64{600, 1100, 650, 0}},
			[]Finding{{Path: -1, Excess: 200}}},
	})
	observe(t, NewWatch(second, 2), []observation{ // a second path never carried at all
		{0, Sample{0, 0, []uint64{0, 0, 0}}, nil},
		{1 * second, Sample{100, 0, []uint64{100, 0, 0}}, nil},
		{2 * second, Sample{200, 0, []uint64{200, 0, 0}}, []Finding{{Path: -1, Short: 1}}},
	})
}

// Bursts over two paths of different delay: what the slower one brings of a burst that has ended is
// no excess, whenever the samples are taken; copies of copies are.
func TestWatchOfBursts(t *testing.T) {
	const (
		every  = 250 * time.Millisecond // samples
		burst  = 100                    // packets, one each millisecond, with as long a pause
		bursts = 40
	)
	for _, test := range []struct {
		skew   time.Duration
		copies uint64 // that each path brings of a packet
		excess bool
	}{{0, 1, false}, {50 * time.Millisecond, 1, false}, {240 * time.Millisecond, 1, false},
		{50 * time.Millisecond, 2, true}} {
		for offset := time.Duration(0); offset < every; offset += 10 * time.Millisecond {
			var fast, slow []time.Duration // when packets come
			for b := range bursts {
				for p := range burst {
					at := time.Duration(2*b*burst+p) * time.Millisecond
					fast, slow = append(fast, at), append(slow, at+test.skew)
				}
			}
			w, found := NewWatch(time.Second, 2), false
			for at := offset; at < 2*bursts*burst*time.Millisecond+time.Second; at += every {
				passed := uint64(countUntil(fast, at))
				came := []uint64{passed * test.copies,
					uint64(countUntil(slow, at)) * test.copies}
				for _, f := range w.Observe(at, Sample{Passed: passed,
					Discarded: came[0] + came[1] - passed, Paths: came}) {
					if f.Excess == 0 || !test.excess {
						t.Fatalf("skew %v, samples from %v: at %v %+v", test.skew, offset, at, f)
					}
					found = true
				}
			}
			if found != test.excess {
				t.Errorf("skew %v, samples from %v: no excess was found", test.skew, offset)
			}
		}
	}
}

// countUntil is how many of some times are over at a time.
func countUntil(times []time.Duration, at time.Duration) (count int) {
	for _, t := range times {
		if t < at {
			count++
		}
	}
	return count
}

// Counters that begin anew, and are further than before in some when they are read again, are no
// excess.
func TestWatchOfCountersAnew(t *testing.T) {
	observe(t, NewWatch(time.Second, 0), []observation{
		{0, Sample{10, 10, []uint64{10, 10}}, nil},
		{time.Second, Sample{500, 3, []uint64{500, 3}}, nil},
		{2 * time.Second, Sample{600, 200, []uint64{600, 200}}, nil},
		{3 * time.Second, Sample{700, 300, []uint64{700, 300}}, nil},
	})
}
