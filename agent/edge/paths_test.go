package edge

import (
	"errors"
	"testing"

	"sextant/agent/role"
	"sextant/datapath"
)

// An edge whose paths have no room loads its programs anew, with room for twice as many, and not if
// there can be no more.
func TestMakePathRoom(t *testing.T) {
	fails, loads := errors.New("the kernel refuses"), 0
	e := &Room{Slot: role.Slot[*Role]{Runs: &Role{}, Parts: role.Parts{
		Reload: func() error { loads++; return fails }}}}
	if err := e.makePathRoom(); err != nil || loads > 0 || e.Runs.Broken {
		t.Errorf("with room enough: %v, %d reloads, broken %v", err, loads, e.Runs.Broken)
	}
	e.Runs.crowded = true
	if err := e.makePathRoom(); !errors.Is(err, fails) || loads != 1 || !e.Runs.Broken {
		t.Errorf("without room: %v, %d reloads, broken %v", err, loads, e.Runs.Broken)
	}
	most, more := datapath.Capacity{}, true
	for more {
		most, more = most.WithMorePaths()
	}
	e.Runs = &Role{crowded: true, Config: datapath.EdgeConfig{Capacity: most}}
	if err := e.makePathRoom(); err != nil || loads != 1 || e.Runs.Broken {
		t.Errorf("with the most room: %v, %d reloads, broken %v", err, loads, e.Runs.Broken)
	}
}
