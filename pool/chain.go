package pool

import (
	"errors"
	"fmt"
	"slices"
)

// MaxChain is how many backends a chain holds: as many 16-bit ids as fit behind a 32-bit SID block in one IPv6 address, with
// the zeros that end the list (RFC 9800, NEXT-C-SID).
const MaxChain = 6

// Chain is what a bucket's packets are offered to, in order: current candidates, then past owners, newest first. No id is
// there twice; places from Length on are 0. Chains are equal if they compare equal with ==.
type Chain struct {
	IDs        [MaxChain]uint16
	Length     uint8 // ids in use
	Candidates uint8 // of these, the first that are current candidates
}

// ids returns the ids in use.
func (c *Chain) ids() []uint16 { return c.IDs[:c.Length] }

// candidate returns the current candidate at place, 0 if there is none.
func (c *Chain) candidate(place int) uint16 {
	if place < int(c.Candidates) {
		return c.IDs[place]
	}
	return 0
}

// check refuses a chain that this package would not make.
func (c *Chain) check() error {
	if c.Candidates > c.Length || c.Length > MaxChain {
		return fmt.Errorf("%d candidates of %d backends; it holds up to %d", c.Candidates, c.Length, MaxChain)
	}
	for i, id := range c.ids() {
		if id == 0 || slices.Contains(c.IDs[:i], id) {
			return fmt.Errorf("backend id %d is 0 or there twice", id)
		}
	}
	if slices.ContainsFunc(c.IDs[c.Length:], func(id uint16) bool { return id != 0 }) {
		return errors.New("a backend id behind its end")
	}
	return nil
}

// chainOf returns the chain of candidates without a past.
func chainOf(candidates []uint16) Chain {
	c := Chain{Length: uint8(len(candidates)), Candidates: uint8(len(candidates))}
	copy(c.IDs[:], candidates)
	return c
}

// succeed returns the chain that follows c when the bucket's candidates become those given: all of c that are alive and not
// candidates follow, as long as there is room. The candidates of c come first there, so the newest past owners do.
func (c *Chain) succeed(candidates []uint16, alive *idSet) Chain {
	next := chainOf(candidates)
	for _, id := range c.ids() {
		if next.Length == MaxChain {
			break
		}
		if alive.has(id) && !slices.Contains(candidates, id) {
			next.IDs[next.Length] = id
			next.Length++
		}
	}
	return next
}

// offers reports whether the candidates of c are those given, in this order.
func (c *Chain) offers(candidates []uint16) bool {
	if int(c.Candidates) != len(candidates) {
		return false
	}
	for i, id := range candidates {
		if c.IDs[i] != id {
			return false
		}
	}
	return true
}

// within reports whether all of c are alive.
func (c *Chain) within(alive *idSet) bool {
	for _, id := range c.ids() {
		if !alive.has(id) {
			return false
		}
	}
	return true
}
