package datapath

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// vrfEntry is what a VRF is made of now; without a backup it is left alone.
type vrfEntry struct {
	strayVRF
	table int // of its routes; 0: none
}

// find looks for what a VRF is made of, and puts vrf_ask where its packets enter.
func (s *Strays) find(v StrayVRF) (vrfEntry, []Attachment, error) {
	backup, err := netlink.LinkByName(v.Backup)
	if err != nil {
		return vrfEntry{}, nil, fmt.Errorf("there is no backup device %s; ip link lists devices", v.Backup)
	}
	e := vrfEntry{strayVRF: strayVRF{Backup: uint32(backup.Attrs().Index)}}
	copy(e.BackupAddress[:], backup.Attrs().HardwareAddr)
	if v.Device == "" {
		id, err := namespaceID(v.Namespace)
		if err != nil {
			return vrfEntry{}, nil, err
		}
		e.Netns = uint32(id)
		return e, nil, nil
	}
	device, err := netlink.LinkByName(v.Device)
	if err != nil {
		return vrfEntry{}, nil, fmt.Errorf("there is no VRF device %s; ip vrf show lists them", v.Device)
	}
	vrf, ok := device.(*netlink.Vrf)
	if !ok {
		return vrfEntry{}, nil, fmt.Errorf("%s is no VRF device but of type %s; ip vrf show lists them", v.Device, device.Type())
	}
	at, err := s.attachVRF(vrf)
	if err != nil {
		return vrfEntry{}, nil, err
	}
	e.Interface, e.table = uint32(vrf.Index), int(vrf.Table)
	copy(e.Address[:], vrf.HardwareAddr)
	return e, []Attachment{at}, nil
}

// attachVRF puts vrf_ask on a VRF device that it is not on.
func (s *Strays) attachVRF(vrf *netlink.Vrf) (Attachment, error) {
	if at, there := s.asked[vrf.Name]; there && at.Index == vrf.Index {
		return at, nil
	}
	at, err := attachTC(s.dir, "vrf_ask", s.programs["vrf_ask"], vrf.Name, arriving)
	if err == nil {
		s.asked[vrf.Name] = at
	}
	return at, err
}

// namespaceID returns the number under which this namespace knows the one at path; it gets one if it has none.
func namespaceID(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("open network namespace: %w; ip netns list names those of this machine", err)
	}
	defer file.Close()
	id, err := netlink.GetNetNsIdByFd(int(file.Fd()))
	if err == nil && id < 0 {
		if err = netlink.SetNetNsIdByFd(int(file.Fd()), -1); err == nil {
			id, err = netlink.GetNetNsIdByFd(int(file.Fd()))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("find network namespace %s: %w", path, err)
	}
	return id, nil
}

// endDT46 is SEG6_LOCAL_ACTION_END_DT46 of Linux 5.14.
const endDT46 = 16

// localRoute is a SID of the kernel that looks inner packets up in a table.
type localRoute struct {
	table    int
	families uint32
}

// localRoutes are the kernel's End.DT4, End.DT6 and End.DT46, whoever installed them.
func localRoutes() (map[netip.Prefix]localRoute, error) {
	routes, err := netlink.RouteListFiltered(unix.AF_INET6, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list routes: %w", err)
	}
	local := map[netip.Prefix]localRoute{}
	for _, r := range routes {
		encap, ok := r.Encap.(*netlink.SEG6LocalEncap)
		if !ok || r.Dst == nil {
			continue
		}
		l := localRoute{table: encap.Table}
		if encap.Flags[nl.SEG6_LOCAL_VRFTABLE] {
			l.table = encap.VrfTable
		}
		switch encap.Action {
		case nl.SEG6_LOCAL_ACTION_END_DT4:
			l.families = strayIPv4
		case nl.SEG6_LOCAL_ACTION_END_DT6:
			l.families = strayIPv6
		case endDT46:
			l.families = strayIPv4 | strayIPv6
		}
		address, ok := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		if ok && l.families != 0 && l.table != 0 {
			local[netip.PrefixFrom(address, bits)] = l
		}
	}
	return local, nil
}
