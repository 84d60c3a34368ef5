package datapath

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// ErrNoRoom says that the array of paths is too small for one more set.
var ErrNoRoom = errors.New("there is no room for more paths")

// pathTries is how many beginnings are looked at for a set whose places are all free.
const pathTries = 4096

// backendPaths are those of a place.
type backendPaths [pathsMax]servicePath

// pathTable says what lies where in the array of all services' paths (bpf/include/path.h).
type pathTable struct {
	array   []backendPaths      // as the program sees it
	sets    map[uint32]*pathSet // by the service's index: those that packets may take
	next    map[uint32]*pathSet // likewise: those that the service's entry is to name
	retired []*pathSet          // that packets under way may still take
	begins  map[uint32]bool     // places where a set begins
	used    int                 // places
	behind  uint32              // the set that was placed last
}

// pathSet are the paths of a service.
type pathSet struct {
	at    uint32            // where they begin
	steps map[uint16]uint32 // by the backend's id: how far its paths are away from their place
}

func newPathTable(array []backendPaths) pathTable {
	return pathTable{array: array, sets: map[uint32]*pathSet{}, next: map[uint32]*pathSet{},
		begins: map[uint32]bool{}}
}

// coming is the set that the entry of a service is to name; nil: it has none.
func (t *pathTable) coming(service uint32) *pathSet {
	if next, changes := t.next[service]; changes {
		return next
	}
	return t.sets[service]
}

// came notes that the entry of a service names its coming set. What it named before can be
// overwritten as soon as no packet is under way.
func (t *pathTable) came(service uint32) {
	next, changes := t.next[service]
	if !changes {
		return
	}
	t.retire(t.sets[service])
	delete(t.next, service)
	if t.sets[service] = next; next == nil {
		delete(t.sets, service)
	}
}

func (t *pathTable) retire(s *pathSet) {
	if s != nil {
		t.retired = append(t.retired, s)
	}
}

// set prepares the paths of a service, nil: none; came brings them into force.
func (t *pathTable) set(service uint32, paths map[uint16]backendPaths) error {
	var next *pathSet
	if len(paths) > 0 {
		var err error
		if next, err = t.place(slices.Sorted(maps.Keys(paths))); err != nil {
			return err
		}
		for id, steps := range next.steps {
			t.write(next.at, id, steps, paths[id])
		}
	}
	if before := t.next[service]; before != nil { // which no entry has named
		t.free(before)
	}
	t.next[service] = next
	return nil
}

func (t *pathTable) entry(place uint32) *backendPaths {
	return &t.array[place&uint32(len(t.array)-1)]
}

func (t *pathTable) isFree(place uint32) bool { return t.entry(place)[0].Owner == 0 }

// write puts down a backend's paths. That others are away from this place stays.
func (t *pathTable) write(at uint32, id uint16, steps uint32, paths backendPaths) {
	entry := t.entry(at + uint32(id) + steps)
	for i := range entry {
		away := entry[i].Away
		entry[i] = paths[i]
		entry[i].Owner, entry[i].Away = steps<<16|uint32(id), away
	}
}

// place finds places for a set of ids, in ascending order, and takes them.
func (t *pathTable) place(ids []uint16) (*pathSet, error) {
	if t.used+len(ids) > len(t.array)/2 {
		return nil, fmt.Errorf("%w: %d backends beside %d, of %d", ErrNoRoom, len(ids), t.used,
			len(t.array)/2)
	}
	first := t.behind - uint32(ids[0])
	least, best := len(ids)+1, first
	for try := uint32(0); try < min(pathTries, uint32(len(t.array))) && least > 0; try++ {
		at := (first + try) & uint32(len(t.array)-1)
		if t.begins[at] {
			continue
		}
		if taken := t.taken(at, ids, least); taken < least {
			least, best = taken, at
		}
	}
	s := &pathSet{at: best, steps: map[uint16]uint32{}}
	t.begins[best] = true
	for _, id := range ids {
		if !t.take(s, id) {
			t.free(s)
			return nil, fmt.Errorf("%w near those of others", ErrNoRoom)
		}
	}
	t.behind = best + uint32(ids[len(ids)-1]) + 1
	return s, nil
}

// taken counts the ids of a set whose places would be others', up to a number.
func (t *pathTable) taken(at uint32, ids []uint16, most int) (n int) {
	for _, id := range ids {
		if !t.isFree(at + uint32(id)) {
			if n++; n == most {
				break
			}
		}
	}
	return n
}

// take gives an id of a set the nearest free place behind its own.
func (t *pathTable) take(s *pathSet, id uint16) bool {
	own := s.at + uint32(id)
	for steps := range uint32(pathSteps) {
		if !t.isFree(own + steps) {
			continue
		}
		s.steps[id] = steps
		t.used++
		t.write(s.at, id, steps, backendPaths{})
		if steps > 0 {
			t.addAway(own, 1)
		}
		return true
	}
	return false
}

func (t *pathTable) addAway(place uint32, n uint16) {
	for i := range t.entry(place) {
		t.entry(place)[i].Away += n
	}
}

// free gives the places of a set back, of which no packet is under way.
func (t *pathTable) free(s *pathSet) {
	for id, steps := range s.steps {
		own := s.at + uint32(id)
		for i := range t.entry(own + steps) {
			entry := &t.entry(own + steps)[i]
			*entry = servicePath{Away: entry.Away}
		}
		if steps > 0 {
			t.addAway(own, ^uint16(0))
		}
		t.used--
	}
	delete(t.begins, s.at)
}

// freeRetired is called when no packet is under way that began before the last set came.
func (t *pathTable) freeRetired() {
	for _, s := range t.retired {
		t.free(s)
	}
	t.retired = nil
}

// pathKey names a path.
type pathKey struct {
	service uint32
	backend uint16
	choice  int
}

// all are the paths that packets may take, in the order of services and backends.
func (t *pathTable) all() iter.Seq2[pathKey, servicePath] {
	return func(yield func(pathKey, servicePath) bool) {
		for _, service := range slices.Sorted(maps.Keys(t.sets)) {
			s := t.sets[service]
			for _, id := range slices.Sorted(maps.Keys(s.steps)) {
				for choice, path := range t.entry(s.at + uint32(id) + s.steps[id]) {
					if !yield(pathKey{service, id, choice}, path) {
						return
					}
				}
			}
		}
	}
}
