package datapath

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/lb/acceptance"
)

// words writes entries as JSON, one per line.
func words(t *testing.T, entries []Entry, err error) string {
	t.Helper()
	must(t, err)
	var text strings.Builder
	must(t, json.NewEncoder(&text).Encode(entries))
	return strings.TrimSpace(text.String())
}

// TestDump reads tables back in words.
func TestDump(t *testing.T) {
	w := newWorld(t)
	edge, err := OpenEdge(filepath.Join(w.dir, "edge"), edgeConfig(t))
	must(t, err)
	defer edge.Close()
	key := ServiceKey{VIP: netip.MustParseAddr("198.51.100.80"), Port: 443, Protocol: 6}
	must(t, edge.SetChains(3, testPool(t, 1021, 2, 1, 2)))
	must(t, edge.SetPaths(3, map[uint16][][]uint16{2: {{0xa1, 0xa2}, {0xa3}}}))
	must(t, edge.SetService(key, 3, testBuckets))
	must(t, edge.SetSID(7, netip.MustParseAddr("fcbb:bb00:7::")))
	must(t, edge.maps["outcomes"].Put(uint32(0), make([]uint64, ebpf.MustPossibleCPU())))
	must(t, edge.maps["outcomes"].Put(uint32(1),
		append([]uint64{9}, make([]uint64, ebpf.MustPossibleCPU()-1)...)))
	for name, want := range map[string]string{
		"paths": `[{"key":{"backend":2,"choice":0,"service":3},"value":{"ids":[161,162,0,0],` +
			`"length":2,"paths":2},"cpu":-1},{"key":{"backend":2,"choice":1,"service":3},` +
			`"value":{"ids":[163,0,0,0],"length":1,"paths":2},"cpu":-1}]`,
		"sids":     `[{"key":7,"value":"fcbb:bb00:7::","cpu":-1}]`,
		"outcomes": `[{"key":"OUTCOME_HANDED","value":9,"cpu":0}]`,
		"services": `{"key":{"ipv4":1,"port":443,"protocol":6,"vip":"198.51.100.80"},"value":{"block":0,"buckets":1021,"former_block":0,"former_buckets":0,"former_table":0,"index":3,"limited":0,"paths":1,"paths_at":1022,"quic":0,"table":2},"cpu":-1}`,
	} {
		entries, err := edge.Dump(name, 10)
		if got := words(t, entries, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s in it", name, got, want)
		}
	}
	tables, err := edge.Dump("tables", 5)
	if got := words(t, tables, err); len(tables) != 5 || !strings.Contains(got,
		`"key":{"bucket":4,"service":3}`) || !strings.Contains(got, `"candidates":2`) {
		t.Errorf("tables: %s", got)
	}
	if chain := tables[0].Value.(map[string]any)["ids"].([]any); fmt.Sprint(chain[:2]) != "[1 2]" &&
		fmt.Sprint(chain[:2]) != "[2 1]" {
		t.Errorf("a chain has the ids %v", chain)
	}
	for _, none := range []string{"nonsense", "captured", ".rodata", "quic_configs"} {
		if _, err := edge.Dump(none, 1); !errors.Is(err, ErrNoMap) {
			t.Errorf("%s: %v", none, err)
		}
	}
	host, err := OpenHost(filepath.Join(w.dir, "host"), hostConfig(t))
	must(t, err)
	defer host.Close()
	must(t, host.SetService(key, 2, acceptance.Policy{Kind: acceptance.Static, Threshold: 4}))
	must(t, host.maps["busy"].Put(uint32(2), int32(-3)))
	policies, err := host.Dump("accept_policies", 10)
	if got := words(t, policies, err); !strings.Contains(got, `"kind":"ACCEPT_STATIC"`) ||
		!strings.Contains(got, `"threshold":4`) {
		t.Errorf("policies: %s", got)
	}
	busy, err := host.Dump("busy", 10)
	if got := words(t, busy, err); got != `[{"key":2,"value":-3,"cpu":-1}]` {
		t.Errorf("busy: %s", got)
	}
}
