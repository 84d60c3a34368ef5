package datapath

import (
	"net/netip"

	"sextant/te/srpolicy"
)

// hopNumbers number first segments, so that programs can remember their next hops by a number.
type hopNumbers struct {
	of   map[netip.Addr]uint16
	most uint16 // the highest number ever given
}

// give numbers the first segments of a table: those that have a number keep it, others get the
// lowest that is free. Again says that one of these belonged to another segment before, which
// programs may remember.
func (h *hopNumbers) give(t srpolicy.Table) (again bool) {
	taken := map[uint16]bool{}
	for _, n := range h.of {
		taken[n] = true
	}
	free := uint16(1)
	for _, first := range firstSegments(t) {
		if _, known := h.of[first]; known {
			continue
		}
		for taken[free] {
			free++
		}
		h.of[first], taken[free] = free, true
		again = again || free <= h.most
		h.most = max(h.most, free)
	}
	return again
}

// keep takes the numbers of all others away.
func (h *hopNumbers) keep(t srpolicy.Table) {
	kept := map[netip.Addr]uint16{}
	for _, first := range firstSegments(t) {
		kept[first] = h.of[first]
	}
	h.of = kept
}

func (h *hopNumbers) number(header srpolicy.Header) uint16 { return h.of[header.Destination()] }

func firstSegments(t srpolicy.Table) (list []netip.Addr) {
	for _, entry := range t {
		for _, header := range entry.Lists {
			list = append(list, header.Destination())
		}
	}
	return list
}
