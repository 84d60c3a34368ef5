package collector_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/telemetry/collector"
)

const span = 1 << 22

type arrival struct {
	at     int
	number uint32
}

// journey is a series of numbers as a network delivers it: some are lost, some come
// later than others sent after them, within a reach, some come twice.
func journey(r *rand.Rand, first uint32, count, reach int) (sent, came []uint32) {
	var arrivals []arrival
	for i := range count {
		n := (first + uint32(i)) % span
		sent = append(sent, n)
		if i == 0 { // the first comes first
			arrivals = append(arrivals, arrival{-1, n})
			continue
		}
		for range []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 2}[r.IntN(10)] {
			arrivals = append(arrivals, arrival{i + r.IntN(reach), n})
		}
	}
	slices.SortStableFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	for _, a := range arrivals {
		came = append(came, a.number)
	}
	return sent, came
}

// The counters are those of a plain set, across the wrap of the numbers.
func TestSequenceAgainstSet(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		first := uint32(r.IntN(span))
		if seed%2 == 0 {
			first = span - uint32(r.IntN(2000))
		}
		sent, came := journey(r, first%span, 3000, 1+r.IntN(250))
		var s collector.Sequence
		set, order := map[uint32]bool{}, map[uint32]int{}
		for i, n := range sent {
			order[n] = i
		}
		var late, duplicate uint64
		highest := -1
		for _, n := range came {
			switch {
			case set[n]:
				duplicate++
			case order[n] < highest:
				late++
			}
			set[n] = true
			highest = max(highest, order[n])
			s.Take(n)
		}
		last := sent[highest]
		for i := range uint32(256) { // until all that is missing is counted as lost
			s.Take((last + 1 + i) % span)
		}
		received, lost := uint64(len(set)+256), uint64(highest+1-len(set))
		if s.Received != received || s.Lost != lost || s.Late != late ||
			s.Duplicate != duplicate || s.Restarts != 0 {
			t.Fatalf("seed %d: %+v; received %d, lost %d, late %d, duplicate %d", seed, s,
				received, lost, late, duplicate)
		}
	}
}

// A gap longer than the window is lost at once, but for what may still come.
func TestSequenceGap(t *testing.T) {
	var s collector.Sequence
	s.Take(100)
	s.Take(1100)
	if s.Lost != 999-255 {
		t.Fatalf("%d lost at once", s.Lost)
	}
	for n := range uint32(256) {
		s.Take(1101 + n)
	}
	if s.Lost != 999 || s.Received != 258 {
		t.Fatalf("%+v", s)
	}
}

// An exporter that begins anew loses nothing by that; a single stray number changes nothing.
func TestSequenceRestart(t *testing.T) {
	var s collector.Sequence
	for n := range uint32(1000) {
		s.Take(500000 + n)
	}
	s.Take(3)
	s.Take(501000)
	if s.Restarts != 0 || s.Lost != 0 || s.Received != 1001 || s.Late != 1 {
		t.Fatalf("a stray number: %+v", s)
	}
	for n := range uint32(1000) {
		s.Take(n)
	}
	if s.Restarts != 1 || s.Lost != 0 || s.Received != 2000 {
		t.Fatalf("a restart: %+v", s)
	}
}
