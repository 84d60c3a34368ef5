package address_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/controller/kubernetes/address"
)

func pool(t interface{ Fatal(...any) }, name string, ranges ...string) *address.Pool {
	p := &address.Pool{Name: name, Auto: true}
	for _, text := range ranges {
		r, err := address.ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Ranges = append(p.Ranges, r)
	}
	return p
}

// Ranges are read with both ends, or refused.
func TestParseRange(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.0/30":                  "192.0.2.0-192.0.2.3",
		"192.0.2.9/29":                  "192.0.2.8-192.0.2.15",
		"192.0.2.7":                     "192.0.2.7-192.0.2.7",
		" 192.0.2.7 - 192.0.2.9 ":       "192.0.2.7-192.0.2.9",
		"2001:db8::/126":                "2001:db8::-2001:db8::3",
		"2001:db8::1-2001:db8::1:0":     "2001:db8::1-2001:db8::1:0",
		"192.0.2.9-192.0.2.7":           "",
		"192.0.2.9-2001:db8::1":         "",
		"0.0.0.0/0":                     "",
		"fe80::1":                       "",
		"ff02::/16":                     "",
		"127.0.0.1":                     "",
		"::ffff:192.0.2.1":              "",
		"fe80::1%eth0":                  "",
		"":                              "",
		"-":                             "",
		"192.0.2.1-":                    "",
		"192.0.2.0/33":                  "",
		"2001:db8::/64-2001:db8:1::/64": "",
	} {
		r, err := address.ParseRange(text)
		got := ""
		if err == nil {
			got = fmt.Sprintf("%s-%s", r.First, r.Last)
		}
		if got != want {
			t.Errorf("%q is read as %q, %v; want %q", text, got, err, want)
		}
	}
}

// What is read is a range: in order, of one family, and counted as its addresses are.
func FuzzParseRange(f *testing.F) {
	f.Add("192.0.2.0/30")
	f.Add("2001:db8::1-2001:db8::9")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := address.ParseRange(text)
		if err != nil {
			return
		}
		if r.First.Is4() != r.Last.Is4() || r.Last.Less(r.First) {
			t.Errorf("%q is read as %v", text, r)
		}
		p := &address.Pool{Ranges: []address.Range{r}}
		n := int64(0)
		for a := r.First; r.Contains(a) && n <= 1000; a = a.Next() {
			n++
		}
		if got := p.Size(); n <= 1000 && got != n || n > 1000 && got <= 1000 {
			t.Errorf("%q has %d addresses, and %d are counted", text, got, n)
		}
	})
}

// holder is what a test knows of an owner by itself.
type holder struct {
	claim address.Claim
	got   []netip.Addr
}

// Whatever is asked for in whatever order: addresses are of pools that are for their owner, shared
// only by those who may, and none is refused while there is one.
func TestBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := []*address.Pool{pool(t, "a", "192.0.2.0/30", "2001:db8::/126"),
			pool(t, "b", "198.51.100.1-198.51.100.3")}
		pools[1].Namespaces = []string{"n1"}
		pools[1].Sharing = address.Sharing(rapid.IntRange(0, 2).Draw(t, "sharing"))
		book := address.NewBook()
		book.SetPools(pools)
		owners := map[string]*holder{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprint("o", rapid.IntRange(0, 9).Draw(t, "owner"))
			if rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
				book.Release(name)
				delete(owners, name)
				continue
			}
			c := drawClaim(t, name)
			got, refused := book.Assign(c)
			delete(owners, name)
			if refused == nil {
				owners[name] = &holder{c, got}
			}
			judge(t, pools, owners, c, got, refused)
		}
	})
}

