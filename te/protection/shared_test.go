package protection_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/te/protection"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

var sameAddress = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// TestSharedEngine computes plans by one engine, which knows of those before, and each by one of
// its own: they are the same.
func TestSharedEngine(t *testing.T) {
	g, err := dataset.Open("paper-table3/AS1755")
	if err != nil {
		t.Fatal(err)
	}
	alone := network(t, "a-z 1")
	alone.View = g.All().Without(3, g.Reverse(3))
	shared := alone
	if shared.Engine, err = segment.New(shared.View); err != nil {
		t.Fatal(err)
	}
	paths := 0
	for to := topology.Node(1); int(to) < g.Nodes(); to++ {
		in := intent(1+int(to)%2, int(to)%3)
		in.From, in.To = g.Node(0).Name, g.Node(to).Name
		q := protection.Question{Prove: to%16 == 0}
		if to%4 == 0 {
			q.Avoid = []protection.Link{protection.LinkOf(g, topology.Edge(to))}
		}
		want, err := alone.Compute(in, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := shared.Compute(in, q)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameAddress); diff != "" {
			t.Fatalf("to %s (-alone +shared):\n%s", in.To, diff)
		}
		paths += len(got.Paths)
	}
	if paths < g.Nodes() {
		t.Errorf("%d paths: the test shows little", paths)
	}
}
