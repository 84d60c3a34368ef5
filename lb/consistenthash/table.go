package consistenthash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// MaxSlots bounds the size of a table: 2^24 slots, which a weight of 32 bits times it stays far
// from 64 bits.
const MaxSlots = 1 << 24

// Member is an owner of slots.
type Member struct {
	ID     uint16 // not 0, which stands for nobody
	Weight uint32 // share in relation to the other members; 0 owns nothing
	// Key is what its place in the orders of a Ranking follows from, with its weight, where nodes
	// number members each in its own way: see [KeyOf]. 0: its ID.
	Key uint64
}

// KeyOf is the key of a member that all nodes know by this address.
func KeyOf(address [16]byte) uint64 {
	const notAnID = 1 << 63
	return notAnID | mix(binary.BigEndian.Uint64(address[:])^
		mix(binary.BigEndian.Uint64(address[8:])))
}

// key is what the member's draws follow from.
func (m Member) key() uint64 {
	if m.Key != 0 {
		return m.Key
	}
	return uint64(m.ID)
}

// Table maps slots to member ids. It never changes, so it may be read from anywhere.
type Table struct {
	owners []uint16
	seed   uint64
	// digest of the owners: what an update draws follows from it, so tables with the same owners
	// have the same future, whatever their history.
	digest uint64
	// quotas is the number of slots of each id that owns any, by ascending id. Id 0 holds what
	// nobody owns.
	quotas []quota
}

// quota is how many slots one id owns.
type quota struct {
	id    uint16
	slots int
}

// Build makes a table of slots for the members. Without a member of positive weight all slots
// belong to id 0. The seed selects one of many equally good tables.
func Build(slots int, seed uint64, members []Member) (*Table, error) {
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	empty := &Table{owners: make([]uint16, slots), seed: seed,
		quotas: []quota{{id: 0, slots: slots}}}
	t, _, err := empty.Update(members)
	return t, err
}

// Resume makes a table from the owners of its slots, such as another process left them; 0 is
// nobody. Its updates are those of the table that had these owners. They need not be in proportion
// to anything: the next Update brings them there, and keeps what it can.
func Resume(owners []uint16, seed uint64) (*Table, error) {
	if err := checkSlots(len(owners)); err != nil {
		return nil, err
	}
	t := &Table{owners: slices.Clone(owners), seed: seed}
	var owned [1 << 16]int
	for slot, id := range owners {
		owned[id]++
		t.digest += digestOf(int32(slot), id)
	}
	for id, n := range owned {
		if n > 0 {
			t.quotas = append(t.quotas, quota{id: uint16(id), slots: n})
		}
	}
	return t, nil
}

func checkSlots(slots int) error {
	if slots < 1 || slots > MaxSlots {
		return fmt.Errorf("consistent table of %d slots: choose 1 to %d", slots, MaxSlots)
	}
	return nil
}

// Update returns the table for the members, made from t by moving as few slots as possible, and
// which moved, in ascending order. It returns t itself when none has to move.
func (t *Table) Update(members []Member) (next *Table, moved []int32, err error) {
	sorted, err := normalize(members)
	if err != nil {
		return nil, nil, err
	}
	changes := t.plan(sorted)
	gains, losses := changes.split()
	if len(gains) == 0 {
		return t, nil, nil
	}
	next = &Table{owners: slices.Clone(t.owners), seed: t.seed, digest: t.digest,
		quotas: changes.quotas()}
	random := newGenerator(t.seed, t.digest)
	moved = random.draw(next.owners, losses)
	next.hand(moved, random.shuffled(gains))
	return next, moved, nil
}

// hand gives the slots away: slots[i] to heirs[i].
func (t *Table) hand(slots []int32, heirs []uint16) {
	for i, slot := range slots {
		t.digest += digestOf(slot, heirs[i]) - digestOf(slot, t.owners[slot])
		t.owners[slot] = heirs[i]
	}
}

// digestOf is what a slot adds to the digest: nothing if nobody owns it.
func digestOf(slot int32, id uint16) uint64 {
	if id == 0 {
		return 0
	}
	return mix(uint64(slot)<<16 | uint64(id))
}

// Owner returns the id that owns slot, from 0 to Slots()-1; 0 if nobody does.
func (t *Table) Owner(slot int) uint16 { return t.owners[slot] }

// Probe returns the owner of another slot that stands in for slot: a pseudo-random one for each
// attempt, fixed by the table's seed. Over many slots each id comes up in proportion to its share,
// so who needs an owner of slot that is not among some given ids probes attempt 0, 1, 2, ... until
// it finds one.
func (t *Table) Probe(slot, attempt int) uint16 {
	g := generator{state: mix(t.seed ^ mix(uint64(slot)<<32|uint64(attempt)))}
	return t.owners[g.below(len(t.owners))]
}

// normalize returns the members of positive weight by ascending id.
func normalize(members []Member) ([]Member, error) {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int { return int(a.ID) - int(b.ID) })
	for i, m := range sorted {
		if m.ID == 0 {
			return nil, errors.New("consistent table: member id 0 stands for nobody; number " +
				"members from 1")
		}
		if i > 0 && sorted[i-1].ID == m.ID {
			return nil, fmt.Errorf("consistent table: member id %d is there twice; give each "+
				"member its own", m.ID)
		}
	}
	return slices.DeleteFunc(sorted, func(m Member) bool { return m.Weight == 0 }), nil
}
