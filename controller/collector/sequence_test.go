package collector_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/controller/collector"
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
			if s.Take(n, 0) == set[n] {
				t.Fatalf("seed %d: number %d came before: %v", seed, n, set[n])
			}
			set[n] = true
			highest = max(highest, order[n])
		}
		last := sent[highest]
		for i := range uint32(256) { // until all that is missing is counted as lost
			s.Take((last+1+i)%span, 0)
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
	s.Take(100, 0)
	s.Take(1100, 0)
	if s.Lost != 999-255 {
		t.Fatalf("%d lost at once", s.Lost)
	}
	for n := range uint32(256) {
		s.Take(1101+n, 0)
	}
	if s.Lost != 999 || s.Received != 258 {
		t.Fatalf("%+v", s)
	}
}

// An exporter that starts again, after a silence, loses nothing by that but its first number; a
// single stray number changes nothing, nor does a series of old ones while the new one goes on.
func TestSequenceRestart(t *testing.T) {
	var s collector.Sequence
	second := int64(1e9)
	for n := range uint32(1000) {
		if !s.Take(500000+n, 0) {
			t.Fatalf("number %d is not believed", n)
		}
	}
	if s.Take(3, 0) || !s.Take(501000, 0) {
		t.Error("a stray number is believed, or the next one is not")
	}
	if s.Restarts != 0 || s.Lost != 0 || s.Received != 1001 || s.Late != 1 {
		t.Fatalf("a stray number: %+v", s)
	}
	for n := range uint32(1000) { // old ones, in between
		if s.Take(400000+n, second+int64(n)) || !s.Take(501001+n, second+int64(n)) {
			t.Fatalf("old number %d is believed, or a new one is not", n)
		}
	}
	if s.Restarts != 0 || s.Received != 2001 {
		t.Fatalf("a replay: %+v", s)
	}
	for n := range uint32(1000) {
		if s.Take(n, 3*second) != (n > 0) {
			t.Fatalf("after a silence, number %d", n)
		}
	}
	if s.Restarts != 1 || s.Lost != 0 || s.Received != 3000 {
		t.Fatalf("a restart: %+v", s)
	}
}

// An exporter that starts again early in its numbers loses its first one alone, whatever of the
// numbers before was seen; copies that come while a series goes on begin none.
func TestSequenceRestartsEarly(t *testing.T) {
	const second = int64(1e9)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var s collector.Sequence
		first, length := uint32(r.IntN(3)*r.IntN(200)), uint32(1+r.IntN(300))
		for n := range length {
			if n > 0 && r.IntN(4) == 0 {
				continue // lost
			}
			if number := (first + n) % span; !s.Take(number, int64(n)) || s.Take(number, int64(n)) {
				t.Fatalf("seed %d: number %d is not believed, or twice", seed, number)
			}
		}
		before := s
		for n := range uint32(500) { // one in ten seconds
			now := int64(3600+10*n) * second
			s.Take(n, now)
			if s.Take(n, now) {
				t.Fatalf("seed %d: a copy of %d is believed", seed, n)
			}
		}
		if s.Received-before.Received < 499 {
			t.Errorf("seed %d: %d to %d, then %d of 500 believed", seed, first, first+length-1,
				s.Received-before.Received)
		}
	}
}
