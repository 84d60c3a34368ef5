package doctor

import (
	"fmt"

	"sextant/config"
	"sextant/linux/facts"
)

// headendRoom is what the outer headers of policies leave for the packets that come to a head-end.
func headendRoom(n *config.Node, f *facts.Facts, _ string) []Finding {
	name, room, headers := narrowest(n)
	if name == "" {
		return nil
	}
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		if at.Role != "headend" || !at.Clients || i.MTU <= room {
			return nil
		}
		what := fmt.Sprintf("packets of more than %d bytes can arrive, and do not fit behind the "+
			"%d bytes of headers of %s",
			room, headers, name)
		mend := fmt.Sprintf("let the domain carry %d bytes: raise its links' MTU, then "+
			"domain.mtu on all nodes; or shorten the list: "+
			"reduced: true, carriers of several segments", i.MTU+headers)
		if headers == 0 {
			what = fmt.Sprintf("packets of more than %d bytes can arrive, and %s takes none that "+
				"are larger", room, name)
			mend = "write another mtu into the policy, if the links of its lists carry more"
		}
		return []Finding{{"mtu_headroom", Notable, at.Name, what,
			"those that rules choose are answered with Packet Too Big or Fragmentation Needed; a " +
				"sender who does not hear of it loses them",
			mend}}
	})
}

// narrowest is the policy or protection that leaves packets the least room, in bytes, and the
// length of its longest list's headers; 0 if it says itself how large packets may be.
func narrowest(n *config.Node) (name string, room, headers int) {
	take := func(what string, inner, outer int) {
		if name == "" || inner < room {
			name, room, headers = what, inner, outer
		}
	}
	if n.Headend != nil {
		for _, p := range n.Headend.Policies {
			inner, outer := p.InnerMTU(n.Domain), 0
			if p.MTU == 0 {
				outer = n.Domain.MTU - inner
			}
			take("policy "+p.Name, inner, outer)
		}
	}
	if n.Protect != nil {
		for _, p := range n.Protect.Protections {
			inner := p.InnerMTU(n.Domain)
			take("protection "+p.Name, inner, n.Domain.MTU-inner)
		}
	}
	return name, room, headers
}

// uplinks finds those of a head-end by which frames of XDP can't leave. What a veth needs, vethPeer
// tells.
func uplinks(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		if !at.Plain || !at.Sends || i.Driver == "veth" && i.Features.Native || !i.Features.Known ||
			i.Features.Send || !redirects(n, f) {
			return nil
		}
		return []Finding{{"uplink_send", Broken, at.Name,
			"frames that the head-end's program sends by this uplink are lost",
			"the driver (" + i.Driver + ") takes no frames of XDP programs on other interfaces, " +
				"at least as long as none runs on it",
			"use another interface, or run a program on it; left out of headend.uplinks, the " +
				"kernel sends by it: mirrored packets are not"}}
	})
}

// redirects is whether the head-end's program runs in a driver somewhere, so that frames are handed
// from driver to driver.
func redirects(n *config.Node, f *facts.Facts) bool {
	for _, i := range n.Headend.Interfaces {
		if known := f.Interfaces[i.Name]; known.XDP == "native" || known.XDP == "" &&
			known.Features.Native && i.Mode != config.Generic {
			return true
		}
	}
	return false
}
