package datapath

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/linux/facts"
)

// Pinned is something in a node's directory on the bpf file system.
type Pinned struct {
	Path string `json:"path"`
	// link, map; filter: a program in place of a link, where the kernel has none for TC
	Kind    string `json:"kind"`
	ID      uint32 `json:"id"`
	Type    string `json:"type"`
	Problem string `json:"problem,omitempty"` // why it can't be told

	// Links.
	Program   string `json:"program,omitempty"`
	ProgramID uint32 `json:"programId,omitempty"`
	Tag       string `json:"tag,omitempty"`
	Interface uint32 `json:"interfaceIndex,omitempty"`

	// Maps.
	KeySize    uint32 `json:"keyBytes,omitempty"`
	ValueSize  uint32 `json:"valueBytes,omitempty"`
	MaxEntries uint32 `json:"maxEntries,omitempty"`
	Memory     uint64 `json:"memoryBytes,omitempty"`
}

// DescribePins lists what is pinned for a node, without the content of the maps. No directory: no
// pins.
func DescribePins(node string) ([]Pinned, error) {
	list := []Pinned{}
	for _, role := range slices.Sorted(maps.Keys(objects)) {
		pins, err := os.ReadDir(filepath.Join(node, role))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("describe pins: %w", err)
		}
		for _, pin := range pins {
			p := Pinned{Path: filepath.Join(node, role, pin.Name())}
			if err := p.describe(strings.HasPrefix(pin.Name(), linkPrefix)); err != nil {
				p.Problem = err.Error()
			}
			list = append(list, p)
		}
	}
	return list, nil
}

// Programs lists the XDP programs that links pinned for a node attach to interfaces of this network
// namespace. No directory: none.
func Programs(node string) ([]facts.Program, error) {
	programs := []facts.Program{}
	for role := range objects {
		pins, err := filepath.Glob(filepath.Join(node, role, linkPrefix+"*"))
		if err != nil {
			return nil, fmt.Errorf("look for programs: %w", err)
		}
		for _, path := range pins {
			p := Pinned{Path: path}
			err := p.describe(true)
			if errors.Is(err, os.ErrNotExist) {
				continue // its agent has just taken it away
			}
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w; run as root", path, err)
			}
			device, err := net.InterfaceByIndex(int(p.Interface))
			if p.Kind == "link" && p.Type == ebpf.XDP.String() &&
				err == nil { // else the interface is gone
				programs = append(programs, facts.Program{Interface: device.Name, ID: p.ProgramID})
			}
		}
	}
	return programs, nil
}

func (p *Pinned) describe(isLink bool) error {
	if isLink {
		return p.describeLink()
	}
	p.Kind = "map"
	m, err := ebpf.LoadPinnedMap(p.Path, nil)
	if err != nil {
		return err
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return err
	}
	id, _ := info.ID()
	p.Memory, _ = info.Memlock()
	p.ID, p.Type, p.KeySize, p.ValueSize, p.MaxEntries = uint32(id), m.Type().String(), m.KeySize(),
		m.ValueSize(), m.MaxEntries()
	return nil
}

func (p *Pinned) describeLink() error {
	l, err := link.LoadPinnedLink(p.Path, nil)
	if err != nil {
		return p.describeFilter()
	}
	defer l.Close()
	p.Kind = "link"
	info, err := l.Info()
	if err != nil {
		return err
	}
	p.ID = uint32(info.ID)
	if xdp := info.XDP(); xdp != nil {
		p.Interface = xdp.Ifindex
	}
	if tcx := info.TCX(); tcx != nil {
		p.Interface = tcx.Ifindex
	}
	program, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return err
	}
	defer program.Close()
	return p.describeProgram(program)
}

func (p *Pinned) describeFilter() error {
	p.Kind = "filter"
	program, err := ebpf.LoadPinnedProgram(p.Path, nil)
	if err != nil {
		return err
	}
	defer program.Close()
	return p.describeProgram(program)
}

func (p *Pinned) describeProgram(program *ebpf.Program) error {
	details, err := program.Info()
	if err != nil {
		return err
	}
	id, _ := details.ID()
	p.Program, p.ProgramID, p.Tag, p.Type = details.Name, uint32(id), details.Tag,
		program.Type().String()
	return nil
}
