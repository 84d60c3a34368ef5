package datapath

import (
	"fmt"
	"math/bits"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
)

// MaxServices is how many services an edge can have, and one more: their numbers begin with 1.
// MaxHostServices is the same for a host.
const (
	MaxServices     = 1 << 16
	MaxHostServices = servicesMax
)

// maxCounters is how many counters of backends an edge has at most, and maxPathPlaces how many
// places for a backend's paths. Half of those can be taken.
const (
	maxCounters   = 1 << 20
	maxPathPlaces = 1 << 20
)

// tableSlack is what a block has for headers and the first chain, for each of two tables.
const tableSlack = 127

// Capacity is for how much an edge's program has room, as powers of two; the zero value is what the
// object is compiled with. Another capacity is another program: the tables are made anew beside
// those that forward, and counters are carried over.
type Capacity struct {
	Services int // numbers from 0 on
	Counters int // of services' backends
	Paths    int // places for those of services' backends
	Buckets  int // of the largest table
}

// CapacityFor is the least capacity for services with so many backends in all, each counted once
// per service, and so many of them with paths. It has steps, so that programs are seldom replaced
// because of it. Half of the counters stay free, as a backend whose place is taken looks for
// another one near by; of the places for paths three fourths, as those from before a change are
// there beside those of now.
func CapacityFor(services, backends, led int) Capacity {
	c := Capacity{Services: servicesMax, Counters: counters, Paths: pathPlaces}
	for c.Services <= services && c.Services < MaxServices {
		c.Services *= 4
	}
	for c.Counters < 2*backends && c.Counters < maxCounters {
		c.Counters *= 2
	}
	for c.Paths < 4*led && c.Paths < maxPathPlaces {
		c.Paths *= 2
	}
	return c
}

// CapacityForTable is the least capacity for a table of so many buckets. Smaller tables share the
// blocks that it needs, so that most edges have the least.
func CapacityForTable(buckets int) (c Capacity) {
	for c = c.orCompiled(); c.Buckets < buckets; {
		c.Buckets = 2*(c.Buckets+tableSlack) - tableSlack
	}
	return c
}

// block is how many chains are in a block: a pair of the largest table.
func (c Capacity) block() int { return 2 * (c.orCompiled().Buckets + tableSlack) }

// BlockBytes is what a block of chains takes of the kernel's memory.
func (c Capacity) BlockBytes() int { return c.block()*chainBytes + os.Getpagesize() }

// WithMorePaths is a capacity for twice the paths; false: there is none.
func (c Capacity) WithMorePaths() (Capacity, bool) {
	c = c.orCompiled()
	if c.Paths >= maxPathPlaces {
		return c, false
	}
	c.Paths *= 2
	return c, true
}

// AtLeast is the larger of two capacities, in each respect: what runs need not shrink.
func (c Capacity) AtLeast(other Capacity) Capacity {
	return Capacity{max(c.Services, other.Services), max(c.Counters, other.Counters),
		max(c.Paths, other.Paths), max(c.Buckets, other.Buckets)}
}

// KernelBytes is how much memory of the kernel the tables of the capacity take beyond those of the
// least one, on a machine of so many processors.
func (c Capacity) KernelBytes(cpus int) int {
	least := Capacity{}.orCompiled()
	c = c.orCompiled()
	perCPU := int(unsafe.Sizeof(serviceCounters{}) + unsafe.Sizeof(Openings{}))
	pointers := 2 * 8 // to the copies of per-CPU values
	service := pointers + int(unsafe.Sizeof(newConnections{})) + cpus*perCPU +
		4*int(hashEntryBytes+unsafe.Sizeof(serviceKey{})+(unsafe.Sizeof(service{})+7)&^7)
	block := 8 + cpus*int(unsafe.Sizeof(backendCounters{}))
	return (c.Services-least.Services)*service +
		(c.Counters-least.Counters)/int(countersBlock)*block +
		(c.Paths-least.Paths)*int(unsafe.Sizeof(backendPaths{}))
}

// hashEntryBytes is what the kernel keeps about an entry of a hash table (struct htab_elem), and
// about its bucket.
const hashEntryBytes = 64

func (c Capacity) orCompiled() Capacity {
	return c.AtLeast(Capacity{servicesMax, counters, pathPlaces, leastBlock/2 - tableSlack})
}

// perService are the edge's maps with entries for each service.
var perService = []string{"services", "service_traffic", "openings", "new_connections"}

