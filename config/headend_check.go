package config

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
)

// Bounds of the sections headend and merge; agent's tests compare them with the data plane's.
const (
	MaxPolicies    = 256  // POLICIES_MAX in bpf/include/policy.h
	MaxRules       = 128  // RULES_MAX
	MaxLists       = 8    // of a path: LISTS_MAX
	MaxPolicyLists = 64   // different ones of a policy: as many flow ids it has
	MaxHeaderBytes = 192  // HEADER_WORDS
	MaxMerges      = 256  // INSTANCES_MAX in bpf/egress.c
	MaxMergeSIDs   = 16   // MERGE_SIDS_MAX
	MaxMergePaths  = 8    // MEMBERS_MAX
	maxPaths       = 16   // candidate paths of a policy
	minInnerMTU    = 1280 // RFC 8200 section 5
	redundancyBits = 80   // of a redundancy SID, without its argument
	minHistory     = 10   // logarithms; replicate.LeastHistoryLog2
	maxTLVHistory  = 17   // replicate.MostHistoryLog2
	maxSIDHistory  = 14   // of numbers of 16 bits a quarter can be told apart
	burstPercent   = 125  // history for bursts, of what rate and skew need
	protocolTCP    = 6
	protocolUDP    = 17
)

func (h *Headend) faces() []Face {
	return slices.Concat(facesOf(h.Interfaces, Face{Domain: true, Clients: true, Sends: true}),
		plainFaces(h.Uplinks, Face{Domain: true, Sends: true}), plainFaces(h.Local, Face{}))
}

func (h *Headend) check(c *checker) {
	c.source("headend.source", h.Source)
	if len(h.Interfaces)+len(h.Local) == 0 {
		c.invalid("headend.interfaces", "no traffic comes to the head-end",
			`name interfaces ("- {name: eth0}"), or as local those by which this machine's own packets leave`, "headend.local")
	}
	c.xdpInterfaces("headend", h.Interfaces)
	c.deviceNames("headend.uplinks", h.Uplinks, h.Interfaces)
	c.deviceNames("headend.local", h.Local, nil)
	c.count("headend.policies", "policies", len(h.Policies), MaxPolicies)
	c.count("headend.rules", "rules", len(h.Rules), MaxRules)
	c.southbound(h.Southbound, h.Flows)
	if h.Spread > 0 && h.Southbound == nil {
		c.invalid("headend.spread", "no controller gives weights to paths here",
			"add headend.southbound, or delete spread", "headend.southbound")
	}
	policies, identities, flows := unique[string]{}, unique[identity]{}, unique[int]{}
	for i, p := range h.Policies {
		where := fmt.Sprintf("headend.policies[%d]", i)
		policies.once(c, join(where, "name"), p.Name, renameOne, "policy %q is given twice")
		c.srPolicy(where, p, identities, flows)
	}
	for i, r := range h.Rules {
		c.rule(fmt.Sprintf("headend.rules[%d]", i), r, policies)
	}
}

// identity is what others know a policy by.
type identity struct {
	color    int
	endpoint netip.Addr
}

// xdpInterfaces refuses those that another role has: an interface runs one XDP program.
func (c *checker) xdpInterfaces(role string, interfaces []XDPInterface) {
	names := unique[string]{}
	for i, iface := range interfaces {
		where := fmt.Sprintf("%s.interfaces[%d].name", role, i)
		c.interfaceName(where, iface.Name)
		names.once(c, where, iface.Name, deleteOne, "interface %q is given twice")
		c.oneRole(where, role, iface.Name)
	}
}

// oneRole notes which role an interface has. All roles call it, in the order of the schema.
func (c *checker) oneRole(where, role, name string) {
	if c.owners == nil {
		c.owners = unique[string]{}
	}
	if owner, taken := c.owners.add(name, role); taken && owner != role {
		c.conflict(where, fmt.Sprintf("interface %q is an interface of the %s too", name, owner),
			"give each role interfaces of its own")
	}
}

func (c *checker) deviceNames(where string, list []string, besides []XDPInterface) {
	names := unique[string]{}
	for i, name := range list {
		at := fmt.Sprintf("%s[%d]", where, i)
		c.interfaceName(at, name)
		names.once(c, at, name, deleteOne, "interface %q is given twice")
		if slices.ContainsFunc(besides, func(i XDPInterface) bool { return i.Name == name }) {
			c.conflict(at, fmt.Sprintf("interface %q is in interfaces, on all of which packets "+
				"may be sent", name), "delete it here",
				"headend.interfaces")
		}
	}
}

