package collector

import "sextant/packet/telemetry"

const (
	window       = 256     // numbers behind the highest that may still come
	maxAhead     = 1 << 16 // a greater step is another series: the exporter restarted
	sequenceSpan = 1 << telemetry.SequenceBits
	firstNumber  = sequenceSpan // so that subtraction stays positive
	// An exporter restarts after a silence: two numbers in a row beside a series that goes on are
	// replayed.
	restartSilenceNS = 1e9
)

// Sequence tells what became of the datagrams of one exporter, by their numbers. A number is lost
// when 256 later ones have been seen and it has not.
type Sequence struct {
	Received  uint64 // each number once
	Lost      uint64
	Late      uint64 // after a greater number
	Duplicate uint64
	Restarts  uint64 // the numbers began anew

	base, highest uint64 // unwrapped
	lastNS        int64  // when a number came that is new
	candidate     uint32 // a number out of range is a restart if this one follows it
	hasCandidate  bool
	seen          [window / 64]uint64
}

// Take enters the number of a datagram, modulo 2^22, that came at a steady time (nanoseconds): one
// of which a clock that is set makes no silence, and ends none. It is false for a datagram that
// came before, or that may have: it is not to be believed.
func (s *Sequence) Take(number uint32, nowNS int64) bool {
	if !s.enter(number, nowNS) {
		return false
	}
	s.lastNS = max(s.lastNS, nowNS)
	return true
}

func (s *Sequence) enter(number uint32, nowNS int64) bool {
	if s.Received == 0 {
		s.begin(number)
		return true
	}
	ahead := (int64(number) - int64(s.highest)) & (sequenceSpan - 1)
	if ahead >= sequenceSpan/2 {
		ahead -= sequenceSpan
	}
	switch {
	case ahead > maxAhead || ahead <= -window || ahead <= 0 && s.silent(nowNS):
		return s.outOfRange(number, nowNS)
	case ahead > 0:
		s.advance(uint64(ahead))
	case s.has(s.highest - uint64(-ahead)):
		s.Duplicate++
		return false
	default:
		s.Late++
	}
	s.hasCandidate = false
	s.Received++
	s.mark(s.highest - uint64(max(-ahead, 0)))
	return true
}

func (s *Sequence) begin(number uint32) {
	s.base = firstNumber + uint64(number)
	s.highest, s.seen, s.hasCandidate = s.base, [window / 64]uint64{}, false
	s.Received++
	s.mark(s.highest)
}

// outOfRange begins a new series with the second of two numbers that follow each other (as RFC 3550
// appendix A.1 does), if the old one is silent: a single one may be astray or forged.
func (s *Sequence) outOfRange(number uint32, nowNS int64) bool {
	if s.hasCandidate && number == s.candidate && s.silent(nowNS) {
		s.settle()
		s.Restarts++
		s.begin(number)
		return true
	}
	s.candidate, s.hasCandidate = (number+1)&(sequenceSpan-1), true
	s.Late++
	return false
}

// silent tells whether nothing new came for so long that old numbers are those of another series:
// what is late comes sooner.
func (s *Sequence) silent(nowNS int64) bool { return nowNS-s.lastNS >= restartSilenceNS }

// settle counts what was still awaited as lost.
func (s *Sequence) settle() {
	for n := s.highest; n > s.base && n+window > s.highest; n-- {
		if !s.has(n) {
			s.Lost++
		}
	}
}

// advance makes a number that much above the highest the highest.
func (s *Sequence) advance(by uint64) {
	if by >= window {
		s.settle()
		s.Lost += by - window
		s.seen = [window / 64]uint64{}
		s.highest += by
		return
	}
	for range by {
		s.highest++
		if left := s.highest - window; left >= s.base && !s.has(left) {
			s.Lost++
		}
		s.clear(s.highest) // the slot of the number that left the window
	}
}

func (s *Sequence) has(n uint64) bool { return s.seen[n%window/64]&(1<<(n%64)) != 0 }
func (s *Sequence) mark(n uint64)     { s.seen[n%window/64] |= 1 << (n % 64) }
func (s *Sequence) clear(n uint64)    { s.seen[n%window/64] &^= 1 << (n % 64) }