// into sizes the maps of an edge's object.
func (c Capacity) into(spec *ebpf.CollectionSpec) error {
	c = c.orCompiled()
	if bits.OnesCount(uint(c.Counters)) != 1 {
		return fmt.Errorf("%d counters of backends are no power of two", c.Counters)
	}
	if bits.OnesCount(uint(c.Paths)) != 1 {
		return fmt.Errorf("%d places of paths are no power of two", c.Paths)
	}
	for _, name := range perService {
		m := spec.Maps[name]
		m.MaxEntries = m.MaxEntries / servicesMax * uint32(c.Services)
	}
	spec.Maps["tables"].InnerMap.MaxEntries = uint32(c.block())
	spec.Maps["backend_traffic"].MaxEntries = uint32(c.Counters) / countersBlock
	spec.Maps["paths"].MaxEntries = uint32(c.Paths * MaxServicePaths)
	if err := spec.Variables["paths_mask"].Set(uint32(c.Paths - 1)); err != nil {
		return err
	}
	return spec.Variables["counters_mask"].Set(uint32(c.Counters - 1))
}

// carryCounters copies the counters that an earlier program left, where this one's maps have
// another size. What is counted between the copy and the switch, some milliseconds, is lost.
func (e *Edge) carryCounters() error {
	for _, step := range []func() error{
		func() error { return carryEach[serviceCounters](e.collection, "service_traffic") },
		func() error { return carryEach[Openings](e.collection, "openings") },
		e.carryBackends,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("carry counters over from the program before: %w", err)
		}
	}
	return nil
}

// otherSize opens the pinned map of a name if it has another size than the collection's own; nil:
// it has not.
func (c *collection) otherSize(name string) *ebpf.Map {
	before := c.pinnedMap(name)
	if before == nil {
		return nil
	}
	now := c.maps[name]
	if now == nil || before.MaxEntries() == now.MaxEntries() ||
		before.ValueSize() != now.ValueSize() || before.Type() != now.Type() {
		before.Close()
		return nil
	}
	return before
}

// carryEach copies a per-CPU array, entry by entry, as far as both have it.
func carryEach[T any](c *collection, name string) error {
	before := c.otherSize(name)
	if before == nil {
		return nil
	}
	defer before.Close()
	values, err := allPerCPU[T](before)
	if err != nil {
		return err
	}
	cpus := ebpf.MustPossibleCPU()
	common := min(before.MaxEntries(), c.maps[name].MaxEntries())
	keys := make([]uint32, common)
	for i := range keys {
		keys[i] = uint32(i)
	}
	_, err = c.maps[name].BatchUpdate(keys, values[:int(common)*cpus], nil)
	return err
}

// carryBackends puts each counter of a backend where the larger or smaller table has its place. One
// that finds none is dropped from the list of backends; the sum of its service has it.
func (e *Edge) carryBackends() error {
	before := e.otherSize("backend_traffic")
	if before == nil {
		return nil
	}
	defer before.Close()
	blocks, err := allPerCPU[backendCounters](before)
	if err != nil {
		return err
	}
	cpus := ebpf.MustPossibleCPU()
	now := e.maps["backend_traffic"]
	tables := make([][]backendCounter, cpus)
	for cpu := range tables {
		tables[cpu] = make([]backendCounter, now.MaxEntries()*countersBlock)
	}
	for i, block := range blocks {
		for _, c := range block.Counters {
			if c.Owner != 0 {
				placeCounter(tables[i%cpus], c)
			}
		}
	}
	return putCounters(now, tables)
}

// placeCounter does what the program does when a backend's first packet comes.
func placeCounter(table []backendCounter, c backendCounter) {
	first := counterPlace(c.Owner>>16, uint16(c.Owner))
	for i := range uint32(counterProbes) {
		if at := &table[(first+i)%uint32(len(table))]; at.Owner == 0 {
			*at = c
			return
		}
	}
}

func putCounters(m *ebpf.Map, tables [][]backendCounter) error {
	keys := make([]uint32, m.MaxEntries())
	values := make([]backendCounters, 0, len(keys)*len(tables))
	for i := range keys {
		keys[i] = uint32(i)
		for _, table := range tables {
			values = append(values, backendCounters{
				[countersBlock]backendCounter(table[i*int(countersBlock):])})
		}
	}
	_, err := m.BatchUpdate(keys, values, nil)
	return err
}
