package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// collection is one object in the kernel: its programs, and its maps shared between all copies of a
// program.
type collection struct {
	dir      string // under the bpffs; where maps and links are pinned
	object   func() (*ebpf.CollectionSpec, error)
	maps     map[string]*ebpf.Map
	programs []*ebpf.Program
	places   []place               // where programs were put
	attached map[string]Attachment // to these, by the link's file name
	links    map[string]link.Link  // held open, likewise
	// numbers of the plain programs, by those that capture in their place
	standIns map[ebpf.ProgramID]ebpf.ProgramID
	source   source
	loads    []loaded  // what is noted of them
	loaded   *ebpf.Map // has it; nil: nothing is noted
	takes    bool      // takes over what runs, instead of loading
	// keys of entries that are wanted, by table, while tables are compared; nil: they are written
	found map[string]map[string]bool
}

// freshSuffix marks a pin that is about to replace another.
const freshSuffix = "~"

// newCollection prepares the pin directory for what is loaded from an object.
func newCollection(dir string, object func() (*ebpf.CollectionSpec, error)) (*collection, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create pin directory %s: %w; is a bpf file system mounted there "+
			"(mount -t bpf bpf /sys/fs/bpf)?", dir, err)
	}
	return &collection{
		dir: dir, object: object, maps: map[string]*ebpf.Map{}, attached: map[string]Attachment{},
		links: map[string]link.Link{},
	}, nil
}

// load puts spec into the kernel and returns its programs by name. Maps named in keep are taken
// over from the pin directory if they are there and of the same shape; maps that an earlier load of
// this collection made are shared.
func (c *collection) load(spec *ebpf.CollectionSpec,
	keep ...string) (map[string]*ebpf.Program, error) {
	if c.takes {
		return c.take(spec)
	}
	opts := ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{}}
	for name, m := range c.maps {
		if spec.Maps[name] != nil {
			opts.MapReplacements[name] = m
		}
	}
	for _, name := range keep {
		if m := c.pinned(spec.Maps[name], name); m != nil && opts.MapReplacements[name] == nil {
			opts.MapReplacements[name] = m
			defer m.Close()
		}
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, opts)
	if err != nil {
		return nil, explainLoad(err)
	}
	defer coll.Close()
	for name := range coll.Maps {
		if c.maps[name] == nil && !isConstant(name) {
			c.maps[name] = coll.DetachMap(name)
		}
	}
	programs := map[string]*ebpf.Program{}
	for name := range coll.Programs {
		programs[name] = coll.DetachProgram(name)
		c.programs = append(c.programs, programs[name])
	}
	if c.source.object != nil {
		err = c.note(spec, programs)
	}
	return programs, err
}

// isConstant tells the maps behind C constants, of which each copy of a program has its own.
func isConstant(name string) bool { return filepath.Ext(name) != "" && !isVariable(name) }

// isVariable tells the maps behind C variables that user space writes, each in a section of its
// own. The next agent loads its own: they are not pinned.
func isVariable(name string) bool { return strings.HasPrefix(name, ".data.") }

// pinned opens a map pinned by an earlier agent, nil if there is none that fits.
func (c *collection) pinned(spec *ebpf.MapSpec, name string) *ebpf.Map {
	m := c.pinnedMap(name)
	if m != nil && spec.Compatible(m) != nil {
		m.Close()
		return nil
	}
	return m
}

// pinnedMap opens a map pinned by an earlier agent, nil if there is none.
func (c *collection) pinnedMap(name string) *ebpf.Map {
	m, err := ebpf.LoadPinnedMap(filepath.Join(c.dir, name), nil)
	if err != nil {
		return nil
	}
	return m
}

// pin makes the maps visible in the directory, each replacing its predecessor in one step.
func (c *collection) pin() error {
	for name, m := range c.maps {
		if isVariable(name) {
			continue
		}
		if err := c.pinMap(name, m); err != nil {
			return err
		}
	}
	if c.loaded == nil {
		return nil
	}
	return c.pinMap(loadedPin, c.loaded) // behind all that it is about
}

func (c *collection) pinMap(name string, m *ebpf.Map) error {
	final := filepath.Join(c.dir, name)
	fresh := final + freshSuffix
	os.Remove(fresh)
	clone, err := m.Clone()
	if err != nil {
		return fmt.Errorf("pin map %s: %w", name, err)
	}
	err = clone.Pin(fresh)
	clone.Close()
	if err == nil {
		err = os.Rename(fresh, final)
	}
	if err != nil {
		return fmt.Errorf("pin map %s at %s: %w", name, final, err)
	}
	return nil
}

// Close releases the kernel objects; what is attached or pinned works on.
func (c *collection) Close() { c.close() }

// close forgets the kernel objects; what is attached or pinned stays.
func (c *collection) close() {
	for _, p := range c.programs {
		p.Close()
	}
	for _, m := range c.maps {
		m.Close()
	}
	if c.loaded != nil {
		c.loaded.Close()
	}
	for _, l := range c.links {
		l.Close()
	}
	c.programs, c.maps, c.links = nil, nil, nil
}

// explainLoad turns the kernel's refusal into what would mend it.
func explainLoad(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("load eBPF program: %w; it needs root, or CAP_BPF, CAP_NET_ADMIN and "+
			"CAP_PERFMON", err)
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("load eBPF program: %w; Linux 6.1 or newer with BTF "+
			"(CONFIG_DEBUG_INFO_BTF) is needed", err)
	case errors.As(err, &verifier):
		return fmt.Errorf("load eBPF program: the kernel refuses it: %w", err)
	}
	return fmt.Errorf("load eBPF program: %w", err)
}

// VerifierLog is all that the kernel's verifier said of a program that it refused; "" if err is no
// such refusal. The error itself has the last lines only.
func VerifierLog(err error) string {
	var verifier *ebpf.VerifierError
	if !errors.As(err, &verifier) {
		return ""
	}
	return strings.Join(verifier.Log, "\n")
}

// MapUse is how full a map is.
type MapUse struct {
	Name     string
	Type     string
	Entries  int // -1: not counted (arrays are always full)
	Capacity int
}

// Maps lists the collection's maps by name.
func (c *collection) Maps() []MapUse {
	var uses []MapUse
	for name, m := range c.maps {
		use := MapUse{Name: name, Type: m.Type().String(), Entries: -1,
			Capacity: int(m.MaxEntries())}
		if m.Type() == ebpf.Hash || m.Type() == ebpf.LRUHash || m.Type() == ebpf.DevMapHash {
			use.Entries = countKeys(m)
		}
		uses = append(uses, use)
	}
	slices.SortFunc(uses, func(a, b MapUse) int { return strings.Compare(a.Name, b.Name) })
	return uses
}

func countKeys(m *ebpf.Map) int {
	n := 0
	for key, err := m.NextKeyBytes(nil); err == nil && key != nil; key, err = m.NextKeyBytes(key) {
		n++
	}
	return n
}
