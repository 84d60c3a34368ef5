package datapath

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// MaxPathSIDs is how many SIDs a path from the edge to a backend has at most, and
// MaxServicePaths how many paths there are to one.
const (
	MaxPathSIDs     = pathMaxSIDs
	MaxServicePaths = pathsMax
)

// servicePathSpec is the inner map of "paths": the paths to a service's backends, by their ids and
// the flow's choice.
func servicePathSpec(entries int) *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name:       "service_paths",
		Type:       ebpf.Array,
		KeySize:    4,
		ValueSize:  servicePathBytes,
		MaxEntries: uint32(entries),
		Flags:      unix.BPF_F_INNER_MAP,
	}
}

// SetPaths leads packets of the service of index to backends by paths: for the id of each backend
// one or two lists of the ids of the SIDs that are visited before it, which [Edge.SetSID] has
// named; of two, the flow's hash chooses. All change in one step. It is in force from the next
// [Edge.SetService] on; once that has announced paths, at once. Without any, packets take routing's
// own way. The configuration has to say that there are paths.
func (e *Edge) SetPaths(index uint32, paths map[uint16][][]uint16) error {
	had := e.paths[index]
	e.paths[index] = len(paths) > 0
	switch {
	case len(paths) == 0 && !had:
		return nil
	case e.found != nil:
		return fmt.Errorf("%w: paths are not compared", ErrDiffers)
	case len(paths) == 0:
		if err := e.maps["paths"].Delete(index); err != nil &&
			!errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("delete paths of service %d: %w", index, err)
		}
		return nil
	}
	ids := slices.Sorted(maps.Keys(paths))
	inner, err := ebpf.NewMap(servicePathSpec(MaxServicePaths * (int(ids[len(ids)-1]) + 1)))
	if err != nil {
		return fmt.Errorf("set paths of service %d: %w", index, err)
	}
	defer inner.Close()
	for _, id := range ids {
		if err := putPaths(inner, id, paths[id]); err != nil {
			return fmt.Errorf("set path of service %d to backend %#x: %w", index, id, err)
		}
	}
	if err := e.maps["paths"].Put(index, inner); err != nil {
		return fmt.Errorf("set paths of service %d: %w", index, err)
	}
	return nil
}

// putPaths sets all choices of a backend: one that has a single path has it for each.
func putPaths(inner *ebpf.Map, id uint16, paths [][]uint16) error {
	if len(paths) < 1 || len(paths) > MaxServicePaths {
		return fmt.Errorf("%d paths; there are 1 to %d", len(paths), MaxServicePaths)
	}
	for choice := range MaxServicePaths {
		entry, err := servicePathOf(paths[choice%len(paths)])
		entry.Paths = uint32(len(paths))
		if err == nil {
			err = inner.Put(uint32(MaxServicePaths*int(id)+choice), entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Copies are the packets of a service that go over both paths of backends that have two, to hosts
// that take the first copy (enum service_path_bits).
type Copies struct {
	All  bool
	SYN  bool // of TCP that open a connection
	Data bool // of TCP with payload
}

// bits are what the program reads of a service's paths.
func (c Copies) bits() uint8 {
	return uint8(truth(c.All)<<1 | truth(c.SYN)<<2 | truth(c.Data)<<3)
}

// SetCopies says which packets of the service of index go over two paths, from the next
// [Edge.SetService] on. The configuration has to say that there are copies.
func (e *Edge) SetCopies(index uint32, copies Copies) { e.copies[index] = copies }

// servicePathOf is a path as the program reads it.
func servicePathOf(sids []uint16) (entry servicePath, err error) {
	if len(sids) > MaxPathSIDs {
		return entry, fmt.Errorf("it has %d SIDs, and a path has %d at most", len(sids),
			MaxPathSIDs)
	}
	for i, id := range sids {
		entry.IDs[i] = bigEndian(id)
	}
	entry.Length = uint32(len(sids))
	return entry, nil
}
