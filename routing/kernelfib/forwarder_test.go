package kernelfib_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/linux"
	"sextant/routing/kernelfib"
	"sextant/routing/rib"
	"sextant/routing/shadowvrf"
)

func open(t testing.TB, ns *linux.Netns) (f *kernelfib.Forwarder) {
	t.Helper()
	must(t, ns.Do(func() (err error) {
		f, err = kernelfib.OpenForwarder()
		return err
	}))
	t.Cleanup(f.Close)
	return f
}

func apply(t testing.TB, f *kernelfib.Forwarder, ops ...shadowvrf.Op) {
	t.Helper()
	failed, err := f.Apply(100, 101, ops)
	must(t, err)
	for i, err := range failed {
		t.Errorf("%v: %v", ops[i], err)
	}
}

func read(t testing.TB, f *kernelfib.Forwarder, table uint32) map[string]string {
	t.Helper()
	routes, err := f.Read(table)
	must(t, err)
	texts := map[string]string{}
	for p, s := range routes {
		texts[p.String()] = s.String()
	}
	return texts
}

// What one forwarder wrote, the next one finds, be groups plain or made of buckets, and of both IP
// versions; it changes nothing by being opened.
func TestForwarderTakesUpWhatIsThere(t *testing.T) {
	ns := newNetns(t)
	f := open(t, ns)
	v4, plain, drawn := netip.MustParsePrefix("192.0.2.80/32"), set(t, 0, 1, 2, 3),
		set(t, 64, 1, 2, 3)
	apply(t, f,
		shadowvrf.Op{Which: shadowvrf.Original, Prefix: prefix(1), Set: plain},
		shadowvrf.Op{Which: shadowvrf.Original, Prefix: prefix(2), Set: drawn},
		shadowvrf.Op{Which: shadowvrf.Shadow, Prefix: v4, Set: plain},
		shadowvrf.Op{Which: shadowvrf.Original, Prefix: prefix(3), Set: plain},
		shadowvrf.Op{Which: shadowvrf.Original, Prefix: prefix(3)},
		shadowvrf.Op{Which: shadowvrf.Original, Prefix: prefix(4)})
	next := open(t, ns)
	for table, want := range map[uint32]map[netip.Prefix]rib.Set{100: {prefix(1): plain,
		prefix(2): drawn}, 101: {v4: plain}} {
		got, err := next.Read(table)
		must(t, err)
		if len(got) != len(want) {
			t.Errorf("table %d has %d routes, want %d", table, len(got), len(want))
		}
		for p, s := range want {
			if got[p] != s {
				t.Errorf("table %d: %s has %s, want %s", table, p, got[p], s)
			}
		}
	}
	must(t, next.Collect(map[rib.Set]bool{plain: true}))
	want := map[string]string{prefix(1).String(): plain.String()}
	if diff := cmp.Diff(want, read(t, open(t, ns), 100)); diff != "" {
		t.Errorf("after the next hops of buckets were removed: -want +got:\n%s", diff)
	}
}
