// Package pathprobe measures, from the head-end alone, over which segment lists packets arrive.
//
// A probe is a small packet from the head-end to itself, inside the headers of the list: it travels
// as traffic does, is decapsulated at the egress by an End.DT6, End.DT46 or End.MERGE, and comes
// back by the egress's routes. Routers need nothing but SRv6.
//
//	IPv6 | SRH with the list | IPv6 head-end -> head-end | UDP | list, number
//
// The way back is plain and the same for all lists: if it fails, all of them fall silent at once.
// So a list counts as silent by itself only if another one of the same ends was heard meanwhile
// (silenced).
package pathprobe
