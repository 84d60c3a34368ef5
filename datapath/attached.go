package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// seen is what the kernel has at the place of an attachment.
type seen struct {
	exists   bool     // the interface or cgroup
	index    int      // of the interface
	programs []uint32 // numbers of those that run there
	pinned   bool     // the link, or the program in its place
}

// fault says why the attachment does not process packets, or would not if the agent ended; "" if
// all is well.
func (a Attachment) fault(s seen) string {
	switch {
	case !s.exists:
		return fmt.Sprintf("%s does not exist", a.On)
	case s.index != a.Index:
		return fmt.Sprintf("%s is another interface than the one that program %s was attached to",
			a.On, a.Program)
	case !slices.Contains(s.programs, a.ID) && len(s.programs) > 0:
		return fmt.Sprintf("a foreign program (%d) is attached to %s in place of %s",
			s.programs[0], a.On, a.Program)
	case !slices.Contains(s.programs, a.ID):
		return fmt.Sprintf("program %s is not attached to %s any more", a.Program, a.On)
	case !s.pinned:
		return fmt.Sprintf("the pin of program %s on %s is gone", a.Program, a.On)
	}
	return ""
}

// Faults asks the kernel about each attachment. The result is as long as the list, with "" where
// all is well. An error says that the kernel could not be asked.
func (c *collection) Faults(list []Attachment) ([]string, error) {
	faults := make([]string, len(list))
	for i, a := range list {
		s, err := a.look(c.dir)
		if err != nil {
			return nil, fmt.Errorf("look at program %s on %s: %w", a.Program, a.On, err)
		}
		for n, id := range s.programs {
			if plain, captures := c.standIns[ebpf.ProgramID(id)]; captures {
				s.programs[n] = uint32(plain)
			}
		}
		faults[i] = a.fault(s)
	}
	if missing := c.missingPin(); missing != "" {
		for i := range faults {
			faults[i] = cmp.Or(faults[i], "the pin of table "+missing+" is gone")
		}
	}
	return faults, nil
}

// missingPin names a table that is not pinned any more, "" if all are.
func (c *collection) missingPin() string {
	for name := range c.maps {
		if _, err := os.Stat(filepath.Join(c.dir, name)); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
	return ""
}

func (a Attachment) look(dir string) (s seen, err error) {
	_, missing := os.Stat(filepath.Join(dir, a.link))
	s.pinned = missing == nil
	if a.Index == 0 {
		return s, a.lookAtCgroup(&s)
	}
	device, err := netlink.LinkByName(a.On)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.exists, s.index = true, device.Attrs().Index
	if _, _, at, ok := pinnedTC(a.link); ok {
		s.programs, err = programsOf(device, at)
		s.ownOnly(a.ID)
		return s, err
	}
	if xdp := device.Attrs().Xdp; xdp != nil && xdp.Attached {
		s.programs = []uint32{xdp.ProgId}
	}
	return s, nil
}

// lookAtCgroup lists the programs that see the sockets of a cgroup.
func (a Attachment) lookAtCgroup(s *seen) error {
	dir, err := os.Open(a.On)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	s.exists = true
	found, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()),
		Attach: socketHook(a.Program)})
	if err != nil {
		return err
	}
	for _, p := range found.Programs {
		s.programs = append(s.programs, uint32(p.ID))
	}
	s.ownOnly(a.ID)
	return nil
}

// ownOnly forgets other programs, which may run beside ours.
func (s *seen) ownOnly(id uint32) {
	s.programs = slices.DeleteFunc(s.programs, func(p uint32) bool { return p != id })
}

// programsOf lists the TC programs on a hook of an interface, be they links or filters.
func programsOf(device netlink.Link, at hook) (ids []uint32, err error) {
	found, err := link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index,
		Attach: at.attach})
	switch {
	case err == nil:
		for _, p := range found.Programs {
			ids = append(ids, uint32(p.ID))
		}
	case !errors.Is(err, ebpf.ErrNotSupported) && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOENT):
		return nil, err
	}
	filters, err := netlink.FilterList(device, at.parent)
	if err != nil {
		return ids, nil // no clsact there
	}
	for _, f := range filters {
		if bpf, ok := f.(*netlink.BpfFilter); ok {
			ids = append(ids, uint32(bpf.Id))
		}
	}
	return ids, nil
}
