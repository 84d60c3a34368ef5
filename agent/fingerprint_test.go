package agent

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

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
	s, err := openStore(t.TempDir(), "edge1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	allocations := map[int]float64{}
	for _, backends := range []int{1, 2000} {
		node := nodeWithBackends(t, backends)
		if err := s.save(node, node); err != nil {
			t.Fatal(err)
		}
		want, err := config.Fingerprint(node)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.fingerprintOf(node); err != nil || got != want {
			t.Errorf("%d backends: fingerprint %s, want %s, error %v", backends, got, want, err)
		}
		allocations[backends] = testing.AllocsPerRun(3, func() {
			_, _ = s.fingerprintOf(node)
		})
		other := nodeWithBackends(t, 7)
		kept := s.kept.clone()
		if err := s.save(nil, other); err != nil {
			t.Fatal(err)
		}
		s.kept = kept // as reconcile does when a role refuses
		if got, err := s.fingerprintOf(node); err != nil || got != want {
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
	s, err := openStore(dir, "edge1", log)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.save(file, changed); err != nil {
		t.Fatal(err)
	}
	s.kept.Node += strings.Repeat("# as long as some 100,000 backends\n", 300_000)
	if _, err := config.Parse("node.yaml", []byte(s.kept.Node)); err == nil {
		t.Errorf("a foreign file of %d bytes is read", len(s.kept.Node))
	}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	s.close()
	if s, err = openStore(dir, "edge1", log); err != nil {
		t.Fatal(err)
	}
	defer s.close()
	node, err := s.resume(file, log)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(node.Edge.Services[0].Backends); got != 5 || s.earlier() == nil {
		t.Errorf("%d backends after a restart, want 5; warnings %v", got, s.warnings())
	}
}
