package linux

import (
	"slices"

	"github.com/vishvananda/netlink"
)

// Below lists the interfaces from which another one has its frames: the device of a VLAN or a
// MACVLAN, the ports of a bond, a team or a bridge, and those from which these have theirs.
// Elsewhere says that one of them is in another network namespace.
func Below(iface string) (list []string, elsewhere bool, err error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, false, Failed(err, "list interfaces")
	}
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == iface })
	if i < 0 {
		return nil, false, nil
	}
	for next := []netlink.Link{links[i]}; len(next) > 0; next = next[1:] {
		above := next[0].Attrs()
		upon := slices.Contains(kindsUpon, next[0].Type())
		elsewhere = elsewhere || upon && above.NetNsID >= 0
		for _, l := range links {
			at := l.Attrs()
			if (at.MasterIndex == above.Index ||
				upon && above.NetNsID < 0 && at.Index == above.ParentIndex) &&
				!slices.Contains(list, at.Name) {
				list, next = append(list, at.Name), append(next, l)
			}
		}
	}
	return list, elsewhere, nil
}

// kindsUpon are kinds of interfaces that are upon the one which the kernel names as their link. Of
// a veth that is its peer.
var kindsUpon = []string{"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"}
