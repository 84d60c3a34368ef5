package collector

// EachLink calls each with the links and when one was last heard of (Moment.SteadyNS), in the order
// of their places.
func (t *Table) EachLink(each func(l Link, s *LinkState, seenNS int64)) {
	t.EachLinkOf(0, 1, each)
}

// EachExporter calls each with the exporters and when one was last heard of.
func (t *Table) EachExporter(each func(e Exporter, s *Sequence, seenNS int64)) {
	for _, s := range t.exporters.slots {
		each(s.key, &s.value, s.seenNS)
	}
}

// EachLinkOf is EachLink for one of some parts of the links.
func (t *Table) EachLinkOf(part, parts int, each func(l Link, s *LinkState, seenNS int64)) {
	for i := part; i < len(t.links.slots); i += parts {
		each(t.links.slots[i].key, &t.links.slots[i].value, t.links.slots[i].seenNS)
	}
}
