package datapath

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sextant/linux"
)

// Snapshot is what an instance has in the kernel at one moment, from any process, held so that
// it can be brought back.
type Snapshot struct {
	// the pinned maps, and the programs behind the links
	collection
	attach map[string]func(path string) error // again, by the link's file name
	xdp    map[int]*ebpf.Program              // by the index of the interface
}

// TakeSnapshot holds what is pinned in the instance's directory; nothing, if that does not exist.
func TakeSnapshot(dir string) (*Snapshot, error) {
	s := &Snapshot{
		collection: collection{dir: dir, maps: map[string]*ebpf.Map{}},
		attach:     map[string]func(string) error{}, xdp: map[int]*ebpf.Program{},
	}
	pins, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look at what runs: %w", err)
	}
	for _, pin := range pins {
		if err := s.hold(pin.Name()); err != nil {
			s.Close()
			return nil, fmt.Errorf("look at what runs: open %s: %w; sextant unload removes it",
				filepath.Join(dir, pin.Name()), err)
		}
	}
	return s, nil
}

func (s *Snapshot) hold(name string) error {
	path := filepath.Join(s.dir, name)
	switch {
	case strings.HasPrefix(name, linkPrefix):
		return s.holdLink(name, path)
	case strings.HasSuffix(name, freshSuffix):
		return nil // of an agent that was killed while it pinned
	}
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err == nil {
		s.maps[name] = m
	}
	return err
}

func (s *Snapshot) holdLink(name, path string) error {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return s.holdFilter(name, path)
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return err
	}
	program, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		return err
	}
	s.programs = append(s.programs, program)
	switch {
	case info.XDP() != nil && info.XDP().Ifindex != 0:
		index := int(info.XDP().Ifindex)
		mode := modeOf(index)
		s.xdp[index] = program
		s.attach[name] = func(path string) error {
			if updateXDP(path, program, index, mode) != Auto {
				return nil
			}
			_, err := newXDP(path, program, index, mode)
			return err
		}
	case info.TCX() != nil && info.TCX().Ifindex != 0:
		index := int(info.TCX().Ifindex)
		at := hookOf(info.TCX())
		s.attach[name] = func(path string) error { return putTC(path, program, index, at) }
	case info.Cgroup() != nil:
		id := info.Cgroup().CgroupId
		s.attach[name] = func(string) error { return s.attachSockets(name, program, id) }
	}
	return nil
}

// holdFilter holds a program that is attached without a link, on kernels that have none for its
// place.
func (s *Snapshot) holdFilter(name, path string) error {
	program, err := ebpf.LoadPinnedProgram(path, nil)
	if err != nil {
		return err
	}
	s.programs = append(s.programs, program)
	_, iface, at, _ := pinnedTC(name)
	device, err := net.InterfaceByName(iface)
	if err != nil {
		return nil // its interface is gone, and the filter with it
	}
	s.attach[name] = func(path string) error {
		return attachFilter(path, program, device.Index,
			at)
	}
	return nil
}

func (s *Snapshot) attachSockets(name string, program *ebpf.Program, cgroup uint64) error {
	dir, err := cgroupDir(cgroup)
	if err != nil {
		return err
	}
	_, err = attachSockets(s.dir, strings.TrimPrefix(name, linkPrefix), program, dir)
	return err
}

// errFound ends a walk.
var errFound = errors.New("found")

// cgroupDir finds a cgroup's directory by its number.
func cgroupDir(id uint64) (dir string, err error) {
	root, _, err := linux.CgroupRoot()
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil // cgroups come and go
		}
		if found, err := cgroupID(path); err == nil && found == id {
			dir = path
			return errFound
		}
		return nil
	})
	if !errors.Is(err, errFound) {
		return "", fmt.Errorf("find the directory of cgroup %d: it is gone from %s", id, root)
	}
	return dir, nil
}

// Restore makes the held programs those that run and the held maps those that are pinned, each in
// one step. What the instance did not have is removed.
func (s *Snapshot) Restore() error {
	if len(s.attach) == 0 && len(s.maps) == 0 {
		return Unload(s.dir)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("bring back %s: %w", s.dir, err)
	}
	var failures []error
	var keep []Attachment
	for name, attach := range s.attach {
		if err := attach(filepath.Join(s.dir, name)); err != nil {
			failures = append(failures, fmt.Errorf("bring back %s: %w", name, err))
		}
		keep = append(keep, Attachment{link: name})
	}
	failures = append(failures, releaseOthers(s.dir, keep), s.unpinOthers(), s.pin())
	return errors.Join(failures...)
}

// unpinOthers removes maps that the instance did not have.
func (s *Snapshot) unpinOthers() error {
	pins, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, pin := range pins {
		if !strings.HasPrefix(pin.Name(), linkPrefix) && s.maps[pin.Name()] == nil {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, pin.Name())))
		}
	}
	return err
}

// Close releases what is held; what is pinned stays.
func (s *Snapshot) Close() { s.close() }
