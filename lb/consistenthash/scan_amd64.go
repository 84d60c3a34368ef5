package consistenthash

import "golang.org/x/sys/cpu"

// vector says that the processor multiplies eight numbers of 64 bits at once, and counts their
// zeros.
var vector = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL &&
	cpu.X86.HasAVX512CD

// halves says that it multiplies four numbers of 32 bits at once.
var halves = cpu.X86.HasAVX2

// vectorWords says that it also chooses among words.
var vectorWords = vector && cpu.X86.HasAVX512BW

// scan is scanPlain, eight slots at a time where the processor can.
func (w sought) scan(first int, reach []uint16, hits *[scanSlots]int32) int {
	switch {
	case vector:
		return scanVector(&w, first, reach, hits)
	case halves:
		return scanHalves(&w, first, reach, hits)
	}
	return w.scanPlain(first, reach, hits)
}

// scanVector looks at a multiple of eight slots.
//
//go:noescape
func scanVector(w *sought, first int, reach []uint16, hits *[scanSlots]int32) int

// scanHalves is scanVector for a processor with halves alone.
//
//go:noescape
func scanHalves(w *sought, first int, reach []uint16, hits *[scanSlots]int32) int

// orderVector orders members with these keys in the eight slots from first on, by their draws if
// inverses is nil, else by their scores, of which these are the inverse weights. It has a bit for
// each slot in which they are so close that rounding may decide, or what is in place of their last
// bits.
//
//go:noescape
func orderVector(keys []uint64, inverses *float64, logs *[1<<logBits + 1]uint32, seed uint64,
	first int, words *[Depth + 1][nearSlots]uint64) (close uint8)

// orderHalves is orderVector with words of 63 bits, and for a processor with halves alone. If not
// deep, words are those of the best RowPlaces and of the one behind.
//
//go:noescape
func orderHalves(keys []uint64, inverses *float64, logs *[1<<logBits + 1]uint32, seed uint64,
	first int, deep bool, words *[Depth + 1][nearSlots]uint64) (close uint8)

// rowsVector writes the rows of so many slots from first on, with the words of the members where
// the mask has ones, and has a bit for each slot in which draws are too close, as orderVector.
//
//go:noescape
func rowsVector(keys []uint64, seed uint64, first int, words *[rowMembers]uint16, mask, rest *Row,
	rows *[RowSlots]Row) (close uint64)
