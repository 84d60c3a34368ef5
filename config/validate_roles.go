package config

import (
	"fmt"
	"net/netip"

	"sextant/packet/lists"
	"sextant/packet/srv6"
)

func (e *Edge) faces() []Face {
	return facesOf(e.xdpInterfaces(), Face{Domain: true, Clients: true, Sends: true})
}

func (e *Edge) xdpInterfaces() []XDPInterface {
	return lists.Map(e.Interfaces, func(i EdgeInterface) XDPInterface { return XDPInterface(i) })
}

func (e *Edge) check(c *checker) {
	if needed := overheadOf(c.anew.Edge); c.node.Domain.Overhead < needed {
		c.invalid("domain.overhead",
			fmt.Sprintf("overhead %d is less than the %d bytes that encapsulation %s takes",
				c.node.Domain.Overhead, needed, e.Encapsulation),
			overheadMend(e, needed), "edge.encapsulation")
	}
	c.edgeHMAC(e)
	c.source("edge.source", e.Source)
	c.site("edge.site", e.Site)
	c.some("edge.interfaces", len(e.Interfaces), "the edge has no interface",
		`add "- {name: eth0, side: mixed}"`)
	c.xdpInterfaces("edge", e.xdpInterfaces())
	c.shadow(e.Shadow)
	c.flowCache(e)
	c.peers(e.Peers)
	c.etcd(e.Etcd)
	c.edgeNetwork(e)
	c.services(e)
}

// overheadMend says what makes the encapsulation fit.
func overheadMend(e *Edge, needed int) string {
	text := fmt.Sprintf("write %d on all nodes of the domain", needed)
	if e.Encapsulation != Carrier {
		return text + ", or choose encapsulation carrier"
	}
	return text + fmt.Sprintf(", or let paths and chains have %d SIDs at most, which one address "+
		"holds", srv6.MaxCarrierCSIDs)
}

func (c *checker) source(where string, source netip.Addr) {
	switch _, inside := c.infrastructure(source); {
	case !source.Is6() || !plainUnicast(source):
		c.invalid(where, fmt.Sprintf("source %s is not a plain IPv6 address", source),
			"use an address of this machine that lies inside infrastructure")
	case !inside:
		c.invalid(where, fmt.Sprintf("source %s lies in no infrastructure prefix, so nodes would "+
			"refuse its packets", source),
			"use an address inside infrastructure, or add its prefix there",
			"domain.infrastructure")
	}
}

func (c *checker) services(e *Edge) {
	c.count("edge.services", "services", len(e.Services), maxEdgeServices)
	names, endpoints := unique[string]{}, unique[Endpoint]{}
	known := sameServices(e.Services, c.valid) // to be distinct
	found := c.eachService(e)
	for i := range e.Services {
		s := &e.Services[i]
		shared := i < len(c.valid) && sharedBy(s, &c.valid[i])
		if shared && known {
			continue
		}
		c.problems = append(c.problems, found[i].service...)
		c.distinct(fmt.Sprintf("edge.services[%d]", i), s.Name, s.Endpoint, names, endpoints)
		c.problems = append(c.problems, found[i].reach...)
	}
}

// serviceProblems are what is wrong with a service alone.
type serviceProblems struct{ service, reach []*Problem }

// eachService looks into services that are not the same as in the valid node, on all processors.
func (c *checker) eachService(e *Edge) []serviceProblems {
	found := make([]serviceProblems, len(e.Services))
	var numbers []int
	for i := range e.Services {
		if i >= len(c.valid) || !sharedBy(&e.Services[i], &c.valid[i]) {
			numbers = append(numbers, i)
		}
	}
	_ = inParts(numbers, func(some []int) error { // never fails
		for _, i := range some {
			where, s := fmt.Sprintf("edge.services[%d]", i), e.Services[i]
			service, reach := checker{node: c.node}, checker{node: c.node}
			service.service(where, s)
			reach.reach(where, s, e)
			found[i] = serviceProblems{service.problems, reach.problems}
		}
		return nil
	})
	return found
}

// service checks what a service says about itself, reach how packets get to its backends.
func (c *checker) service(where string, s Service) {
	c.name(join(where, "name"), "service", s.Name)
	c.endpoint(where, s.Endpoint)
	c.continuity(where, s.Continuity)
	c.newConnections(where, s)
	c.quic(where, s)
	c.check(where, s)
}

