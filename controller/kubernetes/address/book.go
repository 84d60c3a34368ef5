package address

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A Claim is who asks for addresses, and for which.
type Claim struct {
	Owner     string // who it is, unique
	Namespace string
	Labels    map[string]string
	// V4 and V6 say in which families; Require: without one of each, none is given.
	V4, V6, Require bool
	Wished          []netip.Addr // these and no others
	Pool            string       // from this one; "": any that is automatic
	Key             string       // of those who share addresses; "": nobody
	Ports           []Port       // that no other may have at a shared address
	Held            []netip.Addr // had before, and kept if nothing speaks against it
}

// A Port is what an owner takes of an address.
type Port struct {
	Protocol string
	Number   uint16
}

// String writes the port as 80/tcp.
func (p Port) String() string { return fmt.Sprintf("%d/%s", p.Number, p.Protocol) }

// A Refusal is why there is no address: Reason for programs, Text for people.
type Refusal struct{ Reason, Text string }

// Error is the text.
func (r *Refusal) Error() string { return r.Text }

// Reasons of refusals.
const (
	NoPool    = "NoPool"    // none is for the claim
	Exhausted = "Exhausted" // all addresses are in use
	InUse     = "InUse"     // the wished address is in use
	Forbidden = "Forbidden" // the pool is not for the claim
)

// A Book says who has which addresses. It is not safe for use by several goroutines.
type Book struct {
	pools  []*Pool // by priority and name
	holds  map[netip.Addr][]*Claim
	owners map[string]*owned
	next   map[string]netip.Addr // of a pool and family: where the search for a free one begins
}

type owned struct {
	claim     Claim
	addresses []netip.Addr
}

// NewBook makes a book in which nobody has anything.
func NewBook() *Book {
	return &Book{holds: map[netip.Addr][]*Claim{}, owners: map[string]*owned{},
		next: map[string]netip.Addr{}}
}

// SetPools replaces the pools. Who has addresses that are in none keeps them until the next Assign.
func (b *Book) SetPools(pools []*Pool) {
	b.pools = slices.Clone(pools)
	slices.SortFunc(b.pools, func(x, y *Pool) int {
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), strings.Compare(x.Name, y.Name))
	})
	clear(b.next)
}

// Assign gives addresses to an owner, the same as before if they are still right: one whose pool is
// gone stays, until another one is wished. A refusal leaves the owner with none.
func (b *Book) Assign(c Claim) ([]netip.Addr, *Refusal) {
	if had := b.owners[c.Owner]; had != nil {
		c.Held = append(slices.Clone(had.addresses), c.Held...)
		b.Release(c.Owner)
	}
	var got []netip.Addr
	for _, family := range []struct{ on, v6 bool }{{c.V4, false}, {c.V6, true}} {
		if !family.on {
			continue
		}
		a, refused := b.find(&c, family.v6)
		if refused != nil {
			if c.Require || !(c.V4 && c.V6) {
				return nil, refused
			}
			continue
		}
		got = append(got, a)
	}
	if len(got) == 0 {
		return nil, b.nothing(&c, c.V6)
	}
	if i := slices.IndexFunc(c.Wished, func(a netip.Addr) bool {
		return !slices.Contains(got, a)
	}); i >= 0 {
		return nil, &Refusal{Forbidden, fmt.Sprintf("%s is wished, but not of a family that is "+
			"asked for: see ipFamilies", c.Wished[i])}
	}
	b.enter(c, got)
	return got, nil
}

func (b *Book) enter(c Claim, got []netip.Addr) {
	c.Held = nil
	o := &owned{c, got}
	b.owners[c.Owner] = o
	for _, a := range got {
		b.holds[a] = append(b.holds[a], &o.claim)
	}
}

// Release gives all addresses of an owner back. One that is shared stays with the others.
func (b *Book) Release(owner string) {
	o := b.owners[owner]
	if o == nil {
		return
	}
	delete(b.owners, owner)
	for _, a := range o.addresses {
		left := slices.DeleteFunc(b.holds[a], func(c *Claim) bool { return c == &o.claim })
		if b.holds[a] = left; len(left) == 0 {
			delete(b.holds, a)
		}
	}
}

// Addresses are those of an owner.
func (b *Book) Addresses(owner string) []netip.Addr {
	if o := b.owners[owner]; o != nil {
		return o.addresses
	}
	return nil
}

// Assigned counts the addresses of a pool that are in use, each once.
func (b *Book) Assigned(pool string) (n int64) {
	for _, p := range b.pools {
		if p.Name != pool {
			continue
		}
		for a := range b.holds {
			if p.Contains(a) {
				n++
			}
		}
	}
	return n
}

// find chooses the address of a family: the wished one, one that was held, one that is shared by
// key, or a free one.
func (b *Book) find(c *Claim, v6 bool) (netip.Addr, *Refusal) {
	for _, a := range c.Wished {
		if a.Is6() == v6 {
			return a, b.mayHave(c, a, true)
		}
	}
	for _, a := range c.Held {
		if a.Is6() != v6 {
			continue
		}
		refused := b.mayHave(c, a, false)
		if refused == nil || refused.Reason == NoPool && len(b.holds[a]) == 0 {
			return a, nil
		}
	}
	if a, ok := b.sharedBy(c, v6); ok {
		return a, nil
	}
	for _, p := range b.pools {
		if c.Pool != "" && p.Name != c.Pool || c.Pool == "" && !p.Auto || !p.admits(c) {
			continue
		}
		if a, ok := b.free(p, v6); ok {
			return a, nil
		}
	}
	return netip.Addr{}, b.nothing(c, v6)
}

