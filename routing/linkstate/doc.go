// Package linkstate builds a topology from the link states of routers: from BGP-LS (RFC 9552, and
// RFC 9514 for SRv6), or from OSPFv3 or IS-IS of FRRouting on this machine. It has nodes with the
// SID of their End, and links with metric, delay, capacity, shared-risk groups and the SID of their
// End.X, as far as they are announced. FRRouting 8.4 does not show SIDs: a router's SID is its
// locator then, which the IGP announces as a prefix.
//
// A router that is not for transit, as it tells (the overload bit of IS-IS, the R-bit and the
// V6-bit of OSPFv3), is marked as such: no path is to lead through it. Of a router with several
// topologies of IS-IS (RFC 5120) that of IPv6 counts.
//
// A link counts when both of its ends tell of it, as in the IGP's own computation. A LAN becomes a
// link between each two of its routers, which share a risk: those that tell of it, and that its
// node tells of. A metric of 0 counts as 1. Delays are in microseconds; if not all links tell of
// theirs, metrics stand for them.
package linkstate
