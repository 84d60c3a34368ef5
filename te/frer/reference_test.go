package frer

import "time"

// standard is the vector recovery function of IEEE 802.1CB-2017 section 7.4.3.4 as it is written
// there: a shift register, and the lost packets counted as they leave it.
type standard struct {
	bits    int
	history []bool
	highest uint32
	takeAny bool

	passed, discarded, rogue, outOfOrder, lost uint64
}

func newStandard(history, bits int) *standard {
	return &standard{bits: bits, history: make([]bool, history), takeAny: true}
}

func (s *standard) receive(number uint32) bool {
	delta := int64(distance(s.highest, number, s.bits))
	length := int64(len(s.history))
	switch {
	case s.takeAny:
		s.takeAny, s.history[0], s.highest = false, true, number
	case delta > length || delta <= -length:
		s.rogue++
		s.discarded++
		return false
	case delta <= 0:
		if s.history[-delta] {
			s.discarded++
			return false
		}
		s.history[-delta] = true
		s.outOfOrder++
	default:
		if delta != 1 {
			s.outOfOrder++
		}
		for range delta - 1 {
			s.shift(false)
		}
		s.shift(true)
		s.highest = number
	}
	s.passed++
	return true
}

func (s *standard) shift(seen bool) {
	if !s.history[len(s.history)-1] {
		s.lost++
	}
	copy(s.history[1:], s.history)
	s.history[0] = seen
}

// run gives numbers to a recovery, all within the reset time, and returns the verdicts as a string
// of 1 (passed) and 0.
func run(r *Recovery, numbers []uint32) string {
	var verdicts []byte
	for i, number := range numbers {
		verdict := byte('0')
		if r.Receive(number, 0, time.Duration(i)*time.Microsecond) == Pass {
			verdict = '1'
		}
		verdicts = append(verdicts, verdict)
	}
	return string(verdicts)
}

// compare checks what was counted against the standard's counters. What the standard calls lost is
// what is missing, less what is missing but still in the history, and, after a reset, places of the
// history from before the earliest number that came.
func compare(t interface{ Errorf(string, ...any) }, r *Recovery, s *standard, numbers []uint32,
	verdicts string) {
	c := r.Counters()
	if c.Passed != s.passed || c.Duplicate+c.Rogue != s.discarded || c.Rogue != s.rogue ||
		c.OutOfOrder != s.outOfOrder {
		t.Errorf("counted %+v, the standard %+v", c, *s)
	}
	if len(numbers) == 0 {
		return
	}
	begun := numbers[0] // the first one always passes
	shifts, length := distance(begun, r.highest, s.bits), int32(len(s.history))
	// before the first that came: right as long as the stream does not go round the circle
	earliest := int32(0)
	for i, number := range numbers {
		if verdicts[i] == '1' {
			earliest = max(earliest, distance(number, begun, s.bits))
		}
	}
	phantoms := max(0, length-1-max(earliest, length-1-shifts))
	still := int32(0)
	for back, seen := range s.history {
		if !seen && int32(back) < shifts+earliest {
			still++
		}
	}
	if want := int64(s.lost) - int64(phantoms) + int64(still); int64(c.Missing()) != want {
		t.Errorf("missing %d, want %d: the standard has lost %d, of which %d phantoms, and %d "+
			"may still come", c.Missing(), want, s.lost, phantoms, still)
	}
}
