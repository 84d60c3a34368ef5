package acceptance_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/acceptance"
)

var average = acceptance.Policy{Kind: acceptance.Average, Cores: 2}

// one is a load of one connection per core.
const one acceptance.Level = 1 << 16

// A server that sees the same load again and again learns it, and takes a connection if it is not
// busier than that.
func TestAverageLearns(t *testing.T) {
	s := average.Initial()
	for range 1000 {
		_, s = average.Decide(s, acceptance.Offer{Busy: 3})
	}
	want := one * 7 / 4 // 3.5 connections on two cores
	for i, level := range s.Levels {
		if level > want || level < want-16 {
			t.Errorf("level %d is %d, want up to 16 below %d", i, level, want)
		}
	}
	for busy, want := range map[uint32]bool{0: true, 3: true, 4: false, math.MaxUint32: false} {
		answer, _ := average.Decide(s, acceptance.Offer{Busy: busy, Left: 1})
		if answer.Accept != want {
			t.Errorf("%d busy where 3 are usual: accept is %v", busy, answer.Accept)
		}
		if answer.Accept == (answer.Tell != 0) {
			t.Errorf("%d busy: accept is %v and the next is told %d", busy, answer.Accept,
				answer.Tell)
		}
	}
}

// The threshold that is shown is where the answer changes.
func TestThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := acceptance.Policy{Kind: acceptance.Average, Cores: rapid.Uint32Range(0, 64).Draw(t,
			"cores")}
		level := acceptance.Level(rapid.Uint32Range(1, 1<<26).Draw(t, "level"))
		s := acceptance.State{Levels: [acceptance.MaxLevels]acceptance.Level{level, level, level}}
		threshold := p.ThresholdIn(s)
		for busy := max(threshold, 1) - 1; busy <= threshold; busy++ {
			load := uint64(2*busy+1) << 15 / uint64(max(p.Cores, 1))
			accepts := load <= uint64(level)+uint64(1<<15/max(p.Cores, 1)>>3)
			if accepts != (busy < threshold) && threshold < 1<<15 {
				t.Fatalf("level %d: threshold %d, but %d connections are accepted: %v", level,
					threshold, busy, accepts)
			}
		}
	})
	for kind, want := range map[acceptance.Kind]uint32{acceptance.Always: 0, acceptance.Static: 7,
		acceptance.Dynamic: 5} {
		if got := (acceptance.Policy{Kind: kind,
			Threshold: 7}).ThresholdIn(acceptance.State{Threshold: 5}); got != want {
			t.Errorf("%v: threshold %d, want %d", kind, got, want)
		}
	}
}

// Where loads differ, a server with more candidates behind it is choosier: it waits for a better
// one.
func TestAverageIsChoosierWithMoreCandidates(t *testing.T) {
	random, s := rand.New(rand.NewPCG(1, 1)), average.Initial()
	for range 10_000 {
		_, s = average.Decide(s, acceptance.Offer{Busy: uint32(random.IntN(9))})
	}
	most := [acceptance.MaxLevels + 2]uint32{}
	for left := range most {
		for busy := range uint32(9) {
			if answer, _ := average.Decide(s,
				acceptance.Offer{Busy: busy, Left: uint32(left)}); answer.Accept {
				most[left] = busy
			}
		}
	}
	// Of loads from 0 to 8 the mean is 4, the mean of min(X, 4) about 2.9, and of min(X, 2.9) about
	// 2.2.
	if most[0] != 8 || most[1] < 3 || most[1] > 5 || most[2] >= most[1] || most[3] > most[2] ||
		most[4] != most[3] {
		t.Errorf("with 0, 1, 2, ... candidates left up to %v connections are taken on top of", most)
	}
}

// What another server tells moves the mean halfway there.
func TestAverageListens(t *testing.T) {
	s := acceptance.State{Levels: [acceptance.MaxLevels]acceptance.Level{one, one, one}}
	_, next := average.Decide(s, acceptance.Offer{Busy: 2, Left: 1,
		Told: acceptance.NoteOf(3 * one)})
	if got := next.Levels[0]; got < 2*one-one/8 || got > 2*one {
		t.Errorf("1 per core, and told of 3: %g", float64(got)/float64(one))
	}
	_, fresh := average.Decide(acceptance.State{},
		acceptance.Offer{Busy: 0, Left: 1, Told: acceptance.NoteOf(3 * one)})
	if got := fresh.Levels[0]; got < 2*one {
		t.Errorf("nothing known, and told of 3: %g", float64(got)/float64(one))
	}
}

// Servers that talk agree, whatever they have learnt before.
func TestAverageAgrees(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	states := make([]acceptance.State, 12)
	for i := range states {
		level := acceptance.Level(i) * one
		states[i].Levels = [acceptance.MaxLevels]acceptance.Level{level, level, level}
	}
	for range 2000 {
		first, second := random.IntN(12), random.IntN(12)
		answer, next := average.Decide(states[first], acceptance.Offer{Busy: uint32(random.IntN(6)),
			Left: 1})
		states[first] = next
		if !answer.Accept {
			_, states[second] = average.Decide(states[second],
				acceptance.Offer{Busy: uint32(random.IntN(6)), Told: answer.Tell})
		}
	}
	for i, s := range states {
		if level := s.Levels[0]; level < one || level > 2*one { // loads from 0.25 to 2.75, mean 1.5
			t.Errorf("server %d thinks that the mean is %g", i, float64(level)/float64(one))
		}
	}
}

// A note is as good as its eight bits: never above the level, and short of it by 1/256 or 1/2048 of
// a connection.
func TestNotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := acceptance.Level(rapid.Uint32().Draw(t, "level"))
		note := acceptance.NoteOf(level)
		got := note.Level()
		if note == 0 || note > acceptance.NoteMax || got == 0 {
			t.Fatalf("level %d is note %d, read as %d", level, note, got)
		}
		if note < acceptance.NoteMax &&
			(got > max(level, 1) || uint64(level-min(got, level)) > max(uint64(level)/256, 32)) {
			t.Fatalf("level %d is read as %d", level, got)
		}
	})
	if got := acceptance.Note(0).Level(); got != 0 {
		t.Errorf("no note is level %d", got)
	}
	for note := acceptance.Note(2); note <= acceptance.NoteMax; note++ {
		if note.Level() <= (note - 1).Level() {
			t.Fatalf("notes %d and %d are the levels %d and %d", note-1, note, (note - 1).Level(),
				note.Level())
		}
	}
}
