package config

import (
	"fmt"
	"net/netip"
	"time"

	"sextant/srv6"
)

// Continuity says how connections of an edge's service survive changes of its backends.
type Continuity struct {
	Policy     ServicePolicy
	Table      Table
	Candidates int           // offer: hosts to which a new connection is offered, in turn
	Depth      int           // offer: backends that a packet is offered to at most, candidates and past owners
	DrainTime  time.Duration // offer: how long a past owner is offered packets; 0: until its place is needed
	SlowStart  time.Duration // a backend that comes up gets its share little by little; 0: at once
	// ReturnHold is how long a backend that was down, or is new, is draining before it is up, so that all edges know of it before one
	// of them gives it a connection.
	ReturnHold time.Duration
}

// ServicePolicy is what an edge does for connections whose bucket has moved.
type ServicePolicy string

// The policies of a service.
const (
	PolicyOffer  ServicePolicy = "offer"  // the packet carries the chain of who may have it
	PolicyShadow ServicePolicy = "shadow" // a host that does not know it sends it back, the edge to the owner before (VRF-shadowing)
	PolicyECMP   ServicePolicy = "ecmp"   // nothing, as a router
)

// Table is how buckets are given to backends.
type Table string

// The tables.
const (
	Rendezvous Table = "rendezvous" // a function of the backends alone: edges agree. Shares up to chance
	Exact      Table = "exact"      // exact shares; edges agree if they saw the same changes
	Modulo     Table = "modulo"     // bucket modulo number of backends, as a router's plain ECMP
)

// Shadow is the edge's part in policy shadow.
type Shadow struct {
	SID netip.Addr // End.SHADOW: where hosts send strays. The zero value: none
	// LastOffer is the local identifier behind a backend's SID that means "deliver, whatever you know": the host must have
	// an End.DT46 there. It marks the packet that was sent back once, so it can't circle.
	LastOffer srv6.CSID
}

// What a service or an edge need not say.
const (
	DefaultDepth = srv6.MaxCarrierCSIDs
	// DefaultReturnHold is longer than the default checks of two edges can differ: rise x interval, jitter, and a timeout.
	DefaultReturnHold = 6 * time.Second
	DefaultLastOffer  = srv6.CSID(0xe046)
)

var (
	servicePolicies = []ServicePolicy{PolicyOffer, PolicyShadow, PolicyECMP}
	tables          = []Table{Rendezvous, Exact, Modulo}
)

func newContinuity() Continuity {
	return Continuity{Policy: PolicyOffer, Table: Rendezvous, Candidates: DefaultCandidates, Depth: DefaultDepth,
		ReturnHold: DefaultReturnHold}
}

// maxWait bounds times that an operator waits for.
const maxWait = 30 * 24 * time.Hour

func continuityFields(k *Continuity) []field {
	return []field{
		{"policy", intoText(&k.Policy), ""},
		{"table", intoText(&k.Table), ""},
		{"candidates", intoNumber(&k.Candidates), ""},
		{"depth", intoNumber(&k.Depth), ""},
		{"drainTime", into(&k.DrainTime, ParseWait), ""},
		{"slowStart", into(&k.SlowStart, ParseWait), ""},
		{"returnHold", into(&k.ReturnHold, ParseWait), ""},
	}
}

func readListener(v value) (a netip.AddrPort) {
	into(&a, ParseListener)(v)
	return a
}

func readShadow(v value, s *Shadow) {
	s.LastOffer = DefaultLastOffer
	v.mapping(
		field{"sid", into(&s.SID, ParseSID), `"sid: " and the SID to which hosts send strays, like "fcbb:bb00:d000::"`},
		field{"lastOffer", into(&s.LastOffer, parseLocalCSID), ""},
	)
}

// ParseWait reads a duration like 90s or 1h30m, not negative and of at most 30 days.
func ParseWait(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil && s == "0" {
		d, err = 0, nil
	}
	if err != nil || d < 0 || d > maxWait {
		return 0, invalid(fmt.Sprintf("%q is not a time to wait", s), "write a number with its unit, like 30s or 1h, at most 720h")
	}
	return d, nil
}

func parseLocalCSID(s string) (srv6.CSID, error) {
	id, err := srv6.ParseCSID(s)
	if err != nil || id <= srv6.MaxGlobalCSID {
		return 0, invalid(fmt.Sprintf("%q is not a local identifier", s), `write 4 hexadecimal digits from "e000" to "ffff"`)
	}
	return id, nil
}

