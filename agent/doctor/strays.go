package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sextant/config"
	"sextant/linux/facts"
)

// eachVRF visits the VRFs whose strays are taken away, and of which something is known.
func eachVRF(n *config.Node, f *facts.Facts,
	visit func(config.StrayVRF, facts.VRF) []Finding) []Finding {
	if n.Strays == nil {
		return nil
	}
	var list []Finding
	for _, v := range n.Strays.VRFs {
		if known, asked := f.VRFs[v.Name()]; asked {
			list = append(list, visit(v, known)...)
		}
	}
	return list
}

// leftAlone is what becomes of a VRF that is not all there.
const leftAlone = "until it is there, strays are left to the kernel, which answers them with a RST"

// isThere says whether what a VRF is to be is one.
func isThere(known facts.VRF, v config.StrayVRF) bool {
	return known.Device.Exists && (v.VRF == "" || known.Device.Kind == "vrf")
}

func vrfDevices(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachVRF(n, f, func(v config.StrayVRF, known facts.VRF) (list []Finding) {
		switch {
		case v.VRF == "" && !known.Device.Exists:
			list = append(list, Finding{"namespace_missing", Broken, v.Namespace,
				"there is no network namespace at this path", leftAlone,
				"correct strays.vrfs in the node file, or create it; ip netns list names those " +
					"of this machine"})
		case v.VRF == "":
		case !known.Device.Exists:
			list = append(list, Finding{"interface_missing", Broken, v.VRF,
				"there is no VRF device " + v.VRF, leftAlone,
				"ip link add " + v.VRF + " type vrf table N, or correct strays.vrfs in the node " +
					"file; ip vrf show lists them"})
		case known.Device.Kind != "vrf":
			list = append(list, Finding{"vrf_kind", Broken, v.VRF,
				"it is no VRF device but of type " + known.Device.Kind,
				"routes and sockets of a VRF can't be found by it; " + leftAlone,
				"name a VRF device in strays.vrfs; ip vrf show lists them"})
		case !known.Device.Up:
			list = append(list, down(v.VRF, "nothing is received in the VRF"))
		}
		switch {
		case !known.Backup.Exists:
			list = append(list, Finding{"interface_missing", Broken, v.Backup,
				"there is no backup device " + v.Backup, leftAlone,
				"ip link add " + v.Backup +
					" type vrf table N, with a route to the shadow in that table, " +
					"or correct strays.vrfs in the node file"})
		case !known.Backup.Up:
			list = append(list, down(v.Backup, "strays are received on it, and are lost"))
		}
		return list
	})
}

func down(name, why string) Finding {
	return Finding{"interface_down", Broken, name, "the device is down", why,
		"ip link set dev " + name + " up"}
}

func vrfSIDs(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachVRF(n, f, func(v config.StrayVRF, known facts.VRF) (list []Finding) {
		if !isThere(known, v) {
			return nil // nothing can lead there
		}
		strict := v.VRF == "" || f.StrictVRF == nil || *f.StrictVRF
		for _, want := range v.SIDs {
			if !slices.ContainsFunc(known.SIDs,
				func(s facts.VRFSID) bool { return s.Prefix == want }) {
				list = append(list, Finding{"vrf_sid", Broken, want.String(),
					"this machine has no route to the SID",
					"packets to it are not led into " + v.Name() + ", and connections to it fail",
					"see that the router has set it up: ip -6 route get " + want.Addr().String()})
			}
		}
		if v.VRF != "" && len(known.SIDs) == 0 {
			list = append(list, Finding{"vrf_sid", Broken, v.VRF, "no SID leads into the VRF",
				"the main table has no End.DT4, End.DT6 or End.DT46 with its table (but those of " +
					"except), so nothing for it is taken out",
				"see what the router does: vtysh -c 'show segment-routing srv6 locator'; " +
					"by hand: ip -6 route add SID encap seg6local action End.DT46 " +
					"vrftable N dev " + v.VRF})
		}
		for _, s := range known.SIDs {
			if s.Table {
				list = append(list, Finding{"vrf_sid", Risk, s.Prefix.String(),
					s.Behavior + " names the table of VRF " + v.VRF + ", not the VRF",
					"what it decapsulates is received by the interface on which it came, where " +
						"no socket is found that is bound to the VRF",
					"have it with vrftable; FRRouting 8.4 can't for IPv6, newer ones can"})
			}
		}
		if !strict {
			severity := Risk
			if len(known.SIDs) == 0 {
				severity = Broken
			}
			list = append(list, Finding{"sysctl_vrf_strict", severity, "net.vrf.strict_mode",
				"a table may be of several VRFs",
				"the kernel refuses new End.DT4 and End.DT46, as it can't tell whose the table is",
				"sysctl -w net.vrf.strict_mode=1"})
		}
		return list
	})
}

func vrfAddresses(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachVRF(n, f, func(v config.StrayVRF, known facts.VRF) []Finding {
		if !isThere(known, v) || len(known.Addresses) > 0 {
			return nil
		}
		mend := "ip addr add VIP dev " + v.VRF
		if v.VRF == "" {
			mend = "ip addr add VIP dev lo, in the namespace"
		}
		return []Finding{{"vip_missing", Broken, v.Name(), "the VRF has no address",
			"no connection can be here, so all that comes for it is astray", mend}}
	})
}

