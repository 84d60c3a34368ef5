package cflb

import (
	"fmt"
	"math"
	"math/bits"
)

// A Group holds the equal-cost next hops of a destination at one router, by index. It is immutable.
type Group struct {
	weights []uint32
	plain   []uint32 // bounds for packets without a selector
	beyond  []uint32 // bounds for packets whose digit names no next hop
}

// WeightMax is the greatest weight of a next hop, the kernel's.
const WeightMax = 1 << 16

// NewGroup makes a group of next hops by their weights, of which 0 is that of a next hop that is
// down: it keeps its index.
//
// A digit names each next hop equally often, whatever its weight. The packets whose digit names
// none make up for it: all together are shared by weight, as long as no share is below 1/B, the
// least that a next hop can have.
func (c *Codec) NewGroup(weights []uint32) (*Group, error) {
	if len(weights) > int(c.radix) {
		return nil, fmt.Errorf("%d next hops: selectors of radix %d name %d; raise the radix of "+
			"the network",
			len(weights), c.radix, c.radix)
	}
	var total uint64
	for i, weight := range weights {
		if weight > WeightMax {
			return nil, fmt.Errorf("weight %d of next hop %d: it has to be 0 to %d", weight,
				i, WeightMax)
		}
		total += uint64(weight)
	}
	shares := make([]uint64, len(weights))
	lacks := make([]uint64, len(weights)) // of the share, behind what digits give
	for i, weight := range weights {
		shares[i] = uint64(weight)
		if part := shares[i] * c.radix; part > total {
			lacks[i] = part - total
		}
	}
	g := &Group{weights: weights, plain: bounds(shares)}
	if g.beyond = bounds(lacks); g.beyond == nil {
		g.beyond = g.plain
	}
	return g, nil
}

// bounds returns the upper ends of adjacent ranges of 32 bits with these shares of their sum, nil
// if that is 0: with n equal shares, the hash h is in range h*n/2^32.
func bounds(shares []uint64) []uint32 {
	var sum, before uint64
	for _, share := range shares {
		sum += share
	}
	if sum == 0 {
		return nil
	}
	ends := make([]uint32, len(shares))
	for i, share := range shares {
		before += share
		high, low := bits.Mul64(before, 1<<32)
		end, rest := bits.Div64(high, low, sum)
		if rest > 0 {
			end++
		}
		ends[i] = uint32(min(math.MaxUint32, end))
	}
	return ends
}

// Bounds returns, by index, the hash below which a packet takes a next hop, unless one before it
// does: first those for packets without a selector, then those for packets whose digit names no
// next hop that is up. The last next hop that is up also takes what is not below its bound. They
// are nil if none is up.
func (g *Group) Bounds() (plain, beyond []uint32) { return g.plain, g.beyond }

func (g *Group) up(i int) bool { return i < len(g.weights) && g.weights[i] > 0 }

func (g *Group) hashed(bounds []uint32, hash uint32) int {
	last := -1
	for i, bound := range bounds {
		if g.weights[i] == 0 {
			continue
		}
		last = i
		if hash < bound {
			break
		}
	}
	return last
}

// Skew returns how often a digit is found at a position in selectors that are decoded from evenly
// spread fields, before H(u_f) is subtracted: 1/B exactly for all digits unless the range is
// ModuloRange and the radix no power of two.
func (c *Codec) Skew(position, digit int) float64 {
	if !c.modulo {
		return 1 / float64(c.radix)
	}
	size := uint64(1) << c.fields.Bits()
	below := c.powers[position]
	cycle := below * c.radix
	count := size / cycle * below
	if rest := size % cycle; rest > uint64(digit)*below {
		count += min(rest-uint64(digit)*below, below)
	}
	return float64(count) / float64(size)
}

// skewMin is the deviation from 1/B, as a factor, from which on Warnings speak of skew.
const skewMin = 1.02

// Warnings says which parameters do worse than others would, in sentences for an operator.
func (c *Codec) Warnings() []string {
	var warnings []string
	for i := range c.Length() {
		most := 0.0
		for digit := range int(c.radix) {
			most = max(most, c.Skew(i, digit))
		}
		if most*float64(c.radix) > skewMin {
			warnings = append(warnings,
				fmt.Sprintf("position %d of %d: one next hop of %d gets %.1f %% of the packets "+
					"whose source controls nothing, not %.1f %%; hash what is out of range, or "+
					"take "+
					"a power of two as radix",
					i, c.Length(), c.radix, 100*most, 100/float64(c.radix)))
		}
	}
	return warnings
}
