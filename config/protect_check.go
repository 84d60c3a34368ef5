package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Bounds of the protect section.
const (
	maxProtections      = 128
	maxProtectionPaths  = 6 // protect.MaxPaths
	maxProtectionSIDs   = 7
	maxRateKbps         = 1_000_000_000
	maxLocalLinks       = 256
	mostProtectionMatch = 16
)

func (p *Protect) check(c *checker) {
	if c.node.Headend == nil {
		c.conflict("protect", "the node is no head-end, so nothing can be protected here",
			`add "headend:" with interfaces and source`)
	}
	c.network("protect", &p.Network)
	c.count("protect.links", "links", len(p.Links), maxLocalLinks)
	interfaces := unique[string]{}
	for i, l := range p.Links {
		where := fmt.Sprintf("protect.links[%d]", i)
		c.interfaceName(join(where, "interface"), l.Interface)
		interfaces.once(c, join(where, "interface"), l.Interface, deleteOne,
			"interface %q is given twice")
		if from, to, ok := strings.Cut(l.Link, ">"); !ok || from == "" || to == "" {
			c.invalid(join(where, "link"), fmt.Sprintf("%q is no link", l.Link),
				`write it like "R1>R2", or "R1>R2#1" for the second of parallel ones`)
		}
	}
	c.count("protect.protections", "protections", len(p.Protections), maxProtections)
	names, flows := unique[string]{}, unique[int]{}
	for i, protection := range p.Protections {
		where := fmt.Sprintf("protect.protections[%d]", i)
		names.once(c, join(where, "name"), protection.Name, renameOne,
			"protection %q is given twice")
		c.protection(where, protection)
		for _, f := range protection.Flows() {
			if owner, taken := flows.add(f, protection.Name); taken {
				c.conflict(join(where, "flow"), fmt.Sprintf("flow %d is that of protection %q, too",
					f, owner),
					fmt.Sprintf("leave %d flows to each, or write none", ProtectionFlows))
				break
			}
		}
	}
}

// network checks where a topology comes from.
func (c *checker) network(where string, n *Network) {
	switch {
	case n.Topology == FromBGP && c.node.BGP == nil:
		c.conflict(join(where, "topology"),
			"the topology is to come by BGP, which this node does not speak",
			`add "bgp:" with a neighbor whose families include link-state, or name a file`)
	case !slices.Contains([]string{FromBGP, FromOSPF6, FromISIS}, n.Topology) &&
		!path.IsAbs(n.Topology):
		c.invalid(join(where, "topology"), fmt.Sprintf("%q is not an absolute path", n.Topology),
			"write it from / on, or bgp, ospf6 or isis")
	}
	if !path.IsAbs(n.FRR) {
		c.invalid(join(where, "frr"), fmt.Sprintf("%q is not an absolute path", n.FRR),
			"write that of the directory with isisd.vty or ospf6d.vty")
	}
}

func (c *checker) protection(where string, p Protection) {
	c.name(join(where, "name"), "protection", p.Name)
	if p.To == c.node.Protect.Node {
		c.invalid(join(where, "to"), fmt.Sprintf("the traffic leaves at %q, where it enters", p.To),
			"name another node of the topology")
	}
	if p.Copies+p.Spares > maxProtectionPaths {
		c.invalid(join(where, "spares"), fmt.Sprintf("%d copies and %d spares are more than a "+
			"protection has", p.Copies, p.Spares),
			fmt.Sprintf("ask for at most %d paths together", maxProtectionPaths),
			join(where, "copies"))
	}
	if mtu := p.InnerMTU(c.node.Domain); p.SIDs <= maxProtectionSIDs && mtu < minInnerMTU {
		c.invalid(join(where, "sids"), fmt.Sprintf("lists of %d SIDs leave %d of the %d bytes "+
			"that the domain carries, less than "+
			"IPv6 needs", p.SIDs, mtu, c.node.Domain.MTU),
			"write domain.mtu if links carry more, or fewer sids", "domain.mtu")
	}
	if c.node.Headend != nil {
		for _, policy := range c.node.Headend.Policies {
			if policy.Name == p.Name {
				c.conflict(join(where, "name"), fmt.Sprintf("a policy is called %q, too", p.Name),
					"rename one of the two",
					"headend.policies")
			}
		}
	}
	if len(p.Matches) == 0 || len(p.Matches) > mostProtectionMatch {
		c.invalid(join(where, "match"), fmt.Sprintf("%d matches choose the traffic",
			len(p.Matches)),
			fmt.Sprintf(`write 1 to %d, like "- {destination: 2001:db8:7::/48, protocol: udp}"`,
				mostProtectionMatch))
	}
	for i, m := range p.Matches {
		m.Policy = p.Name
		c.rule(fmt.Sprintf("%s.match[%d]", where, i), m, unique[string]{p.Name: p.Name})
	}
}
