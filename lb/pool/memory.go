package pool

import (
	"unsafe"

	"sextant/lb/consistenthash"
)

// Footprint is how many bytes a generation of so many backends keeps at most: when each bucket has
// a past. At the beginning none has, and a generation of few backends and buckets keeps none.
func (s Spec) Footprint(backends int) int {
	pages := (s.Buckets + pageBuckets - 1) / pageBuckets
	bytes := pages * int(unsafe.Sizeof(chainPage{})+unsafe.Sizeof(pastPage{})+
		2*unsafe.Sizeof(uintptr(0)))
	bytes += backends * int(unsafe.Sizeof(Backend{})+unsafe.Sizeof(consistenthash.Member{}))
	switch {
	case s.Method == Exact:
		bytes += s.Candidates*2*s.Buckets + 2*spareSlots
	case s.Method == Rendezvous && !s.computesOrders(backends):
		bytes += consistenthash.Footprint(s.Buckets, backends)
	}
	return bytes
}
