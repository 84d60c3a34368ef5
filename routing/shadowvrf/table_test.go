package shadowvrf_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/linux/rtnetlink"
	"sextant/routing/rib"
	"sextant/routing/shadowvrf"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func set(ids ...int) rib.Set {
	var hops []rtnetlink.Hop
	for _, n := range ids {
		hops = append(hops, rtnetlink.Hop{Weight: 1, Mode: rtnetlink.Encap,
			Segments: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", n))}})
	}
	s, _ := rib.NewSet(hops, 0)
	return s
}

func prefix(n int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("2001:db8:80::%x/128", n))
}

// kernel is two tables.
type kernel [2]map[netip.Prefix]rib.Set

func newKernel() kernel { return kernel{map[netip.Prefix]rib.Set{}, map[netip.Prefix]rib.Set{}} }

func (k kernel) apply(op shadowvrf.Op) {
	if op.Set == (rib.Set{}) {
		delete(k[op.Which], op.Prefix)
		return
	}
	k[op.Which][op.Prefix] = op.Set
}

// run carries a plan out as far as the kernel takes it, and says what was done.
func run(k kernel, t *shadowvrf.Table, now time.Time, refused func(shadowvrf.Op) bool,
	seen func(shadowvrf.Op)) {
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

// Whatever routes become, in whatever batches, and whatever the kernel refuses: when the original
// of a prefix changes, its shadow holds what the original held; and when all is done the kernel has
// what was wanted, with what packets met last before in the shadow. (If the kernel took a copy and
// refused the change, and the route changes back, what the shadow held before the copy is lost.)
func TestShadowHoldsThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table shadowvrf.Table
		k, now := newKernel(), noon
		table.Keep = time.Duration(rapid.IntRange(0, 3).Draw(t, "keep")) * time.Minute
		wanted, past, hindered := map[netip.Prefix]rib.Set{}, map[netip.Prefix]rib.Set{},
			map[netip.Prefix]bool{}
		refused := func(op shadowvrf.Op) bool {
			no := rapid.IntRange(0, 4).Draw(t, "refused") == 0
			hindered[op.Prefix] = hindered[op.Prefix] || no
			return no
		}
		seen := func(op shadowvrf.Op) {
			was := k[shadowvrf.Original][op.Prefix]
			if op.Which == shadowvrf.Original && was != (rib.Set{}) {
				if k[shadowvrf.Shadow][op.Prefix] != was {
					t.Fatalf("%s changes from %s to %s, while its shadow holds %s", op.Prefix, was,
						op.Set, k[shadowvrf.Shadow][op.Prefix])
				}
				past[op.Prefix] = was
			}
		}
		for range rapid.IntRange(1, 12).Draw(t, "batches") {
			for range rapid.IntRange(0, 8).Draw(t, "changes") {
				p := prefix(rapid.IntRange(1, 3).Draw(t, "prefix"))
				s := set(rapid.SliceOfDistinct(rapid.IntRange(1, 3), rapid.ID[int]).Draw(t,
					"hops")...)
				wanted[p] = s
				table.Want(p, s)
			}
			run(k, &table, now, refused, seen)
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
		}
		run(k, &table, now, func(shadowvrf.Op) bool { return false }, seen)
		for n := 1; n <= 3; n++ {
			p := prefix(n)
			if k[shadowvrf.Original][p] != wanted[p] {
				t.Fatalf("%s is %s, wanted %s", p, k[shadowvrf.Original][p], wanted[p])
			}
			held := k[shadowvrf.Shadow][p]
			if held != past[p] && held != (rib.Set{}) {
				t.Fatalf("the shadow of %s is %s, want %s", p, held, past[p])
			}
			if held == (rib.Set{}) && past[p] != (rib.Set{}) && past[p] != wanted[p] &&
				table.Keep == 0 && !hindered[p] {
				t.Fatalf("the shadow of %s is gone, want %s", p, past[p])
			}
			if held != (rib.Set{}) && held == wanted[p] {
				t.Fatalf("strays of %s go in a circle", p)
			}
		}
		run(k, &table, now.Add(time.Hour), func(shadowvrf.Op) bool { return false }, seen)
		if table.Keep > 0 && len(k[shadowvrf.Shadow]) > 0 {
			t.Fatalf("after an hour the shadow still holds %v", k[shadowvrf.Shadow])
		}
	})
}

// What comes and goes within a batch leaves no trace; a restart goes on where the tables stand.
func TestBatchesAndRestarts(t *testing.T) {
	none := func(shadowvrf.Op) bool { return false }
	for name, test := range map[string]struct {
		wants [][]rib.Set // of one prefix, batch by batch
		want  string
	}{
		"installed": {[][]rib.Set{{set(1, 2)}}, "original [{1 2}] shadow [none]"},
		"replaced": {[][]rib.Set{{set(1, 2)}, {set(1)}},
			"original [{1}] shadow [{1 2}]"},
		"flap in a batch": {[][]rib.Set{{set(1, 2)}, {set(1)}, {set(3), set(2), set(1)}},
			"original [{1}] shadow [{1 2}]"},
		"deleted and added again": {[][]rib.Set{{set(1, 2)}, {{}, set(1)}},
			"original [{1}] shadow [{1 2}]"},
		"passed through in batch": {[][]rib.Set{{set(1)}, {set(2), set(3)}},
			"original [{3}] shadow [{1}]"},
		"withdrawn": {[][]rib.Set{{set(1)}, {{}}}, "original [none] shadow [{1}]"},
		"withdrawn, another": {[][]rib.Set{{set(1)}, {{}}, {set(2)}},
			"original [{2}] shadow [{1}]"},
		"withdrawn, the same": {[][]rib.Set{{set(1)}, {{}}, {set(1)}},
			"original [{1}] shadow [none]"},
		"flap over batches": {[][]rib.Set{{set(1)}, {set(2)}, {set(1)}},
			"original [{1}] shadow [{2}]"},
		"never there in the table": {[][]rib.Set{{set(1), {}}}, "original [none] shadow [none]"},
	} {
		t.Run(name, func(t *testing.T) {
			table, k := &shadowvrf.Table{}, newKernel()
			for _, batch := range test.wants {
				for _, s := range batch {
					table.Want(prefix(1), s)
				}
				run(k, table, noon, none, func(shadowvrf.Op) {})
				// each batch is a new process, which reads the tables
				restarted := &shadowvrf.Table{}
				restarted.Adopt(prefix(1), k[shadowvrf.Original][prefix(1)],
					k[shadowvrf.Shadow][prefix(1)], noon)
				table = restarted
			}
			text := strip(fmt.Sprintf("original [%s] shadow [%s]", k[shadowvrf.Original][prefix(1)],
				k[shadowvrf.Shadow][prefix(1)]))
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
	for _, word := range []struct{ from, to string }{{"fcbb:bb00:", ""}, {"::", ""}, {"{", ""},
		{"}", ""}} {
		text = strings.ReplaceAll(text, word.from, word.to)
	}
	return text
}
