package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/api"
	"sextant/config"
)

// who returns the backends that some flows are offered to, in order.
func (r *running) who() (chains []string) {
	r.t.Helper()
	for port := range uint16(40) {
		trace, err := r.Trace(r.t.Context(), api.Flow{
			Source:      netip.AddrPortFrom(netip.MustParseAddr("2001:db8:c::1"), 40000+port),
			Destination: netip.MustParseAddrPort("[2001:db8:80::80]:80"), Protocol: config.TCP,
		})
		must(r.t, err)
		names := make([]string, len(trace.Chain))
		for i, p := range trace.Chain {
			names[i] = p.Backend
		}
		chains = append(chains, strings.Join(names, " "))
	}
	return chains
}

func drain(r *running, backend string, state config.BackendState) {
	r.t.Helper()
	must(r.t, putState(r, backend, state))
}

func putState(r *running, backend string, state config.BackendState) error {
	_, err := r.PutBackend(r.t.Context(), api.Update, "web", backend,
		api.BackendSpec{State: &state})
	return err
}

// exactText has a table that depends on its past, so that a lost past would show.
var exactText = strings.Replace(nodeText, "      port: 80\n",
	"      port: 80\n      table: exact\n      candidates: 1\n", 1)

// After a power failure nothing is pinned any more, and who had which bucket comes from the disk.
func TestPowerFailure(t *testing.T) {
	m := newMachine(t)
	r := m.start(exactText)
	fresh := r.who()
	drain(r, "web2", config.Draining)
	drain(r, "web2", config.Up)
	drain(r, "web1", config.Draining)
	before := r.who()
	if cmp.Equal(fresh, before) {
		t.Fatal("changes of the pool left no trace")
	}
	r.stop()
	must(t, m.unload())
	r = m.start(exactText)
	if diff := cmp.Diff(before, r.who()); diff != "" {
		t.Errorf("chains before and after the power failure (-before +after):\n%s", diff)
	}
	r.stop()
}

// TestPowerFailureBeforeChanges: what the disk has of services that never changed is a rule, by
// which the same chains are made; and if the backends are others now, chains name the ones before.
func TestPowerFailureBeforeChanges(t *testing.T) {
	m := newMachine(t)
	text := strings.Replace(strings.Replace(nodeText, "      port: 80\n",
		"      port: 80\n      candidates: 1\n      depth: 2\n", 1), `"fcbb:bb00:3::"}`,
		`"fcbb:bb00:3::", weight: 50}`, 1)
	r := m.start(text)
	mark, before := m.markOf(1), m.chainsOf(1)
	r.stop()
	must(t, m.unload())
	records, err := filepath.Glob(filepath.Join(m.dir, "state", "both1.chains", "*tcp"))
	if err != nil || len(records) > 0 {
		t.Errorf("%v; the disk has the records %v", err, records)
	}
	r = m.start(text)
	wantChains(t, m.chainsOf(1), before)
	if is := m.markOf(1); is != mark {
		t.Errorf("after a power failure the mark is %x, want %x", is, mark)
	}
	r.stop()
	must(t, m.unload())
	r = m.start(strings.Replace(text, "weight: 50", "weight: 1", 1))
	defer r.stop()
	moved := 0
	for i, c := range m.chainsOf(1) {
		first := before[i].IDs[0]
		if place := slices.Index(c.IDs[:c.Length], first); place < 0 {
			t.Fatalf("bucket %d: %v has lost %v", i, c, before[i])
		} else if place > 0 {
			moved++
		}
	}
	if moved == 0 {
		t.Error("no bucket has another first candidate")
	}
}

// A journal that can't be read is as good as none.
func TestBrokenJournal(t *testing.T) {
	m := newMachine(t)
	r := m.start(exactText)
	fresh := r.who()
	drain(r, "web2", config.Draining)
	r.stop()
	must(t, m.unload())
	files, err := filepath.Glob(filepath.Join(m.dir, "state", "both1.chains", "*"))
	must(t, err)
	if len(files) != 2 {
		t.Fatalf("the journal has the files %v, want one per service", files)
	}
	for _, file := range files {
		must(t, os.Truncate(file, 1000))
	}
	must(t, os.Remove(filepath.Join(m.dir, "state", "both1.json"))) // with the drained backend
	r = m.start(exactText)
	if diff := cmp.Diff(fresh, r.who()); diff != "" {
		t.Errorf("(-fresh +now):\n%s", diff)
	}
	r.stop()
}

// An edge that starts without memory has the past of its peers. Who does not know the secret, has
// another number of buckets or does not answer is not believed, and not waited for long.
func TestPeersTellThePast(t *testing.T) {
	secret := clusterSigning(t)
	silent := netip.MustParseAddrPort("127.0.0.1:1")
	for name, test := range map[string]struct {
		peer  netip.AddrPort
		knows bool
	}{
		"a peer":                {peer(t, secret, 65537), true},
		"with another secret":   {peer(t, make([]byte, 16), 65537), false},
		"with another hash":     {peer(t, mustHex(t, clusterSecret), 65537), false},
		"with other buckets":    {peer(t, secret, 1021), false},
		"who does not answer":   {silent, false},
		"who has no such chain": {netip.MustParseAddrPort(httptestNotFound(t)), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			r := m.start(strings.Replace(exactText, "  source: fd00:5e::e1\n",
				fmt.Sprintf("  source: fd00:5e::e1\n  buckets: 65537\n  peers: [%q]\n", test.peer),
				1))
			for i, chain := range r.who() {
				if knows := strings.Contains(chain, "web3"); test.knows && !knows {
					t.Fatalf("flow %d is offered to %s; its owner at the peer was web3", i, chain)
				}
				if !test.knows && strings.Contains(chain, " ") {
					t.Fatalf("flow %d is offered to %s; the past of a stranger was believed", i,
						chain)
				}
			}
			r.stop()
		})
	}
}

func httptestNotFound(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A peer that takes a connection and says nothing is asked for one service, and for no other as
// long as it does not answer: not each of them waits for it.
func TestSilentPeerIsAskedForOneService(t *testing.T) {
	var asked sync.Map
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Store(r.FormValue("endpoint"), true)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() { close(over); server.Close() })
	m := newMachine(t)
	peers := fmt.Sprintf("  source: fd00:5e::e1\n  peers: [%q]\n", server.Listener.Addr())
	m.start(strings.Replace(nodeText, "  source: fd00:5e::e1\n", peers, 1)).stop()
	var services []any
	asked.Range(func(service, _ any) bool { services = append(services, service); return true })
	if len(services) != 1 {
		t.Errorf("it was asked for %v, want one service", services)
	}
}
