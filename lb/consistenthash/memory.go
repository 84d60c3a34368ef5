package consistenthash

import "unsafe"

// Footprint is how many bytes a Ranking of so many slots and members keeps at most: the orders, and
// the index, if there is one.
func Footprint(slots, members int) int {
	bytes := slots * (int(unsafe.Sizeof(order{})) + 3)
	if members > fewMembers {
		bytes += slots*rankingDepth*4 + members*int(unsafe.Sizeof([]int32{}))
	}
	return bytes
}
