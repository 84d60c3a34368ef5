package datapath

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/doctor"
)

// StalePins lists what is pinned in a node's directory and does not fit this version of Sextant: tables of another shape, and
// programs with other instructions. To know the latter, it loads its own programs for a moment. No directory: no pins.
func StalePins(node string) ([]doctor.Pin, error) {
	var stale []doctor.Pin
	for role, load := range map[string]func() (*ebpf.CollectionSpec, error){
		"edge": loadEdge, "host": loadHost, "headend": loadSteer, "merge": loadMerge,
	} {
		dir := filepath.Join(node, role)
		pins, err := os.ReadDir(dir)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at pins: %w", err)
		}
		spec, err := load()
		if err != nil {
			return nil, err
		}
		tags, err := tagsOf(spec)
		if err != nil {
			return nil, err
		}
		for _, pin := range pins {
			path := filepath.Join(dir, pin.Name())
			if what := staleness(path, spec, tags); what != "" {
				stale = append(stale, doctor.Pin{Path: path, What: what})
			}
		}
	}
	return stale, nil
}

// tagsOf loads the programs of an object for a moment. Their settings are no part of a tag.
func tagsOf(spec *ebpf.CollectionSpec) (map[string]string, error) {
	fresh := spec.Copy()
	if tables := fresh.Maps["tables"]; tables != nil {
		tables.InnerMap = tableSpec(1)
	}
	loaded, err := ebpf.NewCollection(fresh)
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
func staleness(path string, spec *ebpf.CollectionSpec, tags map[string]string) string {
	name := filepath.Base(path)
	if strings.HasSuffix(name, freshSuffix) {
		return "it was left by an agent that was killed while it pinned"
	}
	if rest, isLink := strings.CutPrefix(name, linkPrefix); isLink {
		return staleLink(path, rest, tags)
	}
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return fmt.Sprintf("it can't be opened as a table: %v", err)
	}
	defer m.Close()
	known := spec.Maps[name]
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
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return "" // a filter on a kernel without links for its place
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return fmt.Sprintf("the link can't be read: %v", err)
	}
	p, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return fmt.Sprintf("its program can't be read: %v", err)
	}
	defer p.Close()
	if got, want := tagOf(p), tags[program]; got != want {
		return fmt.Sprintf("the program %s that runs has the tag %s, that of this version %s", program, got, want)
	}
	return ""
}