// strayPassages says what the kernel would do with strays on the backup device, and with what is
// here on the VRF's.
func strayPassages(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachVRF(n, f, func(v config.StrayVRF, known facts.VRF) (list []Finding) {
		for _, ipv4 := range []bool{true, false} {
			taken := func(s facts.VRFSID) bool { return s.Takes(ipv4) }
			if len(known.SIDs) > 0 && !slices.ContainsFunc(known.SIDs, taken) {
				continue // none of this family is decapsulated
			}
			if to, p := worst(known.Here, known.Addresses, ipv4,
				facts.Delivered); p.Fate == facts.ReversePath {
				list = append(list, filtered(v.VRF, "packets of clients to "+to.String()))
			}
			to, p := worst(known.Strays, known.Addresses, ipv4, facts.Forwarded)
			list = append(list, strayPassage(n, v, to, p)...)
		}
		return list
	})
}

// worst is the passage of a packet of a family that does not go as it should, if none does: some
// addresses need not be served. Else it is one that goes as it should.
func worst(passages map[netip.Addr]facts.Passage, addresses []netip.Addr, ipv4 bool,
	should facts.Fate) (to netip.Addr, p facts.Passage) {
	for _, a := range addresses {
		passage, asked := passages[a]
		if a.Is4() != ipv4 || !asked {
			continue
		}
		if passage.Fate == should {
			return a, passage
		}
		if p.Fate == "" {
			to, p = a, passage
		}
	}
	return to, p
}

func filtered(device, what string) Finding {
	return Finding{"rp_filter", Broken, device, "the reverse path filter drops " + what,
		"they are received on this device, and the way back to clients is another or none",
		withoutReversePath(device)}
}

// strayPassage judges the way of a stray to an address of a VRF.
func strayPassage(n *config.Node, v config.StrayVRF, to netip.Addr, p facts.Passage) []Finding {
	lost := func(what, why, mend string) []Finding {
		return []Finding{{"backup_route", Broken, v.Backup, what, why, mend}}
	}
	const way = "give the backup device's table a route to the shadow: ip route add default " +
		"encap seg6 mode encap segs SID dev DEV table N"
	switch p.Fate {
	case facts.NoRoute:
		return lost(fmt.Sprintf("strays to %s have no route by which they could leave", to),
			"connections that other servers have break as their packets come here", way)
	case facts.Refused:
		return lost(fmt.Sprintf("the kernel refuses strays to %s", to),
			"by a blackhole, unreachable or prohibit route, or by the reverse path filter", way)
	case facts.Delivered:
		return lost(fmt.Sprintf("strays to %s are delivered on this machine", to),
			"the backup device leads to a table in which the address is this machine's, which "+
				"answers with a RST", way)
	case facts.ReversePath:
		return []Finding{filtered(v.Backup, "strays")}
	case facts.NotForwarding:
		return []Finding{{"sysctl_forwarding", Broken, v.Backup,
			"strays are not forwarded: " + p.Off + " is 0",
			"they are received on this device, for the kernel to send them to the shadow",
			forwardBoth}}
	case facts.Forwarded:
		if p.Source.IsValid() && !slices.ContainsFunc(n.Domain.Infrastructure,
			func(i netip.Prefix) bool { return i.Contains(p.Source) }) {
			return []Finding{{"stray_source", Broken, p.Source.String(),
				"strays leave with this source, which lies outside of domain.infrastructure",
				"the shadow of a Sextant edge drops them as outside_domain",
				"ip sr tunsrc set ADDRESS, one of this machine that lies inside of " +
					"domain.infrastructure"}}
		}
	}
	return nil
}

// astrayAtLeast is how many strays are needed to say that all are.
const astrayAtLeast = 100

func vrfTraffic(n *config.Node, f *facts.Facts, _ string) []Finding {
	if n.Strays == nil || f.Running == nil {
		return nil
	}
	var interfaces []string
	for _, i := range n.Strays.Interfaces {
		interfaces = append(interfaces, i.Name)
	}
	var list []Finding
	for _, v := range f.Running.VRFs {
		switch {
		case v.Here+v.Strays == 0:
			list = append(list, Finding{"vrf_silent", Notable, v.VRF,
				"no packet that continues a connection has come for the VRF yet",
				"nobody sends any to its SIDs by " + strings.Join(interfaces, ", ") +
					", or their sources lie outside of domain.infrastructure: those are left to " +
					"the kernel",
				"see what comes: tcpdump -n -i " + interfaces[0] +
					" -w FILE, and sextant explain -r FILE"})
		case v.Here == 0 && v.Strays >= astrayAtLeast:
			list = append(list, Finding{"vrf_astray", Risk, v.VRF,
				fmt.Sprintf("all %d packets that continue a connection were astray", v.Strays),
				"the VRF has no socket of theirs: the server does not run in it, or has left " +
					"with its connections",
				"run the server in the VRF: ip vrf exec " + v.VRF +
					" COMMAND, or bind its sockets to the device"})
		}
	}
	return list
}
