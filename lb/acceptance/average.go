package acceptance

import "math/bits"

// Level is a load: busy connections per core, in units of 1/65536. 0 stands for "not known".
type Level uint32

// MaxLevels is for how many candidates left Average has a mean of its own. Beyond, it takes the
// last.
const MaxLevels = 3

const (
	levelOne      = 16 // bits behind the point
	forgetShift   = 4  // a new look at the own load weighs 1/16
	agreeShift    = 1  // a mean that another server tells weighs 1/2
	fractionShift = 4  // loads that differ by less than 1/16 of a connection count as equal
	busyMax       = 1 << 15
)

// level is the load of a server with so many connections. Half a connection is added so that of two
// idle servers the one with more cores is less loaded.
func (p Policy) level(busy uint32) Level {
	return Level((2*min(busy, busyMax) + 1) << (levelOne - 1) / max(p.Cores, 1))
}

// decideAverage learns from an offer and answers it.
func (p Policy) decideAverage(s State, o Offer) (Answer, State) {
	load := p.level(o.Busy)
	if told := o.Told.Level(); told != 0 {
		s.Levels[0] = s.Levels[0].towards(told, agreeShift)
	}
	meets := load
	for i := range s.Levels {
		s.Levels[i] = s.Levels[i].towards(meets, forgetShift)
		meets = min(meets, s.Levels[i])
	}
	if o.Left == 0 || load <= s.Levels[min(o.Left, MaxLevels)-1]+p.equal() {
		return Answer{Accept: true}, s
	}
	return Answer{Tell: NoteOf(s.Levels[0])}, s
}

// averageThreshold is the least number of connections whose load is above a level.
func (p Policy) averageThreshold(l Level) uint32 {
	above := uint64(l) + uint64(p.equal()) + 1 // loads are whole numbers, rounded down
	halves := (above*uint64(max(p.Cores, 1)) - 1) >> (levelOne - 1)
	return uint32(min((halves+1)/2, busyMax))
}

// Loads are the load of a server with so many connections, and that of all servers in the mean as
// far as others told it, 0 if they did not: busy connections per core, half a connection added.
func (p Policy) Loads(s State, busy uint32) (own, mean float64) {
	const one = 1 << levelOne
	return float64(p.level(busy)) / one, float64(s.Levels[0]) / one
}

// equal is by how much loads may differ that count as equal.
func (p Policy) equal() Level { return p.level(0) >> (fractionShift - 1) }

// towards moves a mean to a new value by 1/2^shift of the distance, all of it if nothing was known.
// It never gets back to 0.
func (l Level) towards(value Level, shift uint) Level {
	if l == 0 {
		return max(value, 1)
	}
	return Level(max(int64(l)+(int64(value)-int64(l))>>shift, 1))
}

// Note is a level as it is written on a SYN that is passed on: 12 bits, 0 for nothing. The upper
// four are an exponent, the lower eight a mantissa, as in a floating-point number; its error is
// below 1/256, or 1/4096 of a connection per core.
type Note uint16

// NoteMax is the greatest note.
const NoteMax Note = 1<<noteBits - 1

const (
	noteBits     = 12
	mantissaBits = 8
	noteUnit     = 5 // a note counts in 1/2048 connections per core
)

// NoteOf writes a level, rounded down, as far as a note reaches. It is never 0.
func NoteOf(l Level) Note {
	value := uint32(l) >> noteUnit
	exponent := 0
	if n := bits.Len32(value); n > mantissaBits {
		exponent = n - mantissaBits
		value = value>>(exponent-1) - 1<<mantissaBits
	}
	return min(Note(exponent)<<mantissaBits|Note(value), NoteMax-1) + 1
}

// Level reads a note; 0 if it says nothing.
func (n Note) Level() Level {
	if n == 0 {
		return 0
	}
	n--
	value, exponent := Level(n&(1<<mantissaBits-1)), n>>mantissaBits
	if exponent > 0 {
		value = (value + 1<<mantissaBits) << (exponent - 1)
	}
	return max(value<<noteUnit, 1)
}
