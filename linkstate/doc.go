// Package linkstate makes a topology of what routers say of their links by BGP-LS (RFC 9552, and RFC 9514 for SRv6): nodes with the
// SID of their End, links with metric, delay, capacity, shared-risk groups and the SID of their End.X.
//
// A link counts when both of its ends tell of it, as in the IGP's own computation. A LAN becomes a link between each two of its
// routers, which share a risk. Delays are in microseconds.
package linkstate
