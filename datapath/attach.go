package datapath

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/linux"
)

// Mode is how an XDP program is attached to an interface.
type Mode uint8

// The modes. Auto takes native where the driver can.
const (
	Auto Mode = iota
	Native
	Generic
)

// String returns the name that configuration files use.
func (m Mode) String() string { return [...]string{"auto", "native", "generic"}[m] }

// Attachment is a program on an interface or cgroup.
type Attachment struct {
	Program string // name in the object
	On      string // interface or cgroup directory
	Index   int    // of the interface; 0 for a cgroup
	Mode    Mode   // XDP only
	Side    Side   // edge only
	Tag     string // hash of the program's instructions
	ID      uint32 // number by which the kernel knows the program
	Warning string // what an operator should know; "" mostly
	link    string // file name of the pinned link
}

// linkPrefix marks pinned links in an instance's directory.
const linkPrefix = "link_"

// xdpHook is what the file names of links to XDP have between program and interface.
const xdpHook = "_xdp_"

// linkName is the file name of a link. The bpf file system takes no dots, which names of VLAN
// devices have; colons are in no interface's name.
func linkName(program, hook, iface string) string {
	return linkPrefix + program + hook + strings.ReplaceAll(iface, ".", ":")
}

// attachXDP puts the program on the interface: by replacing the one behind a link pinned earlier,
// or anew.
func attachXDP(dir, name string, program *ebpf.Program, iface string,
	mode Mode) (Attachment, error) {
	device, err := net.InterfaceByName(iface)
	if err != nil {
		return Attachment{}, fmt.Errorf(
			"attach %s to interface %s: no such interface here; ip link lists them", name, iface)
	}
	a := attachment(name, iface, device.Index, program, linkName(name, xdpHook, iface))
	if a.Mode = updateXDP(filepath.Join(dir, a.link), program, device.Index, mode); a.Mode == Auto {
		if a.Mode, err = newXDP(filepath.Join(dir, a.link), program, device.Index,
			mode); err != nil {
			return a, explainXDP(err, name, iface, mode)
		}
	}
	if a.Mode == Generic {
		a.Warning = genericMode(iface, mode)
	}
	return a, nil
}

// updateXDP replaces the program behind a pinned link in one step. Auto: there was no link that
// serves.
func updateXDP(path string, program *ebpf.Program, index int, want Mode) Mode {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return Auto
	}
	defer l.Close()
	info, err := l.Info()
	if err == nil && info.XDP() != nil && int(info.XDP().Ifindex) == index {
		if has := modeOf(index); (want == Auto || has == want) && l.Update(program) == nil {
			return has
		}
	}
	_ = detach(path) // if it fails, attaching anew says what is in the way
	return Auto
}

// detach takes the program behind a pinned link off at once. If only the pin went, the kernel would
// do it some time later.
func detach(path string) error {
	if l, err := link.LoadPinnedLink(path, nil); err == nil {
		_ = l.Detach() // it fails if the interface is gone, and the program with it
		l.Close()
	}
	return os.Remove(path)
}

// newXDP attaches the program and pins the link.
func newXDP(path string, program *ebpf.Program, index int, want Mode) (Mode, error) {
	var refusal error
	for _, try := range []struct {
		mode Mode
		flag link.XDPAttachFlags
	}{{Native, link.XDPDriverMode}, {Generic, link.XDPGenericMode}} {
		if want != Auto && want != try.mode {
			continue
		}
		l, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: index,
			Flags: try.flag})
		if err != nil {
			err = fmt.Errorf("%s mode: %w", try.mode, err)
			if refusal == nil {
				refusal = err
			} else {
				refusal = fmt.Errorf("%w, %w", refusal, err)
			}
			continue
		}
		defer l.Close()
		if err := l.Pin(path); err != nil {
			return Auto, fmt.Errorf("pin link at %s: %w", path, err)
		}
		return try.mode, nil
	}
	return Auto, refusal
}

