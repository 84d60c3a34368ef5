package srpolicy_test

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/te/srpolicy"
)

var source = srpolicy.Source{Addr: netip.MustParseAddr("fd00:5e::1"), HopLimit: 64, Epoch: 5}

// compileOne compiles a policy with one candidate path.
func compileOne(t testing.TB, action srpolicy.Action,
	lists ...srpolicy.List) (srpolicy.Entry, error) {
	t.Helper()
	table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "p"}},
		[]srpolicy.Policy{{Name: "p", Paths: []srpolicy.CandidatePath{{Name: "c", Action: action,
			Lists: lists}}}}, source, nil)
	if err != nil {
		return srpolicy.Entry{}, err
	}
	if len(table) != 1 {
		t.Fatalf("%d entries", len(table))
	}
	return table[0], nil
}

// TestHeaders are outer headers, octet by octet, as they were written down by hand.
func TestHeaders(t *testing.T) {
	const (
		fixed  = "60000000" + "0000" // version, class and label; payload length
		from   = "fd00005e000000000000000000000001"
		a      = "fcbb0000000200000000000000000001"
		m      = "fcbb0000000400000" + "00f000000000000"
		m7     = "fcbb000000040000000f" + "00007" + "0000" + "000" // flow 7
		tlv    = "7c0e0005" + "00000007" + "00000000" + "00000000"
		routed = "2b40"
	)
	both := []netip.Addr{sidA, merge}
	tests := map[string]struct {
		list   srpolicy.List
		want   string
		nextAt int
		number [2]int
	}{
		"full": {srpolicy.List{Segments: both},
			fixed + routed + from + a + "0004040101000000" + m + a, 40, [2]int{}},
		"one, full": {srpolicy.List{Segments: both[:1]},
			fixed + routed + from + a + "0002040000000000" + a, 40, [2]int{}},
		"reduced": {srpolicy.List{Segments: both, Reduced: true},
			fixed + routed + from + a + "0002040100000000" + m, 40, [2]int{}},
		"one, reduced": {srpolicy.List{Segments: both[:1], Reduced: true},
			fixed + "0040" + from + a, 6, [2]int{}},
		"TLV": {srpolicy.List{Segments: both, Redundancy: srpolicy.TLV, Flow: 7},
			fixed + routed + from + a + "0006040101000000" + m + a + tlv, 40, [2]int{88, 0}},
		"TLV, reduced": {srpolicy.List{Segments: both, Reduced: true, Redundancy: srpolicy.TLV,
			Flow: 7}, fixed + routed + from + a + "0004040100000000" + m + tlv, 40, [2]int{72, 0}},
		"TLV, one, reduced": {srpolicy.List{Segments: both[1:], Reduced: true,
			Redundancy: srpolicy.TLV, Flow: 7}, fixed + routed + from + m + "0004040000000000" + m +
			tlv, 40, [2]int{72, 0}},
		"SID": {srpolicy.List{Segments: both, Redundancy: srpolicy.SID, Flow: 7},
			fixed + routed + from + a + "0004040101000000" + m7 + a, 40, [2]int{56, 0}},
		"SID, one": {srpolicy.List{Segments: both[1:], Redundancy: srpolicy.SID, Flow: 7},
			fixed + routed + from + m7 + "0002040000000000" + m7, 40, [2]int{32, 56}},
		"SID, one, reduced": {srpolicy.List{Segments: both[1:], Reduced: true,
			Redundancy: srpolicy.SID, Flow: 7}, fixed + "0040" + from + m7, 6, [2]int{32, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entry, err := compileOne(t, srpolicy.Path, test.list)
			if err != nil {
				t.Fatal(err)
			}
			h := entry.Lists[0]
			if got := hex.EncodeToString(h.Octets); got != test.want {
				t.Errorf("headers\n%s, want\n%s", got, test.want)
			}
			first := netip.PrefixFrom(test.list.Segments[0], 80)
			if h.NextAt != test.nextAt || h.NumberAt != test.number ||
				!first.Contains(h.Destination()) {
				t.Errorf("protocol at %d, number at %v, to %s", h.NextAt, h.NumberAt,
					h.Destination())
			}
		})
	}
}

