package address

import (
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// A Range is addresses of one family, both ends included.
type Range struct{ First, Last netip.Addr }

// ParseRange reads a prefix, a range with a dash, or a single address.
func ParseRange(text string) (Range, error) {
	text = strings.TrimSpace(text)
	if first, last, ok := strings.Cut(text, "-"); ok {
		a, errA := netip.ParseAddr(strings.TrimSpace(first))
		b, errB := netip.ParseAddr(strings.TrimSpace(last))
		if errA != nil || errB != nil || a.Is4() != b.Is4() || b.Less(a) {
			return Range{}, fmt.Errorf("%q is no range: write FIRST-LAST, addresses of one "+
				"family, the lower first", text)
		}
		return checked(Range{a, b}, text)
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return checked(Range{p.Masked().Addr(), lastOf(p)}, text)
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return Range{}, fmt.Errorf("%q holds no addresses: write a prefix like 192.0.2.0/28, a "+
			"range like 192.0.2.1-192.0.2.9, or an address", text)
	}
	return checked(Range{a, a}, text)
}

func checked(r Range, text string) (Range, error) {
	for _, a := range []netip.Addr{r.First, r.Last} {
		if a.Zone() != "" || a.Is4In6() || !a.IsGlobalUnicast() {
			return Range{}, fmt.Errorf("%q has addresses that clients can't connect to: take "+
				"plain unicast addresses", text)
		}
	}
	return r, nil
}

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// Contains reports whether an address is in the range.
func (r Range) Contains(a netip.Addr) bool {
	return a.Is4() == r.First.Is4() && !a.Less(r.First) && !r.Last.Less(a)
}

func (r Range) overlaps(o Range) bool {
	return r.First.Is4() == o.First.Is4() && !r.Last.Less(o.First) && !o.Last.Less(r.First)
}

// size is how many addresses there are, 2^53 at most.
func (r Range) size() int64 {
	a, b := new(big.Int).SetBytes(r.First.AsSlice()), new(big.Int).SetBytes(r.Last.AsSlice())
	n := b.Sub(b, a).Add(b, big.NewInt(1))
	if !n.IsInt64() || n.Int64() > 1<<53 {
		return 1 << 53
	}
	return n.Int64()
}

// Sharing says who may share an address of a pool with the same key.
type Sharing int

// The kinds of sharing.
const (
	WithinNamespace Sharing = iota
	WithAll
	WithNobody
)

// A Pool is addresses, and who may have them.
type Pool struct {
	Name       string
	Ranges     []Range
	Auto       bool // for those who name neither pool nor address
	Priority   int  // the lowest first
	Namespaces []string
	Selector   labels.Selector // nil: all
	Sharing    Sharing
}

// Contains reports whether an address is of the pool.
func (p *Pool) Contains(a netip.Addr) bool {
	return slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.Contains(a) })
}

// Size is how many addresses the pool has, 2^53 at most.
func (p *Pool) Size() int64 {
	var n int64
	for _, r := range p.Ranges {
		n = min(n+r.size(), math.MaxInt64/2)
	}
	return min(n, 1<<53)
}

// Overlap names two pools that share addresses with p, or parts of p that do; "": none.
func (p *Pool) Overlap(others []*Pool) string {
	for i, r := range p.Ranges {
		for _, o := range p.Ranges[:i] {
			if r.overlaps(o) {
				return "itself"
			}
		}
		for _, other := range others {
			if other.Name == p.Name {
				continue
			}
			if slices.ContainsFunc(other.Ranges, r.overlaps) {
				return other.Name
			}
		}
	}
	return ""
}

func (p *Pool) admits(c *Claim) bool {
	return (len(p.Namespaces) == 0 || slices.Contains(p.Namespaces, c.Namespace)) &&
		(p.Selector == nil || p.Selector.Matches(labels.Set(c.Labels)))
}
