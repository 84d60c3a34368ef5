package consistenthash

import "golang.org/x/sys/cpu"

// vector says that the processor multiplies eight numbers of 64 bits at once.
var vector = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

// scan is scanPlain, eight slots at a time where the processor can.
func (w sought) scan(first int, reach []uint16, hits *[scanSlots]int32) int {
	if !vector {
		return w.scanPlain(first, reach, hits)
	}
	return scanVector(&w, first, reach, hits)
}

// scanVector looks at a multiple of eight slots.
//
//go:noescape
func scanVector(w *sought, first int, reach []uint16, hits *[scanSlots]int32) int

// orderVector is rankDraws and clearlyApart for the eight slots from first on: ids of the members, and a
// bit for each slot in which draws are so close that rounding may decide.
//
//go:noescape
func orderVector(few *handful, seed uint64, count, first int,
	ids *[Depth / 4][nearSlots]uint64) (close uint8)
