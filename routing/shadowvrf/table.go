package shadowvrf

import (
	"iter"
	"net/netip"
	"slices"
	"time"

	"sextant/routing/rib"
)

// Table is a routing table with its shadow: what both hold, and what the first is to hold. The zero
// value is empty.
type Table struct {
	// Keep is how long next hops stay in the shadow after they were put there; 0: until the next
	// change.
	Keep time.Duration

	entries map[netip.Prefix]*Entry
	pending map[netip.Prefix]bool // whose original is not what it is to be
	expires map[netip.Prefix]time.Time
}

// Entry is what becomes of packets to a prefix. The zero value of a set is no route.
type Entry struct {
	Original rib.Set
	Shadow   rib.Set
	Wanted   rib.Set // what Original is to be
}

// Which says which of the two tables is meant.
type Which uint8

// The tables.
const (
	Original Which = iota
	Shadow
)

// Op is one change of one table.
type Op struct {
	Which  Which
	Prefix netip.Prefix
	Set    rib.Set // the zero value: the route goes
}

// Adopt notes what the tables hold already, as after a restart.
func (t *Table) Adopt(prefix netip.Prefix, original, shadow rib.Set, now time.Time) {
	e := t.entry(prefix)
	e.Original, e.Shadow, e.Wanted = original, shadow, original
	t.note(prefix, e, now)
}

func (t *Table) entry(prefix netip.Prefix) *Entry {
	if t.entries == nil {
		t.entries, t.pending, t.expires = map[netip.Prefix]*Entry{}, map[netip.Prefix]bool{},
			map[netip.Prefix]time.Time{}
	}
	e := t.entries[prefix]
	if e == nil {
		e = &Entry{}
		t.entries[prefix] = e
	}
	return e
}

// Want says what the table is to hold for a prefix. Only the last word before Plan counts: of a
// route that changes and changes back, nothing is seen.
func (t *Table) Want(prefix netip.Prefix, set rib.Set) {
	e := t.entry(prefix)
	e.Wanted = set
	t.settle(prefix, e)
}

// settle notes whether something is to be done about an entry.
func (t *Table) settle(prefix netip.Prefix, e *Entry) {
	if e.Wanted != e.Original || e.circles() {
		t.pending[prefix] = true
		return
	}
	delete(t.pending, prefix)
	if *e == (Entry{}) {
		delete(t.entries, prefix)
	}
}

// circles reports whether strays would be sent where they came from.
func (e *Entry) circles() bool { return e.Shadow == e.Original && e.Shadow != (rib.Set{}) }

// Plan lists what is to be done, in three stages: Next hops that are about to be replaced go into
// the shadow. When all of them are there, the table changes. Then what is of no use in the shadow
// leaves it: what was kept long enough, and what the table now says too, because strays would go in
// a circle. Each operation that was done is to be told by Done; those that were not are in the next
// plan.
func (t *Table) Plan(now time.Time) (copies, changes, removals []Op) {
	for prefix := range t.pending {
		e := t.entries[prefix]
		if e.Wanted == e.Original {
			removals = append(removals, Op{Which: Shadow, Prefix: prefix})
			continue
		}
		if e.Original != (rib.Set{}) && e.Shadow != e.Original {
			copies = append(copies, Op{Shadow, prefix, e.Original})
		}
		changes = append(changes, Op{Original, prefix, e.Wanted})
		if after := e.shadowAfter(); after == e.Wanted && after != (rib.Set{}) {
			removals = append(removals, Op{Which: Shadow, Prefix: prefix})
		}
	}
	for prefix, end := range t.expires {
		if !t.pending[prefix] && !now.Before(end) {
			removals = append(removals, Op{Which: Shadow, Prefix: prefix})
		}
	}
	for _, ops := range [][]Op{copies, changes, removals} {
		slices.SortFunc(ops, func(a, b Op) int { return a.Prefix.Compare(b.Prefix) })
	}
	return copies, changes, removals
}

// shadowAfter is what the shadow holds when the pending change is done.
func (e *Entry) shadowAfter() rib.Set {
	if e.Original == (rib.Set{}) {
		return e.Shadow
	}
	return e.Original
}

// Done notes that an operation was done.
func (t *Table) Done(op Op, now time.Time) {
	e := t.entry(op.Prefix)
	if op.Which == Shadow {
		e.Shadow = op.Set
	} else {
		e.Original = op.Set
	}
	t.note(op.Prefix, e, now)
}

// note keeps the books about an entry that changed.
func (t *Table) note(prefix netip.Prefix, e *Entry, now time.Time) {
	delete(t.expires, prefix)
	if e.Shadow != (rib.Set{}) && t.Keep > 0 {
		t.expires[prefix] = now.Add(t.Keep)
	}
	t.settle(prefix, e)
}

// Due reports whether Plan has something to do.
func (t *Table) Due(now time.Time) bool {
	if len(t.pending) > 0 {
		return true
	}
	for _, end := range t.expires {
		if !now.Before(end) {
			return true
		}
	}
	return false
}

// Entries lists all prefixes with what is known of them, in ascending order.
func (t *Table) Entries() (list []Row) {
	for prefix, e := range t.entries {
		list = append(list, Row{prefix, *e})
	}
	slices.SortFunc(list, func(a, b Row) int { return a.Prefix.Compare(b.Prefix) })
	return list
}

// Sets yields all sets that either table has or is to have, some several times.
func (t *Table) Sets() iter.Seq[rib.Set] {
	return func(yield func(rib.Set) bool) {
		for _, e := range t.entries {
			if !yield(e.Original) || !yield(e.Shadow) || !yield(e.Wanted) {
				return
			}
		}
	}
}

// Row is an entry with its prefix.
type Row struct {
	Prefix netip.Prefix
	Entry
}
