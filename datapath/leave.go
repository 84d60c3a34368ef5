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

// filterName marks our filters where the kernel has no TCX links (before 6.6) and a clsact filter must do.
const filterName = "sextant_leave"

// attachLeave puts the program on the interface's egress path.
func attachLeave(dir string, program *ebpf.Program, iface string) (Attachment, error) {
	device, err := net.InterfaceByName(iface)
	if err != nil {
		return Attachment{}, fmt.Errorf("attach host_leave to interface %s: no such interface here; ip link lists them", iface)
	}
	a := Attachment{Program: "host_leave", On: iface, Index: device.Index, Tag: tagOf(program), link: linkPrefix + "host_leave_tc_" + iface}
	return a, putLeave(filepath.Join(dir, a.link), program, device.Index, iface)
}

// putLeave replaces the program behind the link pinned at path, or attaches it anew.
func putLeave(path string, program *ebpf.Program, index int, iface string) error {
	if l, err := link.LoadPinnedLink(path, nil); err == nil {
		defer l.Close()
		if info, err := l.Info(); err == nil && info.TCX() != nil && int(info.TCX().Ifindex) == index && l.Update(program) == nil {
			return nil
		}
		os.Remove(path)
	}
	l, err := link.AttachTCX(link.TCXOptions{Program: program, Interface: index, Attach: ebpf.AttachTCXEgress})
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) {
		return attachFilter(path, program, index, iface)
	}
	if err != nil {
		return fmt.Errorf("attach host_leave to interface %s: %w", iface, err)
	}
	defer l.Close()
	if err := l.Pin(path); err != nil {
		return fmt.Errorf("pin link at %s: %w", path, err)
	}
	return nil
}

// attachFilter is the way before TCX. The program is pinned where the link would be, so that unloading finds the interface.
func attachFilter(path string, program *ebpf.Program, index int, iface string) error {
	attrs := netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}
	if err := netlink.QdiscAdd(&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "clsact"}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add clsact to interface %s: %w", iface, err)
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS,
			Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 0x5e,
		},
		Fd: program.FD(), Name: filterName, DirectAction: true,
	}
	if err := netlink.FilterReplace(filter); err != nil {
		return fmt.Errorf("attach host_leave to interface %s as a filter: %w", iface, err)
	}
	os.Remove(path)
	clone, err := program.Clone()
	if err != nil {
		return err
	}
	defer clone.Close()
	return clone.Pin(path)
}

// removeFilters takes our clsact filters off the interfaces that have one; TCX links go with their pin.
func removeFilters(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, linkPrefix+"host_leave_tc_*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		device, err := net.InterfaceByName(strings.TrimPrefix(filepath.Base(path), linkPrefix+"host_leave_tc_"))
		if err != nil {
			continue
		}
		if err := removeFilter(device.Index); err != nil {
			return fmt.Errorf("detach host_leave from interface %s: %w", device.Name, err)
		}
	}
	return nil
}

func removeFilter(index int) error {
	device, err := netlink.LinkByIndex(index)
	if err != nil {
		return nil
	}
	filters, err := netlink.FilterList(device, netlink.HANDLE_MIN_EGRESS)
	if err != nil {
		return nil // no clsact there
	}
	for _, f := range filters {
		if bpf, ok := f.(*netlink.BpfFilter); ok && bpf.Name == filterName {
			if err := netlink.FilterDel(f); err != nil {
				return err
			}
		}
	}
	return nil
}
