// Package srpolicy decides which traffic takes which segment lists: the SR policies of RFC 9256 at
// their head-end.
//
// A [Rule] chooses traffic for a [Policy]. A policy has candidate paths, of which the valid one
// that is preferred is active. A candidate path is a set of weighted segment lists with an
// [Action]: one list, flows or packets split over all of them, or a copy of each packet on every
// list. [Compile] turns rules and policies into the [Table] that the data plane looks up: for each
// rule what to do, and for each list the outer headers, ready but for what differs from packet to
// packet.
//
// The data plane is specified in docs/reference/dataplane.md, "Head-end".
package srpolicy
