package datapath

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"sextant/linux"
)

// The loop is a pair of interfaces of one node. What is sent into the outer end comes out of the
// inner one as it would be on a wire: segmented, with its checksums. There packets of this machine
// meet XDP, and so does each copy of a packet.
const (
	loopOuter   = "srv6loop"
	copiesLoop  = "srv6copy" // of an edge
	loopInner   = loopOuter + innerSuffix
	innerSuffix = "-in"

	// LoopMTU is the most that native XDP takes on a veth with programs that expect a packet in one
	// piece.
	LoopMTU = 3400
)

// checkLocal refuses an interface from which packets would go into the loop that it does not take:
// the kernel would drop them there.
func checkLocal(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("packets of this machine that leave by interface %s: %w; ip link lists "+
			"them", name, err)
	}
	if mtu := link.Attrs().MTU; mtu > LoopMTU {
		return fmt.Errorf("packets of this machine that leave by interface %s: its MTU is %d "+
			"bytes, and the loop in which "+
			"they are numbered takes %d; make it smaller (ip link set %s mtu %d), or take the "+
			"interface out of local",
			name, mtu, LoopMTU, name, LoopMTU)
	}
	return nil
}

// LoopDrops returns how many frames the kernel has dropped on their way into the loop, since it was
// made.
func (h *Headend) LoopDrops() (uint64, error) {
	link, err := netlink.LinkByIndex(h.loop.outer)
	if err != nil {
		return 0, fmt.Errorf("read the counters of %s: %w", loopOuter, err)
	}
	if s := link.Attrs().Statistics; s != nil {
		return s.TxDropped, nil
	}
	return 0, nil
}

// loop holds the indexes of the two ends, and the Ethernet address of the inner one.
type loop struct {
	outer, inner int
	address      net.HardwareAddr
}

// ofCopies is the loop as the edge's programs read it.
func (l loop) ofCopies() (c copyLoop) {
	c.Outer = uint32(l.outer)
	copy(c.Address[:], l.address)
	return c
}

// openLoop returns a loop, which is made if there is none of this name.
func openLoop(name string) (loop, error) {
	loopOuter, loopInner := name, name+innerSuffix
	if _, err := netlink.LinkByName(loopOuter); err != nil {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = loopOuter, LoopMTU
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: loopInner,
			PeerMTU: LoopMTU}); err != nil {
			return loop{}, fmt.Errorf("make the loop interfaces %s and %s: %w; it needs "+
				"CAP_NET_ADMIN", loopOuter, loopInner, err)
		}
	}
	for name, value := range map[string]string{
		"net.ipv6.conf." + loopOuter + ".disable_ipv6": "1", // no neighbour exists there
		"net.ipv6.conf." + loopInner + ".accept_ra":    "0",
		"net.ipv6.conf." + loopInner + ".forwarding":   "1",
		"net.ipv4.conf." + loopInner + ".forwarding":   "1",
		"net.ipv4.conf." + loopInner + ".rp_filter":    "0",
	} {
		if err := linux.WriteSysctl(name, value); err != nil {
			return loop{}, fmt.Errorf("set up the loop: %w", err)
		}
	}
	// A checksum that is left to a device would never be computed.
	if err := linux.SetOffload(loopOuter, linux.TxChecksum, false); err != nil {
		return loop{}, fmt.Errorf("set up the loop: %w", err)
	}
	// The end that comes up last can send at once. The other one gets its queue from a worker of
	// the kernel, and drops what it is to send until then.
	inner, err := loopEnd(loopInner)
	if err != nil {
		return loop{}, err
	}
	outer, err := loopEnd(loopOuter)
	if err != nil {
		return loop{}, err
	}
	return loop{outer: outer.Index, inner: inner.Index, address: inner.HardwareAddr}, nil
}

// isThere reports whether the interfaces of a loop's name are its ends.
func (l loop) isThere(name string) bool {
	outer, err := net.InterfaceByName(name)
	if err != nil || outer.Index != l.outer {
		return false
	}
	inner, err := net.InterfaceByName(name + innerSuffix)
	return err == nil && inner.Index == l.inner
}

// raise brings ends up that were taken down, and reports whether there were any.
func (l loop) raise(name string) (raised bool, err error) {
	for _, end := range []string{name + innerSuffix, name} {
		device, missing := net.InterfaceByName(end)
		if missing != nil || device.Flags&net.FlagUp != 0 {
			continue
		}
		if _, err := loopEnd(end); err != nil {
			return raised, err
		}
		raised = true
	}
	return raised, nil
}

// loopEnd brings an end up.
func loopEnd(name string) (*netlink.LinkAttrs, error) {
	end, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(end)
	}
	if err != nil {
		return nil, fmt.Errorf("bring the loop's end %s up: %w", name, err)
	}
	return end.Attrs(), nil
}

// removeLoop removes a loop, if there is one.
func removeLoop(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return nil
	}
	if err := netlink.LinkDel(l); err != nil {
		return fmt.Errorf("remove the loop %s: %w", name, err)
	}
	return nil
}
