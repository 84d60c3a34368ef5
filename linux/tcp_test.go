package linux_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/linux"
)

func TestCountersOfText(t *testing.T) {
	const text = "TcpExt: A B C\nTcpExt: 1 2 3\nIpExt: A\nIpExt: 9\nTcp: M R\nTcp: -1 7\n"
	values := map[string]uint64{}
	for _, group := range []string{"TcpExt:", "Tcp:"} {
		if err := linux.AddCounters(values, text, group); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]uint64{"A": 1, "B": 2, "C": 3, "R": 7}, values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, wrong := range []string{"", "Tcp: R\n", "TcpExt: R\nTcpExt: 7\n"} {
		if err := linux.AddCounters(values, wrong, "Tcp:"); err == nil {
			t.Errorf("no error for %q", wrong)
		}
	}
}

// A namespace counts for itself: a fresh one has sent no reset.
func TestTCPCounters(t *testing.T) {
	counters, err := newNetns(t).TCPCounters()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"OutRsts", "TCPAbortOnTimeout"} {
		if n, there := counters[name]; !there || n != 0 {
			t.Errorf("%s is %d, there %v; want 0", name, n, there)
		}
	}
}
