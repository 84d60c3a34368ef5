package doctor

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sextant/config"
	"sextant/linux/facts"
)

// unguarded names SIDs which no border of the domain guards: they are neither in the block nor in a
// locator of the node file.
func unguarded(n *config.Node, f *facts.Facts, _ string) []Finding {
	seen := map[netip.Addr]bool{}
	var outside []string
	for _, sid := range append(configuredSIDs(n), vrfSIDsOf(n, f)...) {
		if !sid.IsValid() || seen[sid] || n.Domain.Block.Contains(sid) || inLocator(n, sid) {
			continue
		}
		seen[sid] = true
		outside = append(outside, sid.String())
	}
	if len(outside) == 0 {
		return nil
	}
	return []Finding{{"sid_unguarded", Risk, strings.Join(outside, " "),
		fmt.Sprintf("these SIDs lie outside the block %s, and domain.locators does not name "+
			"their prefixes", n.Domain.Block.Prefix()),
		"the edges of the domain let packets from outside through to them, so that any host can " +
			"use them (RFC 8754 section 5.1)",
		"add their prefixes to domain.locators, on all nodes; SIDs have prefixes of their own, " +
			"in which nothing else lives"}}
}

// mixedSides names interfaces that clients and the SR domain share.
func mixedSides(n *config.Node, _ *facts.Facts, _ string) (list []Finding) {
	for _, at := range n.Faces() {
		if !at.Domain || !at.Clients {
			continue
		}
		list = append(list, Finding{"side_mixed", Notable, at.Name,
			fmt.Sprintf("the %s's interface is mixed: clients or hosts and the SR domain are "+
				"behind it",
				at.Role),
			"a packet whose source lies in domain.infrastructure is trusted there, from any " +
				"sender: " +
				"forged numbers stop a protected flow, forged strays and errors reach the edge",
			"let the routers in front refuse such sources from outside; or give clients an " +
				"interface " +
				"of their own with side: external"})
	}
	return list
}

func inLocator(n *config.Node, sid netip.Addr) bool {
	return slices.ContainsFunc(n.Domain.Locators, func(l netip.Prefix) bool {
		return l.Contains(sid)
	})
}

// configuredSIDs are all that the node file names.
func configuredSIDs(n *config.Node) (sids []netip.Addr) {
	if n.Edge != nil {
		sids = append(sids, n.Edge.Shadow.SID)
		for _, s := range n.Edge.Services {
			for _, b := range s.Backends {
				sids = append(sids, b.SID)
			}
		}
	}
	if n.Host != nil {
		for _, s := range n.Host.SIDs {
			sids = append(sids, s.Prefix.Addr(), s.Backup)
		}
	}
	if n.Headend != nil {
		for _, p := range n.Headend.Policies {
			for _, path := range p.Paths {
				for _, l := range path.Lists {
					sids = append(sids, l.Segments...)
				}
			}
		}
	}
	if n.Merge != nil {
		for _, s := range n.Merge.SIDs {
			sids = append(sids, s.Prefix.Addr())
		}
	}
	return sids
}

// vrfSIDsOf are those of the node's VRFs, of Sextant or of other software.
func vrfSIDsOf(n *config.Node, f *facts.Facts) (sids []netip.Addr) {
	if n.Strays == nil {
		return nil
	}
	for _, v := range n.Strays.VRFs {
		for _, s := range f.VRFs[v.Name()].SIDs {
			sids = append(sids, s.Prefix.Addr())
		}
	}
	return sids
}
