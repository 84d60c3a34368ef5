package acceptance

import "math/bits"

// Note is a level as it is written on a SYN that is passed on: 12 bits, 0 for nothing. Average
// writes one with four bits of exponent and eight of mantissa, as in a floating-point number; its
// error is below 1/256, or 1/4096 of a connection per core. Delay has five and six, an error below
// 1/64, and a bit that says of what the level is.
type Note uint16

// NoteMax is the greatest note.
const NoteMax Note = 1<<noteBits - 1

const (
	noteBits     = 12
	mantissaBits = 8
	noteUnit     = 5 // a note counts in 1/2048 connections per core

	delayMantissaBits = 6
	// in a note of Delay: the level is what a connection takes of a core, not its delay
	noteOfUsual Note = 1 << (noteBits - 1)
)

// NoteOf writes a level, rounded down, as far as a note reaches. It is never 0.
func NoteOf(l Level) Note {
	return min(Note(short(uint32(l)>>noteUnit, mantissaBits)), NoteMax-1) + 1
}

// Level reads a note; 0 if it says nothing.
func (n Note) Level() Level {
	if n == 0 {
		return 0
	}
	return max(long(uint32(n)-1, mantissaBits)<<noteUnit, 1)
}

// delayNote writes a delay, or what a connection takes of a core.
func delayNote(l Level, usual bool) Note {
	n := Note(short(uint32(l), delayMantissaBits)) + 1
	if usual {
		n |= noteOfUsual
	}
	return n
}

// delays reads a note of Delay: one of the two is 0, or both.
func (n Note) delays() (delay, usual Level) {
	code := n &^ noteOfUsual
	if code == 0 {
		return 0, 0
	}
	l := max(long(uint32(code)-1, delayMantissaBits), 1)
	if n&noteOfUsual != 0 {
		return 0, l
	}
	return l, 0
}

// short writes a number, rounded down, as an exponent and so many bits of mantissa. Greater numbers
// have greater ones.
func short(value uint32, mantissa int) uint32 {
	n := bits.Len32(value)
	if n <= mantissa {
		return value
	}
	exponent := n - mantissa
	return uint32(exponent)<<mantissa | (value>>(exponent-1) - 1<<mantissa)
}

// long reads what short wrote.
func long(code uint32, mantissa int) Level {
	value, exponent := Level(code&(1<<mantissa-1)), code>>mantissa
	if exponent > 0 {
		value = (value + 1<<mantissa) << (exponent - 1)
	}
	return value
}
