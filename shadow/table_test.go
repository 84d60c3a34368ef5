package shadow_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/fib"
	"sextant/rtnetlink"
	"sextant/shadow"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func set(ids ...int) fib.Set {
	var hops []rtnetlink.Hop
	for _, n := range ids {
		hops = append(hops, rtnetlink.Hop{Weight: 1, Mode: rtnetlink.Encap, Segments: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", n))}})
	}
	s, _ := fib.NewSet(hops, 0)
	return s
}

func prefix(n int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("2001:db8:80::%x/128", n))
}

// kernel is two tables.
type kernel [2]map[netip.Prefix]fib.Set

func newKernel() kernel { return kernel{map[netip.Prefix]fib.Set{}, map[netip.Prefix]fib.Set{}} }

func (k kernel) apply(op shadow.Op) {
	if op.Set == (fib.Set{}) {
		delete(k[op.Which], op.Prefix)
		return
	}
	k[op.Which][op.Prefix] = op.Set
}

// run carries a plan out as far as the kernel takes it, and says what was done.
func run(k kernel, t *shadow.Table, now time.Time, refused func(shadow.Op) bool, seen func(shadow.Op)) {
	copies, changes, removals := t.Plan(now)
	blocked := map[netip.Prefix]bool{}
	for _, op := range slices.Concat(copies, changes, removals) {
		if blocked[op.Prefix] || refused(op) {
			blocked[op.Prefix] = true
			continue
		}
		seen(op)
		k.apply(op)
		t.Done(op, now)
	}
}

// Whatever routes become, in whatever batches, and whatever the kernel refuses: when the original of a prefix changes, its shadow
// holds what the original held; and when all is done the kernel has what was wanted, with what packets met last before in the shadow. (If the
// kernel took a copy and refused the change, and the route changes back, what the shadow held before the copy is lost.)
func TestShadowHoldsThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table shadow.Table
		k, now := newKernel(), noon
		table.Keep = time.Duration(rapid.IntRange(0, 3).Draw(t, "keep")) * time.Minute
		wanted, past, hindered := map[netip.Prefix]fib.Set{}, map[netip.Prefix]fib.Set{}, map[netip.Prefix]bool{}
		refused := func(op shadow.Op) bool {
			no := rapid.IntRange(0, 4).Draw(t, "refused") == 0
			hindered[op.Prefix] = hindered[op.Prefix] || no
			return no
		}
		seen := func(op shadow.Op) {
			was := k[shadow.Original][op.Prefix]
			if op.Which == shadow.Original && was != (fib.Set{}) {
				if k[shadow.Shadow][op.Prefix] != was {
					t.Fatalf("%s changes from %s to %s, while its shadow holds %s", op.Prefix, was, op.Set, k[shadow.Shadow][op.Prefix])
				}
				past[op.Prefix] = was
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "batches") {
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				p := prefix(rapid.IntRange(1, 3).Draw(t, "prefix"))
				s := set(rapid.SliceOfDistinct(rapid.IntRange(1, 3), rapid.ID[int]).Draw(t, "hops")...)
				wanted[p] = s
				table.Want(p, s)
			}
			run(k, &table, now, refused, seen)
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
		}
		run(k, &table, now, func(shadow.Op) bool { return false }, seen)
		for n := 1; n <= 3; n++ {
			p := prefix(n)
			if k[shadow.Original][p] != wanted[p] {
				t.Fatalf("%s is %s, wanted %s", p, k[shadow.Original][p], wanted[p])
			}
			held := k[shadow.Shadow][p]
			if held != past[p] && held != (fib.Set{}) {
				t.Fatalf("the shadow of %s is %s, want %s", p, held, past[p])
			}
			if held == (fib.Set{}) && past[p] != (fib.Set{}) && past[p] != wanted[p] && table.Keep == 0 && !hindered[p] {
				t.Fatalf("the shadow of %s is gone, want %s", p, past[p])
			}
			if held != (fib.Set{}) && held == wanted[p] {
				t.Fatalf("strays of %s go in a circle", p)
			}
		}
		run(k, &table, now.Add(time.Hour), func(shadow.Op) bool { return false }, seen)
		if table.Keep > 0 && len(k[shadow.Shadow]) > 0 {
			t.Fatalf("after an hour the shadow still holds %v", k[shadow.Shadow])
		}
	})
}

// What comes and goes within a batch leaves no trace; a restart goes on where the tables stand.
func TestBatchesAndRestarts(t *testing.T) {
	none := func(shadow.Op) bool { return false }
	for name, test := range map[string]struct {
		wants [][]fib.Set // of one prefix, batch by batch
		want  string
	}{
		"installed":                {[][]fib.Set{{set(1, 2)}}, "original [{1 2}] shadow [none]"},
		"replaced":                 {[][]fib.Set{{set(1, 2)}, {set(1)}}, "original [{1}] shadow [{1 2}]"},
		"flap in a batch":          {[][]fib.Set{{set(1, 2)}, {set(1)}, {set(3), set(2), set(1)}}, "original [{1}] shadow [{1 2}]"},
		"deleted and added again":  {[][]fib.Set{{set(1, 2)}, {{}, set(1)}}, "original [{1}] shadow [{1 2}]"},
		"passed through in batch":  {[][]fib.Set{{set(1)}, {set(2), set(3)}}, "original [{3}] shadow [{1}]"},
		"withdrawn":                {[][]fib.Set{{set(1)}, {{}}}, "original [none] shadow [{1}]"},
		"withdrawn, another":       {[][]fib.Set{{set(1)}, {{}}, {set(2)}}, "original [{2}] shadow [{1}]"},
		"withdrawn, the same":      {[][]fib.Set{{set(1)}, {{}}, {set(1)}}, "original [{1}] shadow [none]"},
		"flap over batches":        {[][]fib.Set{{set(1)}, {set(2)}, {set(1)}}, "original [{1}] shadow [{2}]"},
		"never there in the table": {[][]fib.Set{{set(1), {}}}, "original [none] shadow [none]"},
	} {
		t.Run(name, func(t *testing.T) {
			table, k := &shadow.Table{}, newKernel()
			for _, batch := range test.wants {
				for _, s := range batch {
					table.Want(prefix(1), s)
				}
				run(k, table, noon, none, func(shadow.Op) {})
				restarted := &shadow.Table{} // each batch is a new process, which reads the tables
				restarted.Adopt(prefix(1), k[shadow.Original][prefix(1)], k[shadow.Shadow][prefix(1)], noon)
				table = restarted
			}
			text := strip(fmt.Sprintf("original [%s] shadow [%s]", k[shadow.Original][prefix(1)], k[shadow.Shadow][prefix(1)]))
			if text != strip(test.want) {
				t.Errorf("%s, want %s", text, test.want)
			}
			if table.Due(noon) {
				t.Error("something is still due")
			}
		})
	}
}

// strip takes away how sets are written.
func strip(text string) string {
	for _, word := range []struct{ from, to string }{{"fcbb:bb00:", ""}, {"::", ""}, {"{", ""}, {"}", ""}} {
		text = strings.ReplaceAll(text, word.from, word.to)
	}
	return text
}
