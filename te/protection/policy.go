package protection

import (
	"fmt"
	"net/netip"
	"slices"

	"sextant/te/srpolicy"
)

// Installation says how a protection is known to the data plane.
type Installation struct {
	Name string
	// by which the egress knows packets of the first slot; each that follows has one more
	FirstFlow uint32
	Egress    netip.Addr          // the SID at the egress that merges copies, or decapsulates
	Form      srpolicy.Redundancy // how copies are numbered
	Places    []string            // names of the lists as they are installed now
}

// ListName is how the list in a slot is called.
func ListName(slot int) string { return fmt.Sprintf("path%d", slot+1) }

// Segments are what packets over a path are sent to, one after the other: the last SID is the
// egress's function instead of its node SID.
func (p Path) Segments(egress netip.Addr) []netip.Addr {
	if len(p.SIDs) == 0 {
		return []netip.Addr{egress}
	}
	return append(slices.Clone(p.SIDs[:len(p.SIDs)-1]), egress)
}

// Policy is what the head-end does now: packets travel along the lists that carry, and along one
// that is tried. Without a list that carries it has no valid path.
func (s State) Policy(n Installation) srpolicy.Policy {
	path := srpolicy.CandidatePath{Name: "carrying", Action: srpolicy.Mirror, LeastLists: 1}
	if s.Intent.Copies == 1 {
		path.Action = srpolicy.Path
	}
	lists := s.Carrying()
	if i, ok := s.Tried(); ok && !slices.Contains(lists, i) {
		lists = append(lists, i)
	}
	for _, i := range lists {
		l := srpolicy.List{Name: ListName(i), Segments: s.Slots[i].Path.Segments(n.Egress),
			Reduced: true, Redundancy: n.Form}
		if n.Form != srpolicy.None {
			l.Flow = n.FirstFlow + uint32(i)
		}
		path.Lists = append(path.Lists, l)
	}
	path.Lists = inPlace(path.Lists, n.Places)
	return srpolicy.Policy{Name: n.Name, Paths: []srpolicy.CandidatePath{path}}
}

// inPlace leaves lists that stay where they are among those installed, and gives new ones the
// places of those that go. Copies of a packet take the lists by their places, one after the other,
// and the table may be replaced between two of them: so it is the copy on a list that goes which is
// sent along a new one, and never the other one as well.
func inPlace(lists []srpolicy.List, places []string) []srpolicy.List {
	if len(lists) == 0 {
		return lists
	}
	ordered, used := make([]srpolicy.List, len(lists)), make([]bool, len(lists))
	var rest []srpolicy.List
	for _, l := range lists {
		if i := slices.Index(places, l.Name); i >= 0 && i < len(lists) {
			ordered[i], used[i] = l, true
		} else {
			rest = append(rest, l)
		}
	}
	for i := range ordered {
		if !used[i] {
			ordered[i], rest = rest[0], rest[1:]
		}
	}
	return ordered
}
