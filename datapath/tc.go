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
	"golang.org/x/sys/unix"
)

// hook is a place of an interface where TC programs run.
type hook struct {
	name   string // within the file name of a link
	attach ebpf.AttachType
	parent uint32 // of a clsact filter
}

var (
	leaving  = hook{name: "_tc_", attach: ebpf.AttachTCXEgress, parent: netlink.HANDLE_MIN_EGRESS}
	arriving = hook{name: "_tcin_", attach: ebpf.AttachTCXIngress,
		parent: netlink.HANDLE_MIN_INGRESS}
)

// filterPrefix marks our filters where the kernel has no TCX links (before 6.6) and a clsact filter
// must do.
const filterPrefix = "sextant_"

// attachTC puts a program on one of the interface's hooks.
func attachTC(dir, name string, program *ebpf.Program, iface string, at hook) (Attachment, error) {
	device, err := net.InterfaceByName(iface)
	if err != nil {
		return Attachment{}, fmt.Errorf(
			"attach %s to interface %s: no such interface here; ip link lists them", name, iface)
	}
	a := attachment(name, iface, device.Index, program, linkName(name, at.name, iface))
	return a, putTC(filepath.Join(dir, a.link), program, device.Index, at)
}

// putTC replaces the program behind the link pinned at path, or attaches it anew.
func putTC(path string, program *ebpf.Program, index int, at hook) error {
	if l, err := link.LoadPinnedLink(path, nil); err == nil {
		defer l.Close()
		if info, err := l.Info(); err == nil && info.TCX() != nil &&
			int(info.TCX().Ifindex) == index && l.Update(program) == nil {
			return nil
		}
		_ = detach(path) // if it fails, pinning anew says what is in the way
	}
	l, err := link.AttachTCX(link.TCXOptions{Program: program, Interface: index, Attach: at.attach})
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) {
		return attachFilter(path, program, index, at)
	}
	if err != nil {
		return fmt.Errorf("attach %s to interface %d: %w", filepath.Base(path), index, err)
	}
	defer l.Close()
	if err := l.Pin(path); err != nil {
		return fmt.Errorf("pin link at %s: %w", path, err)
	}
	return nil
}

// pinnedTC takes a link's file name apart; ok is false if it is not one of a TC program.
func pinnedTC(name string) (program, iface string, at hook, ok bool) {
	for _, at := range []hook{leaving, arriving} {
		program, iface, ok := strings.Cut(strings.TrimPrefix(name, linkPrefix), at.name)
		if ok {
			return program, strings.ReplaceAll(iface, ":", "."), at, true
		}
	}
	return "", "", hook{}, false
}

// hookOf returns the hook of an attached TCX link.
func hookOf(info *link.TCXInfo) hook {
	if ebpf.AttachType(info.AttachType) == arriving.attach {
		return arriving
	}
	return leaving
}

// attachFilter is the way before TCX. The program is pinned where the link would be, so that
// unloading finds the interface.
func attachFilter(path string, program *ebpf.Program, index int, at hook) error {
	attrs := netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0),
		Parent: netlink.HANDLE_CLSACT}
	if err := netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: attrs,
		QdiscType: "clsact"}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add clsact to interface %d: %w", index, err)
	}
	name, _, _, _ := pinnedTC(filepath.Base(path))
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: index, Parent: at.parent,
			Handle: filterHandle(name), Protocol: unix.ETH_P_ALL, Priority: 0x5e,
		},
		Fd: program.FD(), Name: filterPrefix + name, DirectAction: true,
	}
	if err := netlink.FilterReplace(filter); err != nil {
		return fmt.Errorf("attach %s to interface %d as a filter: %w", name, index, err)
	}
	os.Remove(path)
	clone, err := program.Clone()
	if err != nil {
		return err
	}
	defer clone.Close()
	return clone.Pin(path)
}

// filterHandle tells our programs on one hook apart: the length of the name does, as there are few.
func filterHandle(name string) uint32 { return uint32(len(name)) }

// removeFilters takes our clsact filters off the interfaces that have one; TCX links go with their
// pin.
func removeFilters(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, linkPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		program, iface, at, ok := pinnedTC(filepath.Base(path))
		if !ok {
			continue
		}
		device, err := net.InterfaceByName(iface)
		if err != nil {
			continue
		}
		if err := removeFilter(device.Index, program, at); err != nil {
			return fmt.Errorf("detach %s from interface %s: %w", program, device.Name, err)
		}
	}
	return nil
}

func removeFilter(index int, program string, at hook) error {
	device, err := netlink.LinkByIndex(index)
	if err != nil {
		return nil
	}
	filters, err := netlink.FilterList(device, at.parent)
	if err != nil {
		return nil // no clsact there
	}
	for _, f := range filters {
		if bpf, ok := f.(*netlink.BpfFilter); ok && bpf.Name == filterPrefix+program {
			if err := netlink.FilterDel(f); err != nil {
				return err
			}
		}
	}
	return nil
}
