package srpolicy_test

import (
	"net/netip"
	"strings"
	"testing"

	"sextant/te/srpolicy"
)

var (
	sidA  = netip.MustParseAddr("fcbb:0:2::1")
	sidB  = netip.MustParseAddr("fcbb:0:3::1")
	merge = netip.MustParseAddr("fcbb:0:4:0:f::")
)

func list(name string, down bool) srpolicy.List {
	return srpolicy.List{Name: name, Segments: []netip.Addr{sidA, merge}, Down: down}
}

// TestActive: RFC 9256 section 2.9.
func TestActive(t *testing.T) {
	node := netip.MustParseAddr
	tests := map[string]struct {
		paths     []srpolicy.CandidatePath
		installed string
		want      string // names of the path and its lists
	}{
		"none": {},
		"preference": {paths: []srpolicy.CandidatePath{{Name: "a", Preference: 200},
			{Name: "b", Preference: 300}, {Name: "c"}}, want: "b"},
		"the default is 100": {paths: []srpolicy.CandidatePath{{Name: "a", Preference: 99},
			{Name: "b"}, {Name: "c", Preference: 1}}, want: "b"},
		"origin": {paths: []srpolicy.CandidatePath{{Name: "a", Origin: 20},
			{Name: "b"}, {Name: "c", Origin: 10}}, want: "b"},
		"origin before installed": {paths: []srpolicy.CandidatePath{{Name: "a", Origin: 20},
			{Name: "b"}}, installed: "a", want: "b"},
		"installed": {paths: []srpolicy.CandidatePath{{Name: "a"},
			{Name: "b", Discriminator: 7}}, installed: "a", want: "a"},
		"preference over installed": {paths: []srpolicy.CandidatePath{{Name: "a"},
			{Name: "b", Preference: 101}}, installed: "a", want: "b"},
		"lower AS": {paths: []srpolicy.CandidatePath{
			{Name: "a", Originator: srpolicy.Originator{ASN: 65002}},
			{Name: "b", Originator: srpolicy.Originator{ASN: 65001}, Discriminator: 0},
			{Name: "c", Originator: srpolicy.Originator{ASN: 65003}, Discriminator: 9},
		}, want: "b"},
		"lower node": {paths: []srpolicy.CandidatePath{
			{Name: "a", Originator: srpolicy.Originator{Node: node("::2")}},
			{Name: "b", Originator: srpolicy.Originator{Node: node("::1")}},
		}, want: "b"},
		"higher discriminator": {paths: []srpolicy.CandidatePath{{Name: "a", Discriminator: 1},
			{Name: "b", Discriminator: 2}}, want: "b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range test.paths {
				test.paths[i].Lists = []srpolicy.List{list("l", false)}
			}
			for range 2 { // in either order
				path, ok := srpolicy.Policy{Paths: test.paths}.Active(test.installed)
				if path.Name != test.want || ok != (test.want != "") {
					t.Errorf("%q, %v; want %q", path.Name, ok, test.want)
				}
				for i, j := 0, len(test.paths)-1; i < j; i, j = i+1, j-1 {
					test.paths[i], test.paths[j] = test.paths[j], test.paths[i]
				}
			}
		})
	}
}

// TestProtectionStepsBack: with a list down, the path that is whole takes over; with two down, what
// is left.
func TestProtectionStepsBack(t *testing.T) {
	pair := func(name string, preference uint32, least int,
		lists ...srpolicy.List) srpolicy.CandidatePath {
		return srpolicy.CandidatePath{Name: name, Preference: preference, LeastLists: least,
			Action: srpolicy.Mirror, Lists: lists}
	}
	for _, test := range []struct{ down, want string }{
		{"", "ab: a b"}, {"a", "bc: b c"}, {"b", "ac: a c"}, {"c", "ab: a b"}, {"ab", "rest: c"},
		{"bc", "rest: a"}, {"abc", ""},
	} {
		l := func(name string) srpolicy.List {
			return list(name, strings.Contains(test.down, name))
		}
		policy := srpolicy.Policy{Paths: []srpolicy.CandidatePath{
			pair("ab", 400, 2, l("a"), l("b")), pair("ac", 300, 2, l("a"), l("c")),
			pair("bc", 200, 2, l("b"), l("c")),
			pair("rest", 100, 0, l("a"), l("b"), l("c")),
		}}
		got := ""
		if path, ok := policy.Active(""); ok {
			got = path.Name + ":"
			for _, l := range path.Lists {
				got += " " + l.Name
			}
		}
		if got != test.want {
			t.Errorf("with %q down: %q, want %q", test.down, got, test.want)
		}
	}
}

func TestNamesOfActionsAndForms(t *testing.T) {
	for _, a := range []srpolicy.Action{srpolicy.Path, srpolicy.SplitFlow, srpolicy.SplitPacket,
		srpolicy.Mirror} {
		if got, err := srpolicy.ParseAction(a.String()); err != nil || got != a {
			t.Errorf("%s: %v, %v", a, got, err)
		}
	}
	for _, r := range []srpolicy.Redundancy{srpolicy.None, srpolicy.TLV, srpolicy.SID} {
		if got, err := srpolicy.ParseRedundancy(r.String()); err != nil || got != r {
			t.Errorf("%s: %v, %v", r, got, err)
		}
	}
	for _, text := range []string{"", "drop", "Mirror"} {
		if a, err := srpolicy.ParseAction(text); err == nil {
			t.Errorf("action %q is %v", text, a)
		}
	}
	if r, err := srpolicy.ParseRedundancy("rtag"); err == nil {
		t.Errorf("form rtag is %v", r)
	}
}
