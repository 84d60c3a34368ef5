package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"sextant/datapath"
)

// memory is what a node holds.
type memory struct {
	Agent    uint64         `json:"agent"`    // bytes resident
	Files    int            `json:"files"`    // that the agent has open
	Maps     uint64         `json:"maps"`     // bytes of kernel memory
	Objects  int            `json:"objects"`  // programs and maps
	Pins     int            `json:"pins"`     // maps and links on the bpf file system
	Entries  map[string]int `json:"entries"`  // of tables that can grow
	Capacity map[string]int `json:"capacity"` // of the same
}

// memory reads it, and notes the kernel objects.
func (n *node) memory(ctx context.Context) (m memory, err error) {
	pid := n.pid()
	if m.Agent, err = resident(pid); err != nil {
		return m, fmt.Errorf("node %s: %w", n.Name, err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return m, fmt.Errorf("node %s: count what the agent has open: %w", n.Name, err)
	}
	objects, err := n.objects()
	if err != nil {
		return m, err
	}
	m.Files, m.Maps, m.Objects = len(files), objects.MapBytes,
		len(objects.Programs)+len(objects.Maps)
	pins, err := os.ReadDir(n.pins())
	if err != nil {
		return m, fmt.Errorf("node %s: count the pins: %w", n.Name, err)
	}
	m.Pins = len(pins)
	tables, err := n.agent.Maps(ctx)
	if err != nil {
		return m, fmt.Errorf("node %s: %w", n.Name, err)
	}
	m.Entries, m.Capacity = map[string]int{}, map[string]int{}
	for _, t := range tables {
		if t.Entries != nil {
			m.Entries[t.Name], m.Capacity[t.Name] = *t.Entries, t.Capacity
		}
		if t.Entries != nil && *t.Entries > t.Capacity {
			return m, fmt.Errorf("node %s: the table %s has %d entries, and room for %d", n.Name,
				t.Name, *t.Entries, t.Capacity)
		}
	}
	return m, nil
}

// resident reads how much of a process is in memory, in bytes.
func resident(pid int) (uint64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, fmt.Errorf("read the agent's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10,
				64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("read the agent's memory: process %d has ended", pid)
}

// objects are those of what runs, and those that the agent holds besides: a spare table of each
// service, say.
func (n *node) objects() (o datapath.Objects, err error) {
	running, err := n.running()
	if err != nil {
		return o, err
	}
	defer running.Close()
	if o, err = running.Objects(); err != nil {
		return o, err
	}
	held := heldBy(n.pid())
	for _, id := range held.Maps {
		if !slices.Contains(o.Maps, id) {
			o.Maps = append(o.Maps, id)
		}
	}
	for _, id := range held.Programs {
		if !slices.Contains(o.Programs, id) {
			o.Programs = append(o.Programs, id)
		}
	}
	for _, id := range o.Programs {
		n.seen.programs[id] = true
	}
	for _, id := range o.Maps {
		n.seen.maps[id] = true
	}
	return o, nil
}

// heldBy lists the kernel objects that a process has open.
func heldBy(pid int) (o datapath.Objects) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // files come and go
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			id, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			switch {
			case id == 0:
			case name == "map_id":
				o.Maps = append(o.Maps, ebpf.MapID(id))
			case name == "prog_id":
				o.Programs = append(o.Programs, ebpf.ProgramID(id))
			}
		}
	}
	return o
}

// reclaim is how long the kernel may take to free what nobody has any more.
const reclaim = 10 * time.Second

// leaked are kernel objects that the node had, has no more, and that are still there.
func (n *node) leaked() (left datapath.Objects, had int, err error) {
	for deadline := time.Now().Add(reclaim); ; time.Sleep(100 * time.Millisecond) {
		now, err := n.objects()
		if err != nil {
			return left, 0, err
		}
		var gone datapath.Objects
		for id := range n.seen.programs {
			if !slices.Contains(now.Programs, id) {
				gone.Programs = append(gone.Programs, id)
			}
		}
		for id := range n.seen.maps {
			if !slices.Contains(now.Maps, id) {
				gone.Maps = append(gone.Maps, id)
			}
		}
		left, had = gone.Left(), len(n.seen.programs)+len(n.seen.maps)
		if len(left.Programs)+len(left.Maps) == 0 || time.Now().After(deadline) {
			return left, had, nil
		}
	}
}