// Headers are refused rather than cut.
func TestCompileRefuses(t *testing.T) {
	good := srpolicy.List{Name: "l", Segments: []netip.Addr{sidA, merge}}
	with := func(change func(*srpolicy.List)) []srpolicy.List {
		l := good
		change(&l)
		return []srpolicy.List{l}
	}
	tests := map[string][]srpolicy.List{
		"above the 192": with(func(l *srpolicy.List) {
			l.Segments = slices.Repeat(l.Segments,
				5)
		}),
		"flow 0": with(func(l *srpolicy.List) { l.Redundancy = srpolicy.TLV }),
		"choose 1 to": with(func(l *srpolicy.List) {
			l.Redundancy, l.Flow = srpolicy.SID,
				1<<20
		}),
		"has an argument": with(func(l *srpolicy.List) {
			l.Redundancy, l.Flow, l.Segments = srpolicy.SID, 1, []netip.Addr{sidA}
		}),
		"not an IPv6": with(
			func(l *srpolicy.List) { l.Segments = []netip.Addr{netip.MustParseAddr("192.0.2.1")} }),
		"9 segment lists": slices.Repeat([]srpolicy.List{good}, 9),
	}
	for want, lists := range tests {
		if _, err := compileOne(t, srpolicy.Mirror, lists...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if _, err := compileOne(t, srpolicy.Drop, good); err == nil || !strings.Contains(err.Error(),
		"no action") {
		t.Errorf("action drop of a candidate path: %v", err)
	}
	policy := srpolicy.Policy{Name: "p",
		Paths: []srpolicy.CandidatePath{{Action: srpolicy.Path, Lists: []srpolicy.List{good}}}}
	other, high := policy, policy
	other.Name, high.Index = "q", 256
	for want, c := range map[string]struct {
		rules    []srpolicy.Rule
		policies []srpolicy.Policy
	}{
		"no policy":   {[]srpolicy.Rule{{Policy: "none"}}, []srpolicy.Policy{policy}},
		"index 0 too": {nil, []srpolicy.Policy{policy, other}},
		"holds 256":   {nil, []srpolicy.Policy{high}},
		"129 rules": {slices.Repeat([]srpolicy.Rule{{Policy: "p"}}, 129),
			[]srpolicy.Policy{policy}},
		"two families": {[]srpolicy.Rule{{Policy: "p",
			Match: srpolicy.Match{Source: netip.MustParsePrefix("::/0"),
				Destination: netip.MustParsePrefix("0.0.0.0/0")}}}, []srpolicy.Policy{policy}},
		"did you mean": {[]srpolicy.Rule{{Policy: "p",
			Match: srpolicy.Match{Source: netip.MustParsePrefix("::1/64")}}},
			[]srpolicy.Policy{policy}},
		"DSCP 64": {[]srpolicy.Rule{{Policy: "p",
			Match: srpolicy.Match{DSCP: 64, ByDSCP: true}}}, []srpolicy.Policy{policy}},
		"DSCP 1": {[]srpolicy.Rule{{Policy: "p", Match: srpolicy.Match{DSCP: 1}}},
			[]srpolicy.Policy{policy}},
		"last is before": {[]srpolicy.Rule{{Policy: "p", Match: srpolicy.Match{Protocol: 6,
			SourcePorts: srpolicy.Ports{First: 2, Last: 1}}}}, []srpolicy.Policy{policy}},
		"only TCP": {[]srpolicy.Rule{{Policy: "p",
			Match: srpolicy.Match{DestinationPorts: srpolicy.Ports{First: 1, Last: 2}}}},
			[]srpolicy.Policy{policy}},
	} {
		if _, err := srpolicy.Compile(c.rules, c.policies, source, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

// A policy without a valid path leaves its traffic alone, or drops it.
func TestCompileWithoutPath(t *testing.T) {
	rules := []srpolicy.Rule{{Policy: "p"}, {Policy: "q"}}
	policies := []srpolicy.Policy{{Name: "p"}, {Name: "q", Index: 1, DropIfInvalid: true}}
	table, err := srpolicy.Compile(rules, policies, source, nil)
	if err != nil || len(table) != 1 || table[0].Policy != "q" || table[0].Action != srpolicy.Drop {
		t.Errorf("%+v, %v", table, err)
	}
}

func TestFind(t *testing.T) {
	prefix := netip.MustParsePrefix
	rules := []srpolicy.Rule{
		{Match: srpolicy.Match{Destination: prefix("192.0.2.0/24"), Protocol: 17,
			DestinationPorts: srpolicy.Ports{First: 53, Last: 54}}, Policy: "p"},
		{Match: srpolicy.Match{Source: prefix("2001:db8::/32"), DSCP: 0, ByDSCP: true},
			Policy: "p"},
		{Match: srpolicy.Match{Protocol: 6, SourcePorts: srpolicy.Ports{First: 0, Last: 1023}},
			Policy: "p"},
		{Match: srpolicy.Match{Destination: prefix("::/0")}, Policy: "p"},
	}
	policy := srpolicy.Policy{Name: "p", Paths: []srpolicy.CandidatePath{{Action: srpolicy.Path,
		Lists: []srpolicy.List{list("l", false)}}}}
	table, err := srpolicy.Compile(rules, []srpolicy.Policy{policy}, source, nil)
	if err != nil {
		t.Fatal(err)
	}
	four, six := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8::9")
	for want, p := range map[int]srpolicy.Packet{
		0:  {Source: four, Destination: four, Protocol: 17, DestinationPort: 54},
		1:  {Source: six, Destination: six, Protocol: 17},
		2:  {Source: four, Destination: four, Protocol: 6, SourcePort: 80},
		3:  {Source: six, Destination: six, Protocol: 58, DSCP: 8},
		-1: {Source: four, Destination: four, Protocol: 17, DestinationPort: 55, DSCP: 8},
	} {
		got, ok := table.Find(p)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%+v met entry %d, want %d", p, got, want)
		}
	}
}

// Flows and packets are divided as the weights say.
func TestSplitsByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Range(1, 1<<32-1), 1, srpolicy.MaxLists).Draw(t,
			"weights")
		if rapid.Bool().Draw(t, "small") {
			for i := range weights {
				weights[i] = 1 + weights[i]%9
			}
		}
		var lists []srpolicy.List
		var total float64
		for _, w := range weights {
			lists = append(lists, srpolicy.List{Segments: []netip.Addr{sidA}, Weight: w})
			total += float64(w)
		}
		compile := func(action srpolicy.Action) srpolicy.Entry {
			table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "p"}},
				[]srpolicy.Policy{{Name: "p", Paths: []srpolicy.CandidatePath{{Action: action,
					Lists: lists}}}}, source, nil)
			if err != nil {
				t.Fatal(err)
			}
			return table[0]
		}
		shares, before := compile(srpolicy.SplitFlow).Shares, -1.0
		for i, w := range weights {
			got, want := (float64(shares[i])-before)/(1<<32), float64(w)/total
			if got-want > 1e-9 || want-got > 1e-9 {
				t.Errorf("list %d has %g of the flows, want %g", i, got, want)
			}
			before = float64(shares[i])
		}
		if shares[len(shares)-1] != 1<<32-1 {
			t.Errorf("shares %v leave hashes out", shares)
		}
		turns := compile(srpolicy.SplitPacket).Turns
		if len(turns) > srpolicy.MaxTurns {
			t.Errorf("%d turns", len(turns))
		}
		for i, w := range weights {
			n := 0
			for _, turn := range turns {
				if int(turn) == i {
					n++
				}
			}
			got, want := float64(n)/float64(len(turns)), float64(w)/total
			if n == 0 || got-want > 0.2 || want-got > 0.2 {
				t.Errorf("list %d has %d of %d turns, want %.3f of them", i, n, len(turns), want)
			}
		}
	})
}

func TestTurnsAreSpread(t *testing.T) {
	entry, err := compileOne(t, srpolicy.SplitPacket, srpolicy.List{Segments: []netip.Addr{sidA},
		Weight: 30},
		srpolicy.List{Segments: []netip.Addr{sidB}, Weight: 10},
		srpolicy.List{Segments: []netip.Addr{merge}, Weight: 10})
	if err != nil || !slices.Equal(entry.Turns, []uint8{0, 1, 0, 2, 0}) {
		t.Errorf("turns %v, %v", entry.Turns, err)
	}
}
