package datapath

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/linux/facts"
)

// objects are what is loaded for each role of a node, in whose directory it is pinned.
var objects = map[string][]func() (*ebpf.CollectionSpec, error){}

// objectsOf notes what is loaded for a role. Each role's file says so when the program begins.
func objectsOf(role string, load ...func() (*ebpf.CollectionSpec, error)) bool {
	objects[role] = load
	return true
}

// StalePins lists what is pinned in a node's directory and does not fit this version of Sextant:
// tables of another shape, and programs with other instructions. To know the latter, it loads its
// own programs for a moment. No directory: no pins.
func StalePins(node string) ([]facts.Pin, error) {
	var stale []facts.Pin
	for role, loaders := range objects {
		dir := filepath.Join(node, role)
		pins, err := os.ReadDir(dir)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at pins: %w", err)
		}
		now, err := versionOf(loaders)
		if err != nil {
			return nil, err
		}
		for _, pin := range pins {
			path := filepath.Join(dir, pin.Name())
			if what := now.staleness(path); what != "" {
				stale = append(stale, facts.Pin{Path: path, What: what})
			}
		}
	}
	return stale, nil
}

// roleVersion is what this version of Sextant pins for a role.
type roleVersion struct {
	maps map[string]*ebpf.MapSpec
	tags map[string]string // of its programs, by name
}

func versionOf(loaders []func() (*ebpf.CollectionSpec, error)) (roleVersion, error) {
	v := roleVersion{map[string]*ebpf.MapSpec{}, map[string]string{}}
	for _, load := range loaders {
		spec, err := load()
		if err != nil {
			return v, err
		}
		tags, err := tagsOf(spec)
		if err != nil {
			return v, err
		}
		maps.Copy(v.maps, spec.Maps)
		maps.Copy(v.tags, tags)
	}
	return v, nil
}

// tagsOf loads the programs of an object for a moment. Their settings are no part of a tag.
func tagsOf(spec *ebpf.CollectionSpec) (map[string]string, error) {
	loaded, err := ebpf.NewCollection(spec.Copy())
	if err != nil {
		return nil, explainLoad(err)
	}
	defer loaded.Close()
	tags := map[string]string{}
	for name, program := range loaded.Programs {
		tags[name] = tagOf(program)
	}
	return tags, nil
}

// staleness says how a pin differs from what this version pins; "" if it does not.
func (v roleVersion) staleness(path string) string {
	name := filepath.Base(path)
	if strings.HasSuffix(name, freshSuffix) {
		return "it was left by an agent that was killed while it pinned"
	}
	if rest, isLink := strings.CutPrefix(name, linkPrefix); isLink {
		return staleLink(path, rest, v.tags)
	}
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return fmt.Sprintf("it can't be opened as a table: %v", err)
	}
	defer m.Close()
	known := v.maps[name]
	if name == loadedPin {
		return "" // what it says is compared with the kernel's word
	}
	if known == nil {
		return "this version has no table " + name
	}
	if known = known.Copy(); sizedBySettings[name] {
		known.MaxEntries = m.MaxEntries()
	}
	if known.Compatible(m) != nil {
		return "the table " + name + " has another shape in this version"
	}
	return ""
}

// sizedBySettings are the tables whose size follows from the configuration.
var sizedBySettings = map[string]bool{"hmac_known": true, "flows": true, "captured": true}

// staleLink compares the program behind a pinned link, whose file name begins with the program's.
func staleLink(path, name string, tags map[string]string) string {
	program := name
	for _, hook := range []string{xdpHook, leaving.name, arriving.name} {
		program, _, _ = strings.Cut(program, hook)
	}
	p, err := pinnedProgram(path)
	if err != nil {
		return fmt.Sprintf("its program can't be read: %v", err)
	}
	defer p.Close()
	if got, want := tagOf(p), tags[program]; got != want {
		return fmt.Sprintf("the program %s that runs has the tag %s, that of this version %s",
			program, got, want)
	}
	return ""
}

// pinnedProgram is the one behind a pinned link; or the one that is pinned in its place, on a
// kernel without links for where it runs.
func pinnedProgram(path string) (*ebpf.Program, error) {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return ebpf.LoadPinnedProgram(path, nil)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return nil, err
	}
	return ebpf.NewProgramFromID(info.Program)
}
