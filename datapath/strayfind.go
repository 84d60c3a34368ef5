package datapath

import (
	"fmt"
	"os"

	"github.com/vishvananda/netlink"

	"sextant/packet/srv6"
)

// vrfEntry is what a VRF is made of now; without a backup it is left alone.
type vrfEntry struct {
	strayVRF
	table int // of its routes; 0: none
}

// find looks for what a VRF is made of, and puts vrf_ask where its packets enter.
func (s *Strays) find(v StrayVRF) (vrfEntry, error) {
	backup, err := netlink.LinkByName(v.Backup)
	if err != nil {
		return vrfEntry{}, fmt.Errorf("there is no backup device %s; ip link lists devices",
			v.Backup)
	}
	e := vrfEntry{strayVRF: strayVRF{Backup: uint32(backup.Attrs().Index)}}
	copy(e.BackupAddress[:], backup.Attrs().HardwareAddr)
	if v.Device == "" {
		id, err := namespaceID(v.Namespace)
		if err != nil {
			return vrfEntry{}, err
		}
		e.Netns = uint32(id)
		return e, nil
	}
	device, err := netlink.LinkByName(v.Device)
	if err != nil {
		return vrfEntry{}, fmt.Errorf("there is no VRF device %s; ip vrf show lists them",
			v.Device)
	}
	vrf, ok := device.(*netlink.Vrf)
	if !ok {
		return vrfEntry{}, fmt.Errorf("%s is no VRF device but of type %s; ip vrf show lists them",
			v.Device, device.Type())
	}
	if err := s.attachVRF(vrf); err != nil {
		return vrfEntry{}, err
	}
	e.Interface, e.table = uint32(vrf.Index), int(vrf.Table)
	copy(e.Address[:], vrf.HardwareAddr)
	return e, nil
}

// attachVRF puts vrf_ask on a VRF device that it is not on.
func (s *Strays) attachVRF(vrf *netlink.Vrf) error {
	p := place{name: "vrf_ask", program: s.programs["vrf_ask"], on: vrf.Name, kind: onArriving}
	if at, there := s.attached[p.link()]; there && at.Index == vrf.Index {
		return nil
	}
	return s.put(p)
}

// namespaceID returns the number under which this namespace knows the one at path; it gets one if
// it has none.
func namespaceID(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("open network namespace: %w; ip netns list names those of this "+
			"machine", err)
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

// familiesOf are those that a SID of the kernel decapsulates.
func familiesOf(b srv6.Behavior) uint32 {
	switch b {
	case srv6.EndDT4:
		return strayIPv4
	case srv6.EndDT6:
		return strayIPv6
	}
	return strayIPv4 | strayIPv6
}
