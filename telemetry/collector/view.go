package collector

import "sextant/packet/flow"

// EachLink calls each with the links and when one was last heard of (nanoseconds of POSIX time), in
// the order in which they came.
func (t *Table) EachLink(each func(l Link, s *LinkState, seenNS int64)) {
	for _, s := range t.links.slots {
		each(s.key, &s.value, s.seenNS)
	}
}

// EachExporter calls each with the exporters and when one was last heard of.
func (t *Table) EachExporter(each func(e Exporter, s *Sequence, seenNS int64)) {
	for _, s := range t.exporters.slots {
		each(s.key, &s.value, s.seenNS)
	}
}

// Path returns the last path of a flow and when it was reported; nil if there is none.
func (t *Table) Path(f flow.Tuple) (*Path, int64) {
	i, ok := t.paths.index[f]
	if !ok {
		return nil, 0
	}
	return &t.paths.slots[i].value, t.paths.slots[i].seenNS
}

// Paths returns how many flows have a path.
func (t *Table) Paths() int { return len(t.paths.index) }
