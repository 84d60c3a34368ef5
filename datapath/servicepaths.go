package datapath

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// MaxPathSIDs is how many SIDs a path from the edge to a backend has at most, and
// MaxServicePaths how many paths there are to one.
const (
	MaxPathSIDs     = pathMaxSIDs
	MaxServicePaths = pathsMax
)

// hasPaths is SERVICE_PATHS of enum service_path_bits.
const hasPaths = 1

// mapPaths makes the array of paths writable in memory.
func (e *Edge) mapPaths() error {
	array := e.maps["paths"]
	size := int(array.MaxEntries()) * int(unsafe.Sizeof(servicePath{}))
	memory, err := unix.Mmap(array.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d paths into memory: %w", array.MaxEntries(), err)
	}
	e.paths = newPathTable(unsafe.Slice((*backendPaths)(unsafe.Pointer(&memory[0])),
		array.MaxEntries()/MaxServicePaths))
	return nil
}

func (e *Edge) unmapPaths() {
	if array := e.paths.array; len(array) > 0 {
		_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(&array[0])),
			len(array)*int(unsafe.Sizeof(array[0]))))
	}
	e.paths = pathTable{}
}

// SetPaths leads packets of the service of index to backends by paths: for the id of each backend
// one or two lists of the ids of the SIDs that are visited before it, which [Edge.SetSID] has
// named; of two, the flow's hash chooses. [Edge.SetService] brings them into force, all in one
// step. Without any, packets take routing's own way. The configuration has to say that there are
// paths. ErrNoRoom: nothing has changed, and a program of a larger capacity is needed.
func (e *Edge) SetPaths(index uint32, paths map[uint16][][]uint16) error {
	if len(paths) == 0 && e.paths.coming(index) == nil {
		return nil
	}
	if e.found != nil {
		return fmt.Errorf("%w: paths are not compared", ErrDiffers)
	}
	all := map[uint16]backendPaths{}
	for id, lists := range paths {
		var err error
		if all[id], err = backendPathsOf(lists); err != nil {
			return fmt.Errorf("set path of service %d to backend %#x: %w", index, id, err)
		}
	}
	err := e.paths.set(index, all)
	if errors.Is(err, ErrNoRoom) && len(e.paths.retired) > 0 {
		if err = e.forgetPaths(); err == nil {
			err = e.paths.set(index, all)
		}
	}
	if err != nil {
		return fmt.Errorf("set paths of service %d: %w", index, err)
	}
	return nil
}

// forgetPaths frees what services named before, when no packet is under way that takes it.
func (e *Edge) forgetPaths() error {
	if err := e.await(awaitPackets); err != nil {
		return err
	}
	e.paths.freeRetired()
	return nil
}

// backendPathsOf are all choices of a backend: one that has a single path has it for each.
func backendPathsOf(lists [][]uint16) (paths backendPaths, err error) {
	if len(lists) < 1 || len(lists) > MaxServicePaths {
		return paths, fmt.Errorf("%d paths; there are 1 to %d", len(lists), MaxServicePaths)
	}
	for choice := range paths {
		path, err := servicePathOf(lists[choice%len(lists)])
		if err != nil {
			return paths, err
		}
		path.Paths = uint8(len(lists))
		paths[choice] = path
	}
	return paths, nil
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
	entry.Length = uint8(len(sids))
	return entry, nil
}
