package linux

import (
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux/facts"
)

// vrfAddressesMax is how many addresses of a VRF and family are looked at.
const vrfAddressesMax = 16

// VRF names a VRF with servers, whose strays are taken away.
type VRF struct {
	VRF       string         // name of the device; "": a namespace
	Namespace string         // path of a namespace; "": a device
	SIDs      []netip.Prefix // whose packets the kernel leads into the namespace
	Except    []netip.Prefix // SIDs of the device at which strays stay
	Backup    string         // the device on which strays are received
}

// Name is that of the device, or the path of the namespace.
func (v VRF) Name() string { return v.VRF + v.Namespace }

// vrfs looks at those whose strays are taken away.
func vrfs(wanted []VRF) map[string]facts.VRF {
	sids, err := LocalSIDs()
	if err != nil {
		return nil
	}
	found := map[string]facts.VRF{}
	for _, v := range wanted {
		found[v.Name()] = vrfFacts(v, sids)
	}
	return found
}

func vrfFacts(v VRF, sids []LocalSID) facts.VRF {
	var known facts.VRF
	if v.VRF != "" {
		known = vrfDevice(v, sids)
	} else {
		known = vrfNamespace(v)
	}
	if device, err := netlink.LinkByName(v.Backup); err == nil {
		known.Backup = deviceFacts(device)
	}
	passages := func(device string) map[netip.Addr]facts.Passage {
		list := map[netip.Addr]facts.Passage{}
		for _, to := range known.Addresses {
			list[to] = Passage(device, clientLike(to), to)
		}
		return list
	}
	if known.Backup.Exists {
		known.Strays = passages(v.Backup)
	}
	if v.VRF != "" && known.Device.Exists {
		known.Here = passages(v.VRF)
	}
	return known
}

func vrfDevice(v VRF, sids []LocalSID) (known facts.VRF) {
	device, err := netlink.LinkByName(v.VRF)
	if err != nil {
		return known
	}
	known.Device = deviceFacts(device)
	vrf, ok := device.(*netlink.Vrf)
	if !ok {
		return known
	}
	for _, s := range sids {
		if s.Table == int(vrf.Table) && !slices.Contains(v.Except, s.Prefix) {
			known.SIDs = append(known.SIDs,
				facts.VRFSID{Prefix: s.Prefix, Behavior: s.Behavior.String(), Table: !s.VRF})
		}
	}
	known.Addresses = delivered(int(vrf.Table), vrf.Index)
	return known
}

func vrfNamespace(v VRF) (known facts.VRF) {
	file, err := os.Open(v.Namespace)
	if err != nil {
		return known
	}
	namespace := &Netns{name: v.Namespace, file: file}
	defer namespace.Close()
	if namespace.Do(func() error {
		known.Addresses = delivered(unix.RT_TABLE_LOCAL, loopbackIndex)
		return nil
	}) != nil {
		return known // a file of another kind
	}
	known.Device.Exists = true
	routes := newRouteReader()
	defer routes.close()
	for _, sid := range v.SIDs {
		if routes.routeTo(sid.Addr()).Reachable {
			known.SIDs = append(known.SIDs, facts.VRFSID{Prefix: sid})
		}
	}
	return known
}

func deviceFacts(device netlink.Link) facts.Device {
	return facts.Device{Exists: true, Up: device.Attrs().Flags&unix.IFF_UP != 0,
		Kind: device.Type()}
}

// loopbackIndex is the interface lo of each network namespace.
const loopbackIndex = 1

// delivered are some of the addresses that a table of the current network namespace says are its
// own; not those of loopback and of links. Of a family, those of a device are preferred, where VIPs
// are: others are of links to neighbours, and no stray comes for them.
func delivered(table, device int) (list []netip.Addr) {
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		filter := &netlink.Route{Table: table, Type: unix.RTN_LOCAL}
		routes, err := netlink.RouteListFiltered(family, filter,
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
		if err != nil {
			continue
		}
		var of, others []netip.Addr
		for _, r := range routes {
			if r.Dst == nil {
				continue
			}
			a, ok := netip.AddrFromSlice(r.Dst.IP)
			switch {
			case !ok || !a.IsGlobalUnicast():
			case r.LinkIndex == device:
				of = append(of, a)
			default:
				others = append(others, a)
			}
		}
		if len(of) == 0 {
			of = others
		}
		list = append(list, of[:min(len(of), vrfAddressesMax)]...)
	}
	return list
}

// strictVRF is nil if the kernel has no VRF devices.
func strictVRF() *bool {
	text, err := ReadSysctl("net.vrf.strict_mode")
	if err != nil {
		return nil
	}
	return new(text != "0")
}