func drawClaim(t *rapid.T, name string) address.Claim {
	c := address.Claim{Owner: name,
		Namespace: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "ns"),
		V4:        rapid.Bool().Draw(t, "v4"), Require: rapid.Bool().Draw(t, "require"),
		Key:   rapid.SampledFrom([]string{"", "", "k"}).Draw(t, "key"),
		Ports: []address.Port{{Protocol: "tcp", Number: rapid.Uint16Range(1, 3).Draw(t, "port")}}}
	c.V6 = !c.V4 || rapid.Bool().Draw(t, "v6")
	if rapid.IntRange(0, 4).Draw(t, "wishes") == 0 {
		c.Wished = []netip.Addr{netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.1",
			"198.51.100.2", "2001:db8::2", "203.0.113.1"}).Draw(t, "wished"))}
	}
	return c
}

// judge looks at all that was given, without the book's own means.
func judge(t *rapid.T, pools []*address.Pool, owners map[string]*holder, c address.Claim,
	got []netip.Addr, refused *address.Refusal) {
	used := map[netip.Addr][]*holder{}
	for _, h := range owners {
		for _, a := range h.got {
			used[a] = append(used[a], h)
		}
	}
	for a, all := range used {
		p := pools[0]
		if pools[1].Contains(a) {
			p = pools[1]
		} else if !p.Contains(a) {
			t.Fatalf("%s is of no pool", a)
		}
		for i, h := range all {
			if p.Name == "b" && h.claim.Namespace != "n1" {
				t.Fatalf("%s of pool b is given to %s", a, h.claim.Namespace)
			}
			for _, o := range all[:i] {
				if p.Sharing == address.WithNobody || h.claim.Key == "" ||
					h.claim.Key != o.claim.Key || h.claim.Ports[0] == o.claim.Ports[0] ||
					p.Sharing == address.WithinNamespace && h.claim.Namespace != o.claim.Namespace {
					t.Fatalf("%s is shared by %v and %v", a, h.claim, o.claim)
				}
			}
		}
	}
	if refused == nil {
		for _, w := range c.Wished {
			if !slices.Contains(got, w) {
				t.Fatalf("%v wishes %s and gets %v", c, w, got)
			}
		}
		return
	}
	if len(c.Wished) > 0 || c.V6 || c.Require {
		return
	}
	for _, p := range pools { // IPv4 alone: is one free?
		for _, r := range p.Ranges {
			for a := r.First; r.Contains(a) && a.Is4(); a = a.Next() {
				if len(used[a]) == 0 && (p.Name == "a" || c.Namespace == "n1") {
					t.Fatalf("%v is refused (%s), and %s is free", c, refused.Text, a)
				}
			}
		}
	}
}

// After a restart everybody has what the status says, whatever the order of objects, even if a pool
// is gone.
func TestBookAfterRestart(t *testing.T) {
	pools := []*address.Pool{pool(t, "a", "192.0.2.0/28"), pool(t, "b", "198.51.100.0/28")}
	pools[1].Auto = false
	book := address.NewBook()
	book.SetPools(pools)
	var claims []address.Claim
	for i := range 20 {
		c := address.Claim{Owner: fmt.Sprint(i), Namespace: "n", V4: true}
		if i >= 10 {
			c.Pool = "b"
		}
		got, refused := book.Assign(c)
		if refused != nil {
			t.Fatal(refused)
		}
		c.Held = got
		claims = append(claims, c)
	}
	for range 10 {
		rand.Shuffle(len(claims), func(i, j int) { claims[i], claims[j] = claims[j], claims[i] })
		again := address.NewBook()
		again.SetPools(pools[1:]) // pool a is gone
		for _, c := range claims {
			got, refused := again.Assign(c)
			if refused != nil || !slices.Equal(got, c.Held) {
				t.Fatalf("%s had %v, and gets %v, %v", c.Owner, c.Held, got, refused)
			}
		}
	}
}

// An address that was given back is given to others last.
func TestAddressesRest(t *testing.T) {
	book := address.NewBook()
	book.SetPools([]*address.Pool{pool(t, "a", "192.0.2.1-192.0.2.3")})
	for i, want := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.1"} {
		got, refused := book.Assign(address.Claim{Owner: fmt.Sprint(i), V4: true})
		if refused != nil || got[0].String() != want {
			t.Errorf("step %d gives %v, %v; want %s", i, got, refused, want)
		}
		book.Release(fmt.Sprint(i))
	}
}
