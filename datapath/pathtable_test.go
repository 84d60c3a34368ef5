package datapath

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// find is path_at of bpf/include/path.h: the paths of a backend in the set that begins at a place.
func (t *pathTable) find(at uint32, id uint16) (backendPaths, bool) {
	place := at + uint32(id)
	own := t.entry(place)[0]
	if own.Owner == uint32(id) {
		return *t.entry(place), true
	}
	for steps := uint32(1); own.Away > 0 && steps < pathSteps; steps++ {
		if t.entry(place + steps)[0].Owner == steps<<16|uint32(id) {
			return *t.entry(place + steps), true
		}
	}
	return backendPaths{}, false
}

// pathTrial is a table beside what it has to hold.
type pathTrial struct {
	table  pathTable
	holds  map[uint32]map[uint16]uint8 // by service and id: a mark, in place of a path
	marked uint8
}

// change gives a service paths to other backends.
func (p *pathTrial) change(t *testing.T, service uint32, ids map[uint16]bool) bool {
	t.Helper()
	paths, marks := map[uint16]backendPaths{}, map[uint16]uint8{}
	for id := range ids {
		p.marked++
		marks[id] = p.marked
		paths[id] = backendPaths{{Length: p.marked}, {Length: p.marked}}
	}
	err := p.table.set(service, paths)
	if errors.Is(err, ErrNoRoom) {
		return false
	}
	must(t, err)
	p.table.came(service)
	p.holds[service] = marks
	return true
}

// check looks for each backend of each service, and for some that it does not have.
func (p *pathTrial) check(t *testing.T) {
	t.Helper()
	for service, marks := range p.holds {
		set := p.table.sets[service]
		for id := range uint16(300) {
			if set == nil {
				break
			}
			found, ok := p.table.find(set.at, id)
			if mark, has := marks[id]; id > 0 && (ok != has || found[1].Length != mark) {
				t.Fatalf("service %d: to backend %d %v %v, want %v %d", service, id, ok, found,
					has, mark)
			}
		}
		if set == nil && len(marks) > 0 {
			t.Fatalf("service %d has no paths", service)
		}
	}
}

// A table finds what services have, and nothing else, whatever their ids are and however they
// change; empty again, it is as it was.
func TestPathTable(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := pathTrial{newPathTable(make([]backendPaths, 64<<(seed%4))),
			map[uint32]map[uint16]uint8{}, 0}
		away, refused := 0, 0
		for range 200 {
			ids := map[uint16]bool{}
			for range random.IntN(20) {
				ids[uint16(1+random.IntN(299))] = true
			}
			if !p.change(t, uint32(random.IntN(6)), ids) {
				p.table.freeRetired()
				refused++
			}
			p.check(t)
			for _, set := range p.table.sets {
				for _, steps := range set.steps {
					away += int(min(steps, 1))
				}
			}
		}
		if seed%4 == 0 && (away == 0 || refused == 0) {
			t.Errorf("seed %d: %d paths away from their places, %d refused: too few to tell", seed,
				away, refused)
		}
		for service := range p.holds {
			must(t, p.table.set(service, nil))
			p.table.came(service)
		}
		p.table.freeRetired()
		if p.table.used != 0 || len(p.table.begins) != 0 || slices.ContainsFunc(p.table.array,
			func(b backendPaths) bool { return b != backendPaths{} }) {
			t.Fatalf("seed %d: an empty table has %d places: %v", seed, p.table.used, p.table)
		}
	}
}

// Backends in sequence are at their own places, as long as half of the table is free.
func TestPathTableOfSequences(t *testing.T) {
	p := pathTrial{newPathTable(make([]backendPaths, 1024)), map[uint32]map[uint16]uint8{}, 0}
	ids := map[uint16]bool{}
	for id := range uint16(64) {
		ids[100+id] = true
	}
	for service := range uint32(8) {
		if !p.change(t, service, ids) {
			t.Fatalf("service %d has no room", service)
		}
		for _, steps := range slices.Collect(maps.Values(p.table.sets[service].steps)) {
			if steps > 0 {
				t.Errorf("service %d: paths are %d places away", service, steps)
			}
		}
	}
	if p.change(t, 9, ids) {
		t.Error("more than half of the places are taken")
	}
}
