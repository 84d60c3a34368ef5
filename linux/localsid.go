package linux

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/packet/srv6"
)

// LocalSID is a SID of the kernel's own segment routing (seg6local) that looks inner packets up in
// a routing table.
type LocalSID struct {
	Prefix   netip.Prefix
	Behavior srv6.Behavior // End.DT4, End.DT6 or End.DT46
	Table    int
	VRF      bool // inner packets are received by the VRF with the table (vrftable)
}

// seg6LocalDT46 is SEG6_LOCAL_ACTION_END_DT46 of Linux 5.14.
const seg6LocalDT46 = 16

var tableBehaviors = map[int]srv6.Behavior{
	nl.SEG6_LOCAL_ACTION_END_DT4: srv6.EndDT4, nl.SEG6_LOCAL_ACTION_END_DT6: srv6.EndDT6,
	seg6LocalDT46: srv6.EndDT46,
}

// LocalSIDs lists those of the main table of the current network namespace, from any software.
func LocalSIDs() ([]LocalSID, error) {
	routes, err := netlink.RouteListFiltered(unix.AF_INET6,
		&netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, Failed(err, "list routes")
	}
	var list []LocalSID
	for _, r := range routes {
		encap, ok := r.Encap.(*netlink.SEG6LocalEncap)
		if !ok || r.Dst == nil {
			continue
		}
		address, ok := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		sid := LocalSID{Prefix: netip.PrefixFrom(address, bits),
			Behavior: tableBehaviors[encap.Action], Table: encap.Table}
		if encap.Flags[nl.SEG6_LOCAL_VRFTABLE] {
			sid.Table, sid.VRF = encap.VrfTable, true
		}
		if ok && sid.Behavior != 0 && sid.Table != 0 {
			list = append(list, sid)
		}
	}
	return list, nil
}