func (c *checker) srPolicy(where string, p SRPolicy, identities unique[identity],
	flows unique[int]) {
	c.name(join(where, "name"), "policy", p.Name)
	if p.Color != 0 && p.Endpoint.IsValid() {
		if owner, taken := identities.add(identity{p.Color, p.Endpoint}, p.Name); taken {
			c.conflict(join(where, "color"), fmt.Sprintf("policy %q has color %d and endpoint %s "+
				"too", owner, p.Color, p.Endpoint),
				"choose another color", join(where, "endpoint"))
		}
	}
	c.some(join(where, "paths"), len(p.Paths), fmt.Sprintf("policy %q has no path", p.Name),
		"add one with name, action and lists")
	if len(p.Paths) > maxPaths {
		c.invalid(join(where, "paths"), fmt.Sprintf("%d paths are given", len(p.Paths)),
			fmt.Sprintf("write at most %d", maxPaths))
	}
	names, lists := unique[string]{}, map[string]SegmentList{}
	for i, path := range p.Paths {
		at := fmt.Sprintf("%s.paths[%d]", where, i)
		names.once(c, join(at, "name"), path.Name, renameOne,
			"path %q is given twice in policy %q", p.Name)
		c.candidatePath(at, path)
		for j, l := range path.Lists {
			c.sameList(fmt.Sprintf("%s.lists[%d]", at, j), p.Name, l, lists, flows)
		}
	}
	if len(lists) > MaxPolicyLists {
		c.invalid(join(where, "paths"), fmt.Sprintf("policy %q has %d different segment lists",
			p.Name, len(lists)),
			fmt.Sprintf("a policy has at most %d", MaxPolicyLists))
	}
	c.innerMTU(where, p)
}

func (c *checker) innerMTU(where string, p SRPolicy) {
	if p.MTU == 0 && p.InnerMTU(c.node.Domain) < minInnerMTU {
		c.invalid(join(where, "mtu"),
			fmt.Sprintf("the outer headers of policy %q leave %d of the %d bytes that the domain "+
				"carries, less than "+
				"IPv6 needs", p.Name, p.InnerMTU(c.node.Domain), c.node.Domain.MTU),
			fmt.Sprintf("write domain.mtu if links carry more, or shorten the lists (%d bytes "+
				"are needed)", minInnerMTU), "domain.mtu",
			join(where, "paths"))
	}
}

func (c *checker) candidatePath(where string, p CandidatePath) {
	c.name(join(where, "name"), "path", p.Name)
	if len(p.Lists) == 0 {
		c.invalid(join(where, "lists"), fmt.Sprintf("path %q has no segment list", p.Name),
			"add one with name and segments")
		return
	}
	c.count(join(where, "lists"), "segment lists", len(p.Lists), MaxLists)
	c.number(join(where, "leastLists"), "leastLists", p.LeastLists, 1, len(p.Lists))
	names := unique[string]{}
	for i, l := range p.Lists {
		at := fmt.Sprintf("%s.lists[%d]", where, i)
		names.once(c, join(at, "name"), l.Name, renameOne,
			"segment list %q is given twice in path %q", p.Name)
		c.segmentList(at, l)
		first := p.Lists[0]
		if p.Action == ActionMirror && len(l.Segments) > 0 && len(first.Segments) > 0 &&
			l.Redundancy != NotNumbered &&
			(l.Redundancy != first.Redundancy || finalOf(l.Segments) != finalOf(first.Segments)) {
			c.conflict(join(at, "segments"), fmt.Sprintf("copies on list %q end at %s (%s), "+
				"those on %q at %s (%s), where nobody knows of "+
				"each other", l.Name, finalOf(l.Segments), l.Redundancy, first.Name,
				finalOf(first.Segments), first.Redundancy),
				"let all lists of a mirror end at one SID, with one form of redundancy",
				join(where, "lists"))
		}
	}
}

func finalOf(segments []netip.Addr) netip.Addr { return segments[len(segments)-1] }

