//go:build !amd64

package consistenthash

var vector, halves, vectorWords = false, false, false

func (w sought) scan(first int, reach []uint16, hits *[scanSlots]int32) int {
	return w.scanPlain(first, reach, hits)
}

func orderVector([]uint64, *float64, *[1<<logBits + 1]uint32, uint64, int,
	*[Depth + 1][nearSlots]uint64) uint8 {
	panic("consistenthash: this processor orders one slot at a time")
}

func orderHalves([]uint64, *float64, *[1<<logBits + 1]uint32, uint64, int, bool,
	*[Depth + 1][nearSlots]uint64) uint8 {
	panic("consistenthash: this processor orders one slot at a time")
}

func rowsVector([]uint64, uint64, int, *[rowMembers]uint16, *Row, *Row, *[RowSlots]Row) uint64 {
	panic("consistenthash: this processor orders one slot at a time")
}
