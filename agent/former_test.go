package agent_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/lb/pool"
)

// owners are the backends in the chains of many flows of the service web, by the client's port: of
// a role, or all.
func (r *running) owners(role pool.Role) map[uint16][]string {
	r.t.Helper()
	owners := map[uint16][]string{}
	for port := uint16(20000); port < 20100; port++ {
		f := flowTo("[2001:db8:80::80]:80", "tcp")
		f.Source = netip.AddrPortFrom(f.Source.Addr(), port)
		trace, err := r.Trace(r.t.Context(), *f)
		must(r.t, err)
		for _, place := range trace.Chain {
			if role == "" || place.Role == string(role) {
				owners[port] = append(owners[port], place.Backend)
			}
		}
	}
	return owners
}

// lost counts the backends that may have flows and are not asked any more, except
// those that are gone.
func lost(had, now map[uint16][]string, gone ...string) (lost int) {
	for port, backends := range had {
		for _, b := range backends {
			if !slices.Contains(now[port], b) && !slices.Contains(gone, b) {
				lost++
			}
		}
	}
	return lost
}

// After another secret, and after fewer buckets, whoever may have a connection of before is in its
// chain: at once, when backends change, and when the agent starts again. A second change of that
// kind is refused.
func TestFormerFlows(t *testing.T) {
	for name, pairs := range map[string][]string{
		"another secret": {"ddeeff", "ddeefe"},
		"another hash":   {"node:", "flowHash: siphash\nnode:"},
		"fewer buckets":  {"  source: fd", "  buckets: 1021\n  source: fd"},
		"both": {"ddeeff", "ddeefe", "  source: fd",
			"  buckets: 1021\n  source: fd"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			before := guardText()
			a := m.start(before)
			for _, more := range [][]string{
				{backend5, ""},
				{"      port: 80\n", "      port: 80\n      candidates: 5\n"},
			} {
				_, err := a.Apply(t.Context(), "node.yaml", []byte(m.text(before,
					append(pairs, more...)...)), false)
				refused(t, err, someEnd, "")
			}
			had := a.owners(pool.Candidate)
			after := m.text(before, pairs...)
			_, err := a.Apply(t.Context(), "node.yaml", []byte(after), false)
			must(t, err)
			if n := lost(had, a.owners("")); n > 0 {
				t.Fatalf("%d candidates of before are asked no more", n)
			}
			if now := a.owners(pool.Candidate); lost(had, now) == 0 {
				t.Fatal("the change moves nothing: the test does not test")
			}
			gone := m.text(after, backend5, "")
			_, err = a.BreakingConnections().Apply(t.Context(), "node.yaml", []byte(gone), false)
			must(t, err)
			now := a.owners("")
			if n := lost(had, now, "web5"); n > 0 {
				t.Errorf("%d candidates of before are asked no more when another is gone", n)
			}
			for port, owners := range now {
				if slices.Contains(owners, "web5") {
					t.Fatalf("flow %d leads to web5, who is gone", port)
				}
			}
			a.stop()
			a = m.start(gone)
			defer a.stop()
			if n := lost(had, a.owners(""), "web5"); n > 0 {
				t.Errorf("%d candidates of before are asked no more after a restart", n)
			}
			_, err = a.Apply(t.Context(), "node.yaml", []byte(m.text(gone, "2233445566",
				"2233445577")), false)
			refused(t, err, someEnd, "~ node: secret")
		})
	}
}

// When its time is over, nothing of before is asked any more.
func TestFormerFlowsEnd(t *testing.T) {
	m := newMachine(t)
	text := m.text(guardText(), "  source: fd", "  formerTime: 1s\n  source: fd")
	a := m.start(text)
	defer a.stop()
	_, err := a.Apply(t.Context(), "node.yaml", []byte(m.text(text, "ddeeff", "ddeefe")), false)
	must(t, err)
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		web, err := a.Services(t.Context(), "web", api.Edge)
		must(t, err)
		if web[0].Edge.FormerUntil == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("chains of before are kept beyond %s", web[0].Edge.FormerUntil)
		}
	}
	for port, owners := range a.owners(pool.Former) {
		t.Errorf("flow %d is still offered to %v", port, owners)
	}
	_, err = a.Apply(t.Context(), "node.yaml", []byte(m.text(text, "ddeeff", "ddeefd")), false)
	must(t, err) // the next change of that kind
}
