package srpolicy

import "slices"

// OfTwo returns which segment list of a group a flow that begins takes, and keeps: the two halves
// of its hash draw one each by Shares, and it takes the one on whose way fewer flows have begun
// lately, or else the first. Flows that begin before weights show earlier ones do not all meet.
func OfTwo(shares []uint32, hash uint64, begun func(list int) uint32) int {
	first, second := ofHash(shares, uint32(hash>>32)), ofHash(shares, uint32(hash))
	if begun(second) < begun(first) {
		return second
	}
	return first
}

func ofHash(shares []uint32, hash uint32) int {
	list, _ := slices.BinarySearch(shares, hash)
	return min(list, len(shares)-1)
}
