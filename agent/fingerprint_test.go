package agent

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sextant/agent/state"
	"sextant/config"
)

// nodeWithBackends has one service with so many backends.
func nodeWithBackends(t *testing.T, backends int) *config.Node {
	t.Helper()
	var text strings.Builder
	text.WriteString(`
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  services:
    - {name: web, vip: 2001:db8:80::80, port: 80, backends: [
`)
	for i := range backends {
		fmt.Fprintf(&text, "        {name: b%d, sid: \"fcbb:bb00:%x::\"},\n", i, i+1)
	}
	text.WriteString("      ]}\n")
	node, err := parseNode(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// What status tells of a node that was kept takes no more steps for many backends than for few:
// the fingerprint is that of the node, and is not written anew. After a change that was refused it
// is that of the node which runs.
func TestFingerprintOfKeptNode(t *testing.T) {
	s, err := state.Open(t.TempDir(), "edge1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	allocations := map[int]float64{}
	for _, backends := range []int{1, 2000} {
		node := nodeWithBackends(t, backends)
		if err := s.Save(node, node); err != nil {
			t.Fatal(err)
		}
		want, err := config.Fingerprint(node)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.FingerprintOf(node); err != nil || got != want {
			t.Errorf("%d backends: fingerprint %s, want %s, error %v", backends, got, want, err)
		}
		allocations[backends] = testing.AllocsPerRun(3, func() {
			_, _ = s.FingerprintOf(node)
		})
		other := nodeWithBackends(t, 7)
		kept := s.Kept.Clone()
		if err := s.Save(nil, other); err != nil {
			t.Fatal(err)
		}
		s.Kept = kept // as reconcile does when a role refuses
		if got, err := s.FingerprintOf(node); err != nil || got != want {
			t.Errorf("%d backends, after a refusal: fingerprint %s, want %s, error %v", backends,
				got, want, err)
		}
	}
	if allocations[2000] > 10*allocations[1] {
		t.Errorf("the fingerprint takes %v allocations for 1 backend, %v for 2000", allocations[1],
			allocations[2000])
	}
}

// A configuration that was accepted is read back, however long it has become with all that the node
// file leaves out.
func TestLongStateIsReadBack(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	file, changed := nodeWithBackends(t, 3), nodeWithBackends(t, 5)
	s, err := state.Open(dir, "edge1", log)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save(file, changed); err != nil {
		t.Fatal(err)
	}
	s.Kept.Node += strings.Repeat("# as long as some 200,000 backends\n", 600_000)
	if _, err := config.Parse("node.yaml", []byte(s.Kept.Node)); err == nil {
		t.Errorf("a foreign file of %d bytes is read", len(s.Kept.Node))
	}
	if err := s.Write(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s, err = state.Open(dir, "edge1", log); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	node, err := s.Resume(file, log)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(node.Edge.Services[0].Backends); got != 5 || s.Earlier() == nil {
		t.Errorf("%d backends after a restart, want 5; warnings %v", got, s.Warnings())
	}
}