func (c *checker) segmentList(where string, l SegmentList) {
	c.name(join(where, "name"), "segment list", l.Name)
	if len(l.Segments) == 0 {
		c.invalid(join(where, "segments"), fmt.Sprintf("segment list %q has no segments", l.Name),
			"give at least the SID at which packets are decapsulated")
		return
	}
	for i, s := range l.Segments {
		if !plainUnicast(s) || !s.Is6() {
			c.invalid(fmt.Sprintf("%s.segments[%d]", where, i),
				fmt.Sprintf("segment %s is not a plain IPv6 address", s),
				"write a SID, or a carrier of several")
		}
	}
	if bytes := l.HeaderBytes(); bytes > MaxHeaderBytes {
		c.invalid(join(where, "segments"),
			fmt.Sprintf("the outer headers of segment list %q have %d bytes", l.Name, bytes),
			fmt.Sprintf("%d fit in front of a packet: leave segments out, write carriers of "+
				"several, or reduced: true", MaxHeaderBytes))
	}
	c.listFlow(where, l)
}

func (c *checker) listFlow(where string, l SegmentList) {
	at, most := join(where, "flow"), math.MaxUint32
	if l.Redundancy == NumberedInSID {
		most = srv6.MaxRedundancySIDFlow
		final := finalOf(l.Segments)
		if masked, err := final.Prefix(redundancyBits); err == nil && masked.Addr() != final {
			c.invalid(fmt.Sprintf("%s.segments[%d]", where, len(l.Segments)-1),
				fmt.Sprintf("segment %s has bits behind its first %d, "+
					"where redundancy sid puts the number", final, redundancyBits),
				"write "+masked.Addr().String(), join(where, "redundancy"))
		}
	}
	switch {
	case l.Flow != 0 && l.Redundancy == NotNumbered:
		c.invalid(at, fmt.Sprintf("flow %d is of no use to a list that is not numbered", l.Flow),
			"delete it, or choose redundancy tlv or sid",
			join(where, "redundancy"))
	default:
		c.number(at, "flow", l.Flow, 0, most)
	}
}

// sameList checks that what one name stands for in a policy is one list, and that nobody else has
// its flow.
func (c *checker) sameList(where, policy string, l SegmentList, lists map[string]SegmentList,
	flows unique[int]) {
	earlier, known := lists[l.Name]
	if known {
		if !l.same(earlier) {
			c.conflict(join(where, "name"), fmt.Sprintf("segment list %q is another one in an "+
				"earlier path of policy %q", l.Name, policy),
				"write the same segments, reduced, redundancy, flow and state, or choose another "+
					"name", where)
		}
		return
	}
	lists[l.Name] = l
	if l.Flow == 0 {
		return
	}
	if owner, taken := flows.add(l.Flow, policy+" "+l.Name); taken {
		c.conflict(join(where, "flow"), fmt.Sprintf("flow %d is that of list %q", l.Flow, owner),
			"give each list a flow of its own, or none")
	}
}

func (l SegmentList) same(o SegmentList) bool {
	return slices.Equal(l.Segments, o.Segments) && l.Reduced == o.Reduced &&
		l.Redundancy == o.Redundancy && l.Flow == o.Flow &&
		l.State == o.State
}

func (c *checker) rule(where string, r SteeringRule, policies unique[string]) {
	if _, known := policies[r.Policy]; !known {
		c.invalid(join(where, "policy"), fmt.Sprintf("there is no policy %q", r.Policy),
			"add it to policies, or correct the name",
			"headend.policies")
	}
	if r.Source.IsValid() && r.Destination.IsValid() &&
		r.Source.Addr().Is4() != r.Destination.Addr().Is4() {
		c.conflict(join(where, "source"), fmt.Sprintf("source %s and destination %s are of two "+
			"families", r.Source, r.Destination),
			"write a rule for each family", join(where, "destination"))
	}
	for _, ports := range []struct {
		key   string
		value PortRange
	}{{"sourcePorts", r.SourcePorts}, {"destinationPorts", r.DestinationPorts}} {
		if ports.value != (PortRange{}) && r.Protocol != protocolTCP && r.Protocol != protocolUDP {
			c.invalid(join(where, ports.key), "only TCP and UDP have ports",
				"add protocol: tcp or protocol: udp", join(where, "protocol"))
		}
	}
}
