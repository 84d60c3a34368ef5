package pool

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"
)

// State says what a backend may be used for.
type State uint8

const (
	// Up takes new connections, in proportion to its weight, and keeps those it has.
	Up State = iota
	// Draining takes no new connections and keeps those it has: an operator is taking it out of
	// service.
	Draining
	// Down is not reached: it is in no chain, and its connections are given up.
	Down
	// Maintenance is to the chains what Draining is: the operator's word that it stays out of
	// service until told otherwise.
	Maintenance
)

var stateNames = [...]string{Up: "up", Draining: "draining", Down: "down",
	Maintenance: "maintenance"}

// String returns the name that configuration files use.
func (s State) String() string { return name(stateNames[:], int(s), "State") }

// ParseState reads "up", "draining", "down" or "maintenance".
func ParseState(text string) (State, error) {
	i, err := parse(stateNames[:], text, "backend state")
	return State(i), err
}

// Backend is one server of the pool.
type Backend struct {
	ID uint16 // not 0, and unique in the pool
	// Key is what all edges know the backend by, if that is not its ID: see [consistenthash.KeyOf].
	Key    uint64
	Weight uint32 // share of new connections in relation to the others; 0 gets none
	State  State
	Site   uint16 // where it is: see [Order]
	// Suspect says that the backend may be dead: chains name it behind all others who can have the
	// bucket's connections, so that packets of these do not end at it, and those of its own still
	// reach it if it lives.
	Suspect bool
}

// suspects returns the backends that may be dead, nil if there are none.
func suspects(backends []Backend) *idSet {
	var ids *idSet
	for _, b := range backends {
		if b.Suspect {
			if ids == nil {
				ids = new(idSet)
			}
			ids.add(b.ID)
		}
	}
	return ids
}

// up returns the backends that may get new connections.
func up(backends []Backend) *idSet {
	ids := new(idSet)
	for _, b := range backends {
		if b.State == Up && b.Weight > 0 {
			ids.add(b.ID)
		}
	}
	return ids
}

// reranked says whether orders of backends differ: one has come, gone or got another weight. Both
// are sorted by id.
func reranked(before, after []Backend) bool {
	return !slices.EqualFunc(before, after,
		func(a, b Backend) bool { return a.member() == b.member() })
}

// differing returns the ids that are in one of two sets alone, nil if there are none; a nil set is
// empty.
func differing(a, b *idSet) *idSet {
	var ids *idSet
	for _, pair := range [][2]*idSet{{a, b}, {b, a}} {
		for id := range pair[0].all() {
			if pair[1] == nil || !pair[1].has(id) {
				if ids == nil {
					ids = new(idSet)
				}
				ids.add(id)
			}
		}
	}
	return ids
}

// validate refuses backends that chains cannot name.
func validate(backends []Backend) error {
	var seen idSet
	for _, b := range backends {
		switch {
		case b.ID == 0:
			return errors.New("pool: backend id 0 stands for nobody; number backends from 1")
		case seen.has(b.ID):
			return fmt.Errorf("pool: backend id %d is there twice; give each backend its own", b.ID)
		case int(b.State) >= len(stateNames):
			return fmt.Errorf("pool: backend id %d has the unknown state %d", b.ID, b.State)
		}
		seen.add(b.ID)
	}
	return nil
}

// idSet is a set of backend ids.
type idSet [1 << 16 / 64]uint64

// everyone has all ids.
var everyone = func() *idSet {
	ids := new(idSet)
	for i := range ids {
		ids[i] = ^uint64(0)
	}
	return ids
}()

func (s *idSet) add(id uint16)      { s[id/64] |= 1 << (id % 64) }
func (s *idSet) has(id uint16) bool { return s[id/64]&(1<<(id%64)) != 0 }

// without returns the ids of s that are not in other, nil if there are none.
func (s *idSet) without(other *idSet) *idSet {
	var rest *idSet
	for i, word := range s {
		if word &^= other[i]; word == 0 {
			continue
		}
		if rest == nil {
			rest = new(idSet)
		}
		rest[i] = word
	}
	return rest
}

// all yields the ids in ascending order; nil has none.
func (s *idSet) all() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		if s == nil {
			return
		}
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(uint16(i*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

func (s *idSet) count() (n int) {
	for range s.all() {
		n++
	}
	return n
}