func (c *checker) reach(where string, s Service, e *Edge) {
	c.backends(where, s, e)
	c.learned(where, s)
	c.servicePaths(where, s, e)
	c.sites(where, s)
	c.order(where, s)
	c.copies(where, s, e)
}

func (c *checker) backends(where string, s Service, e *Edge) {
	names, sids := unique[string]{}, unique[netip.Addr]{}
	for i, b := range s.Backends {
		at := fmt.Sprintf("%s.backends[%d]", where, i)
		c.name(join(at, "name"), "backend", b.Name)
		c.backendSID(join(at, "sid"), b.SID, e.Encapsulation)
		names.once(c, join(at, "name"), b.Name, renameOne,
			"backend %q is given twice in service %q", s.Name)
		if owner, taken := sids.add(b.SID, b.Name); taken && b.SID.IsValid() {
			c.conflict(join(at, "sid"), fmt.Sprintf("sid %s is used by backend %q", b.SID, owner),
				"give each backend of a service its own SID")
		}
	}
	if buckets, _ := e.BucketsOf(&s); len(s.Backends) > buckets {
		c.invalid(join(where, "backends"),
			fmt.Sprintf("%d backends do not fit %d buckets", len(s.Backends), buckets),
			fmt.Sprintf("write maxBackends: %d", min(len(s.Backends), mostMaxBackends)),
			join(where, "maxBackends"))
	}
}

func (c *checker) backendSID(where string, sid netip.Addr, encapsulation Encapsulation) {
	if !sid.Is6() || !plainUnicast(sid) {
		c.invalid(where, fmt.Sprintf("sid %s is not a plain IPv6 address", sid),
			"use an address that is routed to the backend")
		return
	}
	if encapsulation != Carrier {
		return
	}
	block := c.node.Domain.Block
	mend := fmt.Sprintf("write the block, an identifier from 1 to %s and zeros, or choose "+
		"encapsulation srh",
		srv6.MaxGlobalCSID)
	if !block.Contains(sid) {
		c.invalid(where, fmt.Sprintf("sid %s is not in the SID block %s, so no carrier can hold it",
			sid,
			block.Prefix()), mend, "domain.block", "edge.encapsulation")
		return
	}
	if ids, err := block.CSIDs(sid); err != nil || len(ids) != 1 || !ids[0].Global() {
		c.invalid(where,
			fmt.Sprintf("sid %s is not one global identifier behind the block %s, so no carrier "+
				"can hold it", sid,
				block.Prefix()), mend, "domain.block", "edge.encapsulation")
	}
}

func (h *Host) faces() []Face {
	return facesOf(h.xdpInterfaces(), Face{Domain: true, Sends: true})
}

func (h *Host) xdpInterfaces() []XDPInterface {
	return lists.Map(h.Interfaces, func(i HostInterface) XDPInterface {
		return XDPInterface{Name: i.Name, Mode: i.Mode}
	})
}

func (h *Host) check(c *checker) {
	if h.Cgroup != "" {
		c.directory("host.cgroup", h.Cgroup)
	}
	c.some("host.interfaces", len(h.Interfaces), "the host has no interface", `add "- {name: eth0}"`)
	c.xdpInterfaces("host", h.xdpInterfaces())
	c.hostHMAC(h.HMAC)
	c.sids(h.SIDs)
	c.learners(h)
	c.count("host.services", "services", len(h.Services), maxHostServices)
	names, endpoints := unique[string]{}, unique[Endpoint]{}
	for i, s := range h.Services {
		where := fmt.Sprintf("host.services[%d]", i)
		c.name(join(where, "name"), "service", s.Name)
		c.endpoint(where, s.Endpoint)
		c.distinct(where, s.Name, s.Endpoint, names, endpoints)
		c.accept(join(where, "accept"), s.Accept)
		c.delay(where, s)
		c.hostCheck(where, s)
		c.hostQUIC(where, s)
	}
}