// mayHave says why a claim may not have an address. A pool that is not automatic is for those who
// wish its address, or name it.
func (b *Book) mayHave(c *Claim, a netip.Addr, wished bool) *Refusal {
	i := slices.IndexFunc(b.pools, func(p *Pool) bool { return p.Contains(a) })
	if i < 0 {
		return &Refusal{NoPool, fmt.Sprintf("%s is in no pool: wish an address of a VIPPool, or "+
			"add it to one", a)}
	}
	p := b.pools[i]
	switch {
	case c.Pool != "" && p.Name != c.Pool:
		return &Refusal{Forbidden, fmt.Sprintf("%s is of pool %s, and pool %s is asked for", a,
			p.Name, c.Pool)}
	case !p.admits(c):
		return &Refusal{Forbidden, fmt.Sprintf("%s is of pool %s, which is not for this namespace "+
			"or these labels", a, p.Name)}
	case !wished && c.Pool == "" && !p.Auto:
		return &Refusal{Forbidden, fmt.Sprintf("%s is of pool %s, which is not automatic", a,
			p.Name)}
	}
	for _, other := range b.holds[a] {
		if why := conflict(p, c, other); why != "" {
			return &Refusal{InUse, fmt.Sprintf("%s is in use by %s: %s", a, other.Owner, why)}
		}
	}
	return nil
}

// conflict says why two owners can't share an address; "": they can.
func conflict(p *Pool, c, other *Claim) string {
	switch {
	case p.Sharing == WithNobody:
		return "addresses of pool " + p.Name + " are not shared"
	case c.Key == "" || c.Key != other.Key:
		return "give both the same sharing key, or wish another address"
	case p.Sharing == WithinNamespace && c.Namespace != other.Namespace:
		return "addresses of pool " + p.Name + " are shared within a namespace only"
	}
	for _, port := range c.Ports {
		if slices.Contains(other.Ports, port) {
			return "it has port " + port.String() + ", too"
		}
	}
	return ""
}

// sharedBy finds an address that others with the same key have: the lowest one.
func (b *Book) sharedBy(c *Claim, v6 bool) (best netip.Addr, found bool) {
	if c.Key == "" {
		return best, false
	}
	for a, by := range b.holds {
		if a.Is6() != v6 || by[0].Key != c.Key || found && best.Less(a) ||
			b.mayHave(c, a, false) != nil {
			continue
		}
		best, found = a, true
	}
	return best, found
}

// free finds an address that nobody has: from where the last one was found on, so that one that was
// given back is not given to the next who asks, whose clients may still talk to the former owner.
func (b *Book) free(p *Pool, v6 bool) (netip.Addr, bool) {
	mark := fmt.Sprintf("%s %v", p.Name, v6)
	start, marked := b.next[mark]
	for _, fromStart := range []bool{true, false} {
		for _, r := range p.Ranges {
			if r.First.Is6() != v6 {
				continue
			}
			a := r.First
			if fromStart && marked {
				switch {
				case r.Contains(start):
					a = start
				case r.Last.Less(start):
					continue
				}
			}
			for n := 0; r.Contains(a) && n <= len(b.holds); a, n = a.Next(), n+1 {
				if len(b.holds[a]) == 0 {
					b.next[mark] = a.Next()
					return a, true
				}
			}
		}
	}
	return netip.Addr{}, false
}

// nothing says why no pool has an address.
func (b *Book) nothing(c *Claim, v6 bool) *Refusal {
	family := "IPv4"
	if v6 {
		family = "IPv6"
	}
	var full, closed []string
	for _, p := range b.pools {
		has := slices.ContainsFunc(p.Ranges, func(r Range) bool { return r.First.Is6() == v6 })
		switch {
		case !has || c.Pool != "" && p.Name != c.Pool || c.Pool == "" && !p.Auto:
		case !p.admits(c):
			closed = append(closed, p.Name)
		default:
			full = append(full, p.Name)
		}
	}
	switch {
	case len(full) > 0:
		return &Refusal{Exhausted, fmt.Sprintf("all %s addresses of %s are in use: add addresses "+
			"to a VIPPool, or share one by a sharing key", family, strings.Join(full, ", "))}
	case len(closed) > 0:
		return &Refusal{Forbidden, fmt.Sprintf("%s addresses are only in pools that are not for "+
			"this namespace or these labels: %s", family, strings.Join(closed, ", "))}
	case c.Pool != "":
		return &Refusal{NoPool, fmt.Sprintf("there is no VIPPool %s with %s addresses", c.Pool,
			family)}
	}
	return &Refusal{NoPool, fmt.Sprintf("there is no VIPPool with %s addresses that are assigned "+
		"automatically: add one", family)}
}
