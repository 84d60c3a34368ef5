package datapath

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
)

// An agent that starts with the programs, constants and tables that run already takes them over
// instead of loading the same once more. What was loaded is written down in a map that is pinned
// with the others, and goes with them; what the kernel says of programs and maps has to be that.

// loadedPin is the file name of that map.
const loadedPin = "loaded"

// loadedBytes is the room in it.
const loadedBytes = 1 << 14

// loaded is what one load put into the kernel: numbers are never given twice while it runs.
type loaded struct {
	Print    string                   `json:"print"` // of what was loaded
	Programs map[string]loadedProgram `json:"programs"`
	Maps     map[string]ebpf.MapID    `json:"maps"`
}

type loadedProgram struct {
	ID   ebpf.ProgramID `json:"id"`
	Tag  string         `json:"tag"`
	Maps []ebpf.MapID   `json:"maps"` // all that it uses, ascending
}

// ErrDiffers says that what runs is not what is wanted.
var ErrDiffers = errors.New("what runs differs from what is wanted")

// source is what a collection is loaded from.
type source struct {
	object []byte // nil: nothing is noted of it, or taken over
	places string // to which it is attached
}

// print digests an object with its settings.
func (s source) print(spec *ebpf.CollectionSpec) string {
	digest := sha256.New()
	fmt.Fprintf(digest, "%d octets for %s\n", len(s.object), s.places)
	digest.Write(s.object)
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		fmt.Fprintf(digest, "program %s\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		m := spec.Maps[name]
		fmt.Fprintf(digest, "map %s %v %d %d %d %d\n", name, m.Type, m.KeySize, m.ValueSize,
			m.MaxEntries, m.Flags)
		if inner := m.InnerMap; inner != nil {
			fmt.Fprintf(digest, "of maps %d %d\n", inner.MaxEntries, inner.Flags)
		}
		for _, kv := range m.Contents {
			fmt.Fprintf(digest, "%v %x\n", kv.Key, kv.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Variables)) {
		fmt.Fprintf(digest, "variable %s %x\n", name, spec.Variables[name].Value)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// note writes down what was loaded.
func (c *collection) note(spec *ebpf.CollectionSpec, programs map[string]*ebpf.Program) error {
	l := loaded{Print: c.source.print(spec), Programs: map[string]loadedProgram{},
		Maps: map[string]ebpf.MapID{}}
	for name, p := range programs {
		is, err := loadedOf(p)
		if err != nil {
			return fmt.Errorf("note program %s: %w", name, err)
		}
		l.Programs[name] = is
	}
	for name, m := range c.maps {
		id, err := mapID(m)
		if err != nil {
			return fmt.Errorf("note map %s: %w", name, err)
		}
		l.Maps[name] = id
	}
	c.loads = append(c.loads, l)
	text, err := json.Marshal(c.loads)
	if err != nil || len(text) > loadedBytes {
		return err // the next agent loads anew
	}
	if c.loaded == nil {
		if c.loaded, err = ebpf.NewMap(&ebpf.MapSpec{Name: loadedPin, Type: ebpf.Array, KeySize: 4,
			ValueSize: loadedBytes, MaxEntries: 1}); err != nil {
			return fmt.Errorf("note what is loaded: %w", err)
		}
	}
	return c.loaded.Put(uint32(0), append(text, make([]byte, loadedBytes-len(text))...))
}

func loadedOf(p *ebpf.Program) (loadedProgram, error) {
	info, err := p.Info()
	if err != nil {
		return loadedProgram{}, err
	}
	id, ok := info.ID()
	used, known := info.MapIDs()
	if !ok || !known {
		return loadedProgram{}, errors.New("the kernel does not tell its number and its maps")
	}
	slices.Sort(used)
	return loadedProgram{id, info.Tag, used}, nil
}

func mapID(m *ebpf.Map) (ebpf.MapID, error) {
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	id, _ := info.ID()
	return id, nil
}

// readLoads reads what an earlier agent wrote down; nil: nothing that can be read.
func (c *collection) readLoads() (loads []loaded) {
	c.loaded = c.pinnedMap(loadedPin)
	if c.loaded == nil {
		return nil
	}
	var text []byte
	if text, _ = c.loaded.LookupBytes(uint32(0)); json.Unmarshal(bytes.TrimRight(text, "\x00"),
		&loads) != nil {
		return nil
	}
	return loads
}

// take takes over what was loaded from the same object with the same settings, if the kernel still
// has it as it was. ErrDiffers: it is to be loaded anew.
func (c *collection) take(spec *ebpf.CollectionSpec) (map[string]*ebpf.Program, error) {
	print := c.source.print(spec)
	i := slices.IndexFunc(c.loads, func(l loaded) bool { return l.Print == print })
	if i < 0 {
		return nil, ErrDiffers
	}
	for name, shape := range spec.Maps {
		if isConstant(name) {
			continue
		}
		if err := c.takeMap(name, shape, c.loads[i].Maps[name]); err != nil {
			return nil, err
		}
	}
	programs := map[string]*ebpf.Program{}
	for name, was := range c.loads[i].Programs {
		p, err := ebpf.NewProgramFromID(was.ID)
		if err != nil {
			return nil, ErrDiffers
		}
		c.programs = append(c.programs, p)
		is, err := loadedOf(p)
		if err != nil || is.Tag != was.Tag || !slices.Equal(is.Maps, was.Maps) ||
			spec.Programs[name] == nil || p.Type() != spec.Programs[name].Type {
			return nil, ErrDiffers
		}
		programs[name] = p
	}
	if len(programs) != len(spec.Programs) {
		return nil, ErrDiffers
	}
	return programs, nil
}

// takeMap takes over the pinned map of a name, which has to be the one of that number.
func (c *collection) takeMap(name string, shape *ebpf.MapSpec, id ebpf.MapID) error {
	if c.maps[name] != nil {
		return nil // another load of this collection has
	}
	m := c.pinned(shape, name)
	if m == nil {
		return ErrDiffers
	}
	c.maps[name] = m
	if is, err := mapID(m); err != nil || is != id {
		return ErrDiffers
	}
	return nil
}

// takeOver makes the collection one of what runs already: what would be loaded is taken, and what
// would be written to tables is compared with what they have, until confirm.
func (c *collection) takeOver() {
	c.takes, c.loads = true, c.readLoads()
	c.found = map[string]map[string]bool{}
}

// putEntry writes an entry of a table. Of tables that are taken over it sees that the entry is
// there.
func (c *collection) putEntry(name string, key, value any) error {
	if c.found == nil {
		return c.maps[name].Put(key, value)
	}
	wanted, err := binary.Append(nil, binary.NativeEndian, value)
	if err != nil {
		return err
	}
	is, err := c.maps[name].LookupBytes(key)
	if err != nil || !bytes.HasPrefix(is, wanted) { // what follows is the program's
		return errors.Join(ErrDiffers, err)
	}
	return c.find(name, key)
}

// find notes that an entry is wanted.
func (c *collection) find(name string, key any) error {
	octets, err := binary.Append(nil, binary.NativeEndian, key)
	if err != nil {
		return err
	}
	if c.found[name] == nil {
		c.found[name] = map[string]bool{}
	}
	c.found[name][string(octets)] = true
	return nil
}

// putAll is replace for a table of the collection.
func putAll[K, V comparable](c *collection, name string, before, after map[K]V) error {
	if c.found == nil {
		return replace(c.maps[name], before, after)
	}
	for key, value := range after {
		if err := c.putEntry(name, key, value); err != nil {
			return err
		}
	}
	return nil
}

// confirm ends the comparison of tables that are taken over: those of the given names must have no
// entries but the wanted ones, all of which were found.
func (c *collection) confirm(names ...string) error {
	found := c.found
	c.takes, c.found = false, nil
	for _, name := range names {
		entries, err := countEntries(c.maps[name])
		if err != nil {
			return fmt.Errorf("count the entries of %s: %w", name, err)
		}
		if entries != len(found[name]) {
			return fmt.Errorf("%w: table %s has %d entries in place of %d", ErrDiffers, name,
				entries, len(found[name]))
		}
	}
	return nil
}

// countEntries counts those of a hash table, or of an array of tables.
func countEntries(m *ebpf.Map) (n int, err error) {
	if m.Type() == ebpf.ArrayOfMaps {
		err = eachBatch(m, func(keys []uint32, _ []uint32) error {
			n += len(keys)
			return nil
		})
		return n, err
	}
	var key any // nil: before the first
	for {
		next, err := m.NextKeyBytes(key)
		if next == nil || err != nil {
			return n, err
		}
		key = next
		n++
	}
}
