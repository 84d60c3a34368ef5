package datapath

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
)

// holdsKey walks a type of C for a structure that has a key in it.
func holdsKey(t btf.Type) bool {
	switch t := btf.UnderlyingType(t).(type) {
	case *btf.Struct:
		return slices.Contains([]string{"secret", "flow_secret", "hmac_key", "aes_key"},
			t.Name) || slices.ContainsFunc(t.Members, func(m btf.Member) bool {
			return holdsKey(m.Type)
		})
	case *btf.Union:
		return slices.ContainsFunc(t.Members, func(m btf.Member) bool { return holdsKey(m.Type) })
	case *btf.Array:
		return holdsKey(t.Type)
	}
	return false
}

// Tables with keys are dumped to nobody: a token that may only read can dump all others.
func TestTablesWithKeysAreNotDumped(t *testing.T) {
	var found []string
	for role, loaders := range objects {
		for _, load := range loaders {
			spec, err := load()
			if err != nil {
				t.Fatal(err)
			}
			for name, m := range spec.Maps {
				if isConstant(name) || m.Value == nil || !holdsKey(m.Value) {
					continue
				}
				found = append(found, name)
				if !slices.Contains(secretMaps, name) {
					t.Errorf("role %s: %s has keys and is dumped", role, name)
				}
			}
		}
	}
	for _, name := range secretMaps {
		if !slices.Contains(found, name) {
			t.Errorf("no object has a table %s with keys", name)
		}
	}
}

// What authenticates a controller's changes is not shown beside them.
func TestKeysOfStreamsAreNotDumped(t *testing.T) {
	c := newChanging(t)
	must(t, c.changes.Allow(1, time.Second))
	if entries, err := c.program.Dump("change_streams", 10); !errors.Is(err, ErrNoMap) {
		t.Errorf("the table is dumped: %+v, error %v", entries, err)
	}
}
