package linux

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// genericVersion is that of the families that are asked.
const genericVersion = 1

// askGeneric sends a command of a generic netlink family, and returns the attribute of the answer
// that is wanted.
func askGeneric(name string, command byte, wanted uint16,
	attributes ...*nl.RtAttr) ([]byte, error) {
	family, err := netlink.GenlFamilyGet(name)
	if err != nil {
		return nil, err
	}
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	// The library's generic header leaves its reserved bytes to chance, which the kernel refuses.
	request.AddRawData([]byte{command, genericVersion, 0, 0})
	for _, a := range attributes {
		request.AddRawData(a.Serialize())
	}
	answers, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	for _, answer := range answers {
		attributes, err := attributesOf(answer[min(len(answer), nl.SizeofGenlmsg):])
		if err != nil {
			return nil, err
		}
		for _, a := range attributes {
			if a.Attr.Type == wanted {
				return a.Value, nil
			}
		}
	}
	return nil, fmt.Errorf("the kernel did not tell attribute %d of %s", wanted, name)
}

// attributesOf reads attributes. ParseRouteAttr wants each to be padded; the last one of foreign
// bytes may not be.
func attributesOf(b []byte) ([]syscall.NetlinkRouteAttr, error) {
	return nl.ParseRouteAttr(append(slices.Clip(b), make([]byte, -len(b)&3)...))
}
