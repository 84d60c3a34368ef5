package agent_test

import (
	"path/filepath"
	"testing"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// markOf is the mark of the chains of a service in the kernel.
func (m *machine) markOf(index uint32) pool.Mark {
	m.t.Helper()
	tables, err := datapath.OpenPinnedTables(filepath.Join(m.pins, "edge"))
	must(m.t, err)
	defer tables.Close()
	found, err := tables.Chains(index)
	must(m.t, err)
	return found.Mark
}

// TestRestartContinuesMarkedChains: chains without a past have none after a restart either, and are
// not computed again; chains with one keep it.
func TestRestartContinuesMarkedChains(t *testing.T) {
	m := newMachine(t)
	r := m.start(nodeText)
	mark, chains := m.markOf(1), m.chainsOf(1)
	if mark == 0 {
		t.Fatal("the chains of a first start have no mark")
	}
	r.stop()
	r = m.start(nodeText)
	if again := m.markOf(1); again != mark {
		t.Errorf("after a restart the mark is %x, want %x", again, mark)
	}
	wantChains(t, m.chainsOf(1), chains)
	state := config.Draining
	_, err := r.PutBackend(t.Context(), api.Update, "web", "web2", api.BackendSpec{State: &state})
	must(t, err)
	if is := m.markOf(1); is != 0 {
		t.Errorf("chains with a previous owner have the mark %x", is)
	}
	chains = m.chainsOf(1)
	r.stop()
	r = m.start(nodeText)
	defer r.stop()
	if is := m.markOf(1); is != 0 {
		t.Errorf("after a restart chains with a previous owner have the mark %x", is)
	}
	wantChains(t, m.chainsOf(1), chains)
}

func wantChains(t *testing.T, got, want []pool.Chain) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d chains, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("the chain of bucket %d is %v, want %v", i, got[i], want[i])
		}
	}
}
