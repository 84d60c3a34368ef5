package doctor

import (
	"fmt"

	"sextant/config"
	"sextant/linux/facts"
)

func interfaces(n *config.Node, f *facts.Facts, _ string) []Finding {
	if f.Interfaces == nil {
		return nil
	}
	var list []Finding
	for _, at := range n.Faces() {
		if i, exists := f.Interfaces[at.Name]; !exists {
			list = append(list, Finding{"interface_missing", Broken, at.Name,
				"there is no interface " + at.Name + " in this network namespace",
				"the " + at.Role + " of the node file names it",
				"correct the name in the node file, or create it; ip link lists them"})
		} else if !i.Up {
			list = append(list, Finding{"interface_down", Broken, at.Name, "the interface is down",
				"no packet arrives or leaves",
				"ip link set dev " + at.Name + " up"})
		}
	}
	return list
}

func nativeXDP(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		unable := i.Features.Known && !i.Features.Native
		if at.Plain || at.Mode == config.Generic || i.XDP == "native" || i.XDP == "" && !unable {
			return nil
		}
		finding := Finding{"generic_xdp", Risk, at.Name, "packets take the generic path", "", ""}
		if i.XDP == "" {
			finding.What = "packets would take the generic path"
		}
		switch {
		case at.Mode == config.Native && unable:
			finding.Severity, finding.What = Broken, "mode native is asked for, and refused"
			finding.Cause = "the driver (" + i.Driver + ") runs no XDP programs"
			finding.Mend = "write mode: auto into the node file, or use another interface"
		case i.Driver == "veth" && unable:
			finding.Cause = "the other end of the veth has more transmit queues than this one " +
				"has receive queues"
			finding.Mend = "make the pair with as many: ip link add ... numrxqueues N numtxqueues N"
		case i.Driver == "veth":
			finding.Cause = "it was attached before native mode could be; the other end may have " +
				"an MTU above one page"
			finding.Mend = "lower the MTU of both ends to 3498 bytes or less, then restart the " +
				"agent"
		case unable:
			finding.Cause = "the driver (" + i.Driver + ") runs no XDP programs"
			finding.Mend = "use an interface whose driver does; for bonds and VLANs, the device " +
				"below"
		default:
			finding.Cause = "native mode was refused when the program was attached"
			finding.Mend = "see the agent's log; an MTU above one page and LRO are what drivers " +
				"refuse: ethtool -K " + at.Name + " lro off"
		}
		return []Finding{finding}
	})
}

func vethPeer(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		if !at.Sends || i.Driver != "veth" || !i.Features.Known || !i.Features.Native ||
			i.Features.Send || i.XDP == "generic" {
			return nil
		}
		return []Finding{{"veth_peer", Broken, at.Name,
			"frames that the program sends by this veth are lost",
			"a veth receives frames of XDP only if it runs an XDP program; with GRO alone, those " +
				"that turn round come late",
			"attach a program that passes all to the other end"}}
	})
}

func checksumOffload(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		if i.Driver != "veth" || !i.TxChecksum || at.Plain && !at.Domain {
			// what leaves by an interface of headend.local goes through the loop, which computes
			// them
			return nil
		}
		return []Finding{{"checksum_offload", Risk, at.Name,
			"checksums of what this machine sends are left to the veth, which never computes them",
			"a native XDP program on the way that redirects such a packet loses the mark, and " +
				"TCP and UDP behind it fail while ping works",
			"ethtool -K " + at.Name + " tx off, on both ends"}}
	})
}

func genericGRO(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) (list []Finding) {
		joining := i.GROBelow
		if i.GRO {
			joining = append([]string{at.Name}, joining...)
		}
		if at.Plain || i.XDP != "generic" {
			return nil
		}
		for _, device := range joining {
			what := "GRO is on while the program runs in generic mode"
			if device != at.Name {
				what = "GRO is on at " + device + ", below it, while the program runs in generic " +
					"mode"
			}
			list = append(list, Finding{"generic_gro", Broken, at.Name, what,
				"received segments are joined before the program sees them, and the result does " +
					"not fit the path",
				"ethtool -K " + device + " gro off"})
		}
		return list
	})
}

// leads reports whether the kernel's routes to destinations leave by an interface: a head-end's
// interfaces are mixed unless the node file says otherwise, also those that face nothing but hosts.
func leads(f *facts.Facts, name string) bool {
	for _, r := range f.Routes {
		if r.Interface == name {
			return true
		}
	}
	return false
}

func mtu(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		switch {
		case at.Domain && i.MTU < n.Domain.MTU && !(at.Role == "headend" && at.Clients &&
			!leads(f, at.Name)):
			return []Finding{{"mtu", Broken, at.Name,
				fmt.Sprintf("its MTU is %d bytes, and domain.mtu says that the domain carries %d",
					i.MTU, n.Domain.MTU),
				"encapsulated packets between the two are dropped; the sizes that edges and " +
					"head-ends tell senders are for the larger one",
				fmt.Sprintf("ip link set dev %s mtu %d, or lower domain.mtu on all nodes", at.Name,
					n.Domain.MTU)}}
		case at.Role == "edge" && at.Clients && i.MTU > n.Domain.MTU-n.Domain.Overhead:
			return []Finding{{"mtu_headroom", Notable, at.Name,
				fmt.Sprintf("packets of more than %d bytes can arrive, and do not fit behind %d "+
					"bytes of encapsulation",
					n.Domain.MTU-n.Domain.Overhead, n.Domain.Overhead),
				"TCP is kept below by clamping its segment size; UDP and others are not",
				fmt.Sprintf("let the domain carry %d bytes: raise its links' MTU, then "+
					"domain.mtu on all nodes", i.MTU+n.Domain.Overhead)}}
		}
		return nil
	})
}