func explainXDP(err error, name, iface string, mode Mode) error {
	mend := ""
	switch {
	case errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST):
		mend = "; another XDP program is there: remove it (ip link set dev " + iface +
			" xdp off), or its owner"
	case errors.Is(err, unix.EOPNOTSUPP) && mode == Native:
		mend = "; the driver has no native XDP: use mode auto or generic"
	case errors.Is(err, unix.EPERM):
		mend = "; it needs root, or CAP_BPF and CAP_NET_ADMIN"
	}
	return fmt.Errorf("attach %s to interface %s: %w%s", name, iface, err, mend)
}

// modeOf asks how the interface's XDP program is attached; Auto if there is none.
func modeOf(index int) Mode {
	l, err := netlink.LinkByIndex(index)
	if err != nil || l.Attrs().Xdp == nil {
		return Auto
	}
	switch l.Attrs().Xdp.AttachMode {
	case nl.XDP_ATTACHED_DRV, nl.XDP_ATTACHED_HW:
		return Native
	case nl.XDP_ATTACHED_SKB:
		return Generic
	}
	return Auto
}

// genericMode prepares an interface for the slow path: packets joined by GRO would reach the
// program as one that is too long. They are joined where the driver gives them to the kernel, which
// may be below the interface.
func genericMode(iface string, want Mode) string {
	warning := ""
	if want == Auto {
		warning = "no native XDP on this driver, so packets take the slower generic path"
	}
	below, elsewhere, err := linux.Below(iface)
	for _, name := range append([]string{iface}, below...) {
		err = errors.Join(err, linux.SetOffload(name, linux.GRO, false))
	}
	if err != nil {
		warning += "; GRO could not be turned off, large packets will be dropped: " + err.Error()
	}
	if elsewhere {
		warning += "; the device below is in another network namespace: turn its GRO off there " +
			"(ethtool -K DEVICE gro off), or large packets will be dropped"
	}
	return strings.TrimPrefix(warning, "; ")
}

// releaseOthers detaches what an earlier configuration had on interfaces and cgroups that this one
// does not name.
func releaseOthers(dir string, keep []Attachment) error {
	wanted := map[string]bool{}
	for _, a := range keep {
		wanted[a.link] = true
	}
	links, err := filepath.Glob(filepath.Join(dir, linkPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range links {
		if wanted[filepath.Base(path)] {
			continue
		}
		if err := detach(path); err != nil {
			return fmt.Errorf("detach %s: %w", path, err)
		}
	}
	return nil
}

// Unload detaches all programs of the instance and forgets its tables and counters. Unloading what
// is not loaded is no error.
func Unload(dir string) error {
	if err := removeFilters(dir); err != nil {
		return err
	}
	hasLoop := HasHeadend(dir)
	_, err := os.Stat(filepath.Join(dir, "order_port"))
	hasOrder := err == nil
	_, err = os.Stat(filepath.Join(dir, "tables"))
	isEdge := err == nil
	err = nil
	if err := releaseOthers(dir, nil); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("unload %s: %w", dir, err)
	}
	if hasLoop {
		err = removeLoop(loopOuter)
	}
	if hasOrder {
		err = errors.Join(err, removeLoop(orderLoop))
	}
	if isEdge {
		err = errors.Join(err, removeLoop(copiesLoop))
	}
	return err
}

// attachment describes a program that is about to be attached.
func attachment(name, on string, index int, p *ebpf.Program, pin string) Attachment {
	a := Attachment{Program: name, On: on, Index: index, link: pin}
	if info, err := p.Info(); err == nil {
		id, _ := info.ID()
		a.Tag, a.ID = info.Tag, uint32(id)
	}
	return a
}

func tagOf(p *ebpf.Program) string {
	info, err := p.Info()
	if err != nil {
		return ""
	}
	return info.Tag
}