func (c *checker) continuity(where string, k Continuity) {
	word(c, join(where, "policy"), "policy", k.Policy, servicePolicies)
	word(c, join(where, "table"), "table", k.Table, tables)
	c.number(join(where, "candidates"), "candidates", k.Candidates, 1, maxCandidates)
	c.number(join(where, "depth"), "depth", k.Depth, min(k.Candidates, maxCandidates), maxCandidates)
	switch {
	case k.Policy == PolicyOffer && k.Table == Modulo:
		c.conflict(join(where, "table"), "table modulo moves nearly all buckets at each change, more than policy offer can keep",
			"write table: rendezvous, or policy: ecmp or shadow", join(where, "policy"))
	case k.Table == Exact && k.Candidates > 1 && c.node.Edge != nil && (len(c.node.Edge.Peers) > 0 || c.node.Edge.Etcd != nil):
		c.conflict(join(where, "candidates"), fmt.Sprintf("with table exact an edge that starts from chains of other edges "+
			"can't choose the second of %d candidates as they do", k.Candidates),
			"write candidates: 1, or table: rendezvous, or delete edge.peers and edge.etcd if this is the only edge",
			join(where, "table"), "edge.peers", "edge.etcd")
	case k.Policy == PolicyShadow && c.node.Edge != nil && !c.node.Edge.Shadow.SID.IsValid():
		c.invalid(join(where, "policy"), "policy shadow needs a SID to which hosts send strays",
			"add shadow with a sid like fcbb:bb00:d000:: to edge, and the same SID as backup to the hosts' SIDs")
	}
}

// maxPeers bounds whom an edge asks when it starts.
const maxPeers = 16

func (c *checker) peers(peers []netip.AddrPort) {
	c.count("edge.peers", "peers", len(peers), maxPeers)
	seen := unique[netip.AddrPort]{}
	for i, p := range peers {
		if _, taken := seen.add(p, ""); taken {
			c.conflict(fmt.Sprintf("edge.peers[%d]", i), fmt.Sprintf("peer %s is given twice", p), "delete one of the two")
		}
	}
}

func (c *checker) shadow(s Shadow) {
	if !s.SID.IsValid() {
		return
	}
	block := c.node.Domain.Block
	if ids, err := block.CSIDs(s.SID); !block.Contains(s.SID) || err != nil || len(ids) != 1 || !ids[0].Global() {
		c.invalid("edge.shadow.sid", fmt.Sprintf("sid %s is not one global identifier behind the block %s", s.SID, block.Prefix()),
			fmt.Sprintf("write the block, an identifier from 1 to %s that no backend has, and zeros", srv6.MaxGlobalCSID), "domain.block")
	}
	for _, service := range c.node.Edge.Services {
		for _, b := range service.Backends {
			if b.SID == s.SID {
				c.conflict("edge.shadow.sid", fmt.Sprintf("sid %s is that of backend %q of service %q", s.SID, b.Name, service.Name),
					"give End.SHADOW a SID of its own")
				return
			}
		}
	}
}

func (d *differ) continuity(title string, a, b Continuity) {
	d.modify(title, "policy", string(a.Policy), string(b.Policy))
	d.modify(title, "table", string(a.Table), string(b.Table))
	d.number(title, "candidates", a.Candidates, b.Candidates)
	d.number(title, "depth", a.Depth, b.Depth)
	d.modify(title, "drainTime", a.DrainTime.String(), b.DrainTime.String())
	d.modify(title, "slowStart", a.SlowStart.String(), b.SlowStart.String())
	d.modify(title, "returnHold", a.ReturnHold.String(), b.ReturnHold.String())
}

// String writes what a person wants to know first.
func (k Continuity) String() string {
	if k.Policy != PolicyOffer {
		return fmt.Sprintf("policy %s, table %s", k.Policy, k.Table)
	}
	return fmt.Sprintf("policy %s, table %s, candidates %d", k.Policy, k.Table, k.Candidates)
}

func (d *differ) peers(a, b []netip.AddrPort) {
	named(d, a, b, netip.AddrPort.String,
		func(p netip.AddrPort) (string, string) { return "edge: peer " + p.String(), "" },
		func(string, netip.AddrPort, netip.AddrPort) {})
}

func (d *differ) shadow(a, b Shadow) {
	if a != b {
		d.modify("edge", "shadow", a.String(), b.String())
	}
}

// String writes both SIDs, or nothing.
func (s Shadow) String() string {
	if !s.SID.IsValid() {
		return ""
	}
	return fmt.Sprintf("%s last offer %s", s.SID, s.LastOffer)
}

// documentShadow is the shape of edge.shadow in the file.
type documentShadow struct {
	SID       string `yaml:"sid" json:"sid"`
	LastOffer string `yaml:"lastOffer" json:"lastOffer"`
}

func shadowDocument(s Shadow) *documentShadow {
	if !s.SID.IsValid() {
		return nil
	}
	return &documentShadow{SID: s.SID.String(), LastOffer: s.LastOffer.String()}
}
