package pool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// MaxChain is how many backends a chain holds: as many 16-bit ids as fit behind a 32-bit SID block
// in one IPv6 address, with the zeros that end the list (RFC 9800, NEXT-C-SID).
const MaxChain = 6

// Chain is what a bucket's packets are offered to, in order: current candidates, then those who may
// have the connection from before. No id is there twice; places from Length on are 0. Chains are
// equal if they compare equal with ==.
type Chain struct {
	IDs        [MaxChain]uint16
	Length     uint8  // ids in use
	Candidates uint8  // of these, the first that are current candidates
	Shadow     uint16 // policy Shadow: the owner before the latest change of the pool; else 0
}

// ids returns the ids in use.
func (c *Chain) ids() []uint16 { return c.IDs[:c.Length] }

// has reports whether id is in use.
func (c *Chain) has(id uint16) bool { return slices.Contains(c.ids(), id) }

// push adds id at the end, if there is room for it below depth and it is not there.
func (c *Chain) push(id uint16, depth int) {
	if int(c.Length) < depth && !c.has(id) {
		c.IDs[c.Length] = id
		c.Length++
	}
}

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
		return fmt.Errorf("%d candidates of %d backends; it holds up to %d", c.Candidates, c.Length,
			MaxChain)
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

// within reports whether all of c are alive.
func (c *Chain) within(alive *idSet) bool {
	for _, id := range c.ids() {
		if !alive.has(id) {
			return false
		}
	}
	return true
}

// offers reports whether the candidates of c are those given, in this order.
func (c *Chain) offers(candidates []uint16) bool {
	return slices.Equal(c.IDs[:c.Candidates], candidates)
}

// last moves the suspects behind all others; candidates stay where they are.
func (c *Chain) last(suspects *idSet) {
	if suspects == nil {
		return
	}
	behind := c.IDs[c.Candidates:c.Length]
	slices.SortStableFunc(behind, func(a, b uint16) int {
		return cmp.Compare(order(suspects.has(a)), order(suspects.has(b)))
	})
}

func order(last bool) int {
	if last {
		return 1
	}
	return 0
}

// names reports whether one of the ids is in use.
func (c *Chain) names(ids *idSet) bool { return slices.ContainsFunc(c.ids(), ids.has) }

// chainOf returns the chain of candidates without a past.
func chainOf(candidates []uint16) Chain {
	c := Chain{Length: uint8(len(candidates)), Candidates: uint8(len(candidates))}
	copy(c.IDs[:], candidates)
	return c
}

// past is what a generation remembers of a bucket beside its chain, which holds the candidates,
// then previous owners, then reserves.
type past struct {
	owners uint8 // previous owners, behind the candidates
	// of these, the first whose leaving was seen, and not found in chains to resume from
	seen uint8
	full bool             // a candidate waits until there is room for it
	left [MaxChain]uint32 // when the previous owner at this place left, in seconds
}

// end is the place behind the last previous owner.
func (p *past) end(c *Chain) int { return int(c.Candidates + p.owners) }

// succeed returns what follows a chain when its candidates become those given: they, then the
// previous candidates, then previous owners, as long as there is room and they are alive and did
// not leave before oldest. Order matters: newest first.
func succeed(c *Chain, p *past, candidates []uint16, alive *idSet, depth int, now,
	oldest uint32) (Chain, past) {
	chain, remembered := chainOf(candidates), past{}
	for place, id := range c.IDs[:p.end(c)] {
		left := now
		if place >= int(c.Candidates) {
			left = p.left[place]
		}
		if !alive.has(id) || left < oldest {
			continue
		}
		before := chain.Length
		if chain.push(id, depth); chain.Length > before {
			remembered.left[before] = left
			remembered.owners++
			if place < int(c.Candidates+p.seen) {
				remembered.seen++
			}
		}
	}
	return chain, remembered
}

// oldestLeft is when the previous owner left that left first; false if there is none.
func (p *past) oldestLeft(c *Chain) (at uint32, ok bool) {
	for place := int(c.Candidates); place < p.end(c); place++ {
		if !ok || p.left[place] < at {
			at, ok = p.left[place], true
		}
	}
	return at, ok
}