func (c *checker) sids(sids []SID) {
	c.some("host.sids", len(sids), "the host has no SID",
		`add "- {prefix: "fcbb:bb00:1::/48", behavior: End.OFFER}"`)
	prefixes := unique[netip.Prefix]{}
	for i, s := range sids {
		where := fmt.Sprintf("host.sids[%d].prefix", i)
		prefixes.once(c, where, s.Prefix, deleteOne, "prefix %s is given twice")
		c.sid(where, fmt.Sprintf("host.sids[%d].behavior", i), s)
		c.backup(fmt.Sprintf("host.sids[%d].backup", i), s)
	}
	c.count("host.sids", "SIDs", len(sids), maxSIDs)
}

// sid checks that the bits behind the prefix are what its behaviour takes
// them for. End.OFFER shifts the 16 bits behind the block away, so its prefix
// is the block and one identifier, or a whole address, which has no argument.
func (c *checker) sid(where, behavior string, s SID) {
	block := c.node.Domain.Block
	switch {
	case !s.Prefix.IsValid():
		c.invalid(where, "the SID has no prefix", `write it like "fcbb:bb00:1::/48"`)
	case s.Prefix.Overlaps(block.Prefix()) && s.Prefix.Bits() <= block.Prefix().Bits():
		c.invalid(where, fmt.Sprintf("prefix %s takes the whole SID block", s.Prefix),
			"write a longer prefix",
			"domain.block")
	case s.Behavior != srv6.EndOFFER || s.Prefix.IsSingleIP():
	case !block.Contains(s.Prefix.Addr()) || s.Prefix.Bits() != block.Prefix().Bits()+16:
		c.invalid(where, fmt.Sprintf("prefix %s cannot be shifted by End.OFFER", s.Prefix),
			fmt.Sprintf("write the block %s, an identifier and /48, or a whole address with /128",
				block.Prefix()), "domain.block", behavior)
	}
}

// backup checks where a SID sends strays: End.DT*.COND needs that, and an address to send them
// from.
func (c *checker) backup(where string, s SID) {
	conditional := conditionalBehavior(s.Behavior)
	switch {
	case conditional && !s.Backup.IsValid():
		c.invalid(where, fmt.Sprintf("%s at %s has no backup", s.Behavior, s.Prefix),
			`add "backup: " and the edge's End.SHADOW SID`)
	case !conditional && s.Backup.IsValid():
		c.invalid(where, fmt.Sprintf("%s at %s has a backup, but sends nothing there", s.Behavior,
			s.Prefix),
			"delete it, or choose behavior End.DT46.COND")
	case conditional && !c.node.Host.Source.IsValid():
		c.invalid("host.source", "the host has no address to send strays from",
			`add "source: " and an address of this machine that lies inside infrastructure`)
	case conditional:
		c.source("host.source", c.node.Host.Source)
	}
}

func conditionalBehavior(b srv6.Behavior) bool {
	return b == srv6.EndDT4COND || b == srv6.EndDT6COND || b == srv6.EndDT46COND
}

func (c *checker) accept(where string, a Accept) {
	switch a.Policy {
	case Dynamic:
		c.bounds(where, a)
		if a.Initial > a.Workers {
			c.invalid(join(where, "initial"), fmt.Sprintf("initial %d is more than workers %d",
				a.Initial, a.Workers),
				"begin with a threshold that the server can reach", join(where, "workers"))
		}
	}
}

// delay checks that the host sees connections begin and end: only so it knows how long they take.
func (c *checker) delay(where string, s HostService) {
	policy := join(where, "accept.policy")
	switch {
	case s.Accept.Policy != Delay:
	case s.Protocol != TCP:
		c.conflict(policy, fmt.Sprintf("policy delay can't time the connections of service %q of "+
			"protocol %s", s.Name, s.Protocol), "choose policy average", join(where, "protocol"))
	case s.Load.Kind != LoadConnections:
		c.conflict(policy, fmt.Sprintf("policy delay counts the connections of service %q itself, "+
			"and its load is %s", s.Name, s.Load), "choose policy average, or delete load",
			join(where, "load"))
	}
}

func (c *checker) bounds(where string, a Accept) {
	low, high := join(where, "low"), join(where, "high")
	if a.LowPermille >= a.HighPermille {
		c.invalid(low, fmt.Sprintf("low %s is not below high %s", FormatPermille(a.LowPermille),
			FormatPermille(a.HighPermille)), "let low be less than high", high)
	}
}
