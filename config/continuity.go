package config

import (
	"fmt"
	"net/netip"
	"time"

	"sextant/packet/srv6"
)

// Continuity says how connections of an edge's service survive changes of its backends.
type Continuity struct {
	Policy ServicePolicy `key:"policy" default:"offer"`
	Table  Table         `key:"table" default:"rendezvous" help:"edge: how buckets are given to backends: rendezvous, exact or modulo"`
	// offer: hosts to which a new connection is offered, in turn
	Candidates int `key:"candidates" default:"2" range:"1 6" help:"edge: hosts to which a new connection is offered, 1 to 6"`
	// offer: backends that a packet is offered to at most, candidates and previous owners
	Depth int `key:"depth" default:"6" help:"edge: backends that a packet is offered to at most, previous owners included"`
	// offer: how long a previous owner is offered packets; 0: until its place is needed
	DrainTime time.Duration `key:"drainTime" usual:"0" help:"edge: how long a previous owner is offered packets; 0: until its place is needed"`
	// a backend that comes up gets its share little by little; 0: at once
	SlowStart time.Duration `key:"slowStart" usual:"0" help:"edge: time in which a backend that comes up gets its share, like 30s"`
	// ReturnHold is how long a backend that was down, or is new, is draining before it is up, so
	// that all edges know of it before one of them gives it a connection. Those that come within it
	// are up together, after twice that at most: backends that come one after another fill chains.
	// The default is longer than the default checks of two edges can differ: rise times the
	// interval, jitter, and a timeout.
	ReturnHold time.Duration `key:"returnHold" default:"6s" help:"edge: time in which a backend that was down, or is new, gets no new connections"`
}

// ServicePolicy is what an edge does for connections whose bucket has moved.
type ServicePolicy string

// The policies of a service.
const (
	PolicyOffer ServicePolicy = "offer" // the packet carries the chain of who may have it
	// a host that does not know it sends it back, the edge to the owner before (VRF-shadowing)
	PolicyShadow ServicePolicy = "shadow"
	PolicyECMP   ServicePolicy = "ecmp" // nothing, as a router
)

// Table is how buckets are given to backends.
type Table string

// The tables.
const (
	// a function of the backends alone: edges agree. Shares up to chance
	Rendezvous Table = "rendezvous"
	Exact      Table = "exact"  // exact shares; edges agree if they saw the same changes
	Modulo     Table = "modulo" // bucket modulo number of backends, as a router's plain ECMP
)

// Shadow is the edge's part in policy shadow.
type Shadow struct {
	// End.SHADOW: where hosts send strays. The zero value: none
	SID netip.Addr `key:"sid" as:"sid"`
	// LastOffer is the local identifier behind a backend's SID that means "deliver, whatever you
	// know": the host must have an End.DT46 there. It marks the packet that was sent back once, so
	// it can't circle.
	LastOffer srv6.CSID `key:"lastOffer" default:"e046"`
}

// maxWait bounds times that an operator waits for.
const maxWait = 30 * 24 * time.Hour

// ParseWait reads a duration like 90s or 1h30m, not negative and of at most 30 days.
func ParseWait(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil && s == "0" {
		d, err = 0, nil
	}
	if err != nil || d < 0 || d > maxWait {
		return 0, invalid(fmt.Sprintf("%q is not a time to wait", s),
			"write a number with its unit, like 30s or 1h, at most 720h")
	}
	return d, nil
}

func parseLocalCSID(s string) (srv6.CSID, error) {
	id, err := srv6.ParseCSID(s)
	if err != nil || id <= srv6.MaxGlobalCSID {
		return 0, invalid(fmt.Sprintf("%q is not a local identifier", s),
			`write 4 hexadecimal digits from "e000" to "ffff"`)
	}
	return id, nil
}

func (c *checker) continuity(where string, k Continuity) {
	c.number(join(where, "depth"), "depth", k.Depth, min(k.Candidates, maxCandidates),
		maxCandidates)
	switch {
	case k.Policy == PolicyOffer && k.Table == Modulo:
		c.conflict(join(where, "table"),
			"table modulo moves nearly all buckets at each change, more than policy offer can keep",
			"write table: rendezvous, or policy: ecmp or shadow", join(where, "policy"))
	case k.Table == Exact && k.Candidates > 1 && c.node.Edge != nil &&
		(len(c.node.Edge.Peers) > 0 || c.node.Edge.Etcd != nil):
		c.conflict(join(where, "candidates"),
			fmt.Sprintf("with table exact an edge that starts from chains of other edges "+
				"can't choose the second of %d candidates as they do", k.Candidates),
			"write candidates: 1, or table: rendezvous, or delete edge.peers and edge.etcd if "+
				"this is the only edge",
			join(where, "table"), "edge.peers", "edge.etcd")
	case k.Policy == PolicyShadow && c.node.Edge != nil && !c.node.Edge.Shadow.SID.IsValid():
		c.invalid(join(where, "policy"), "policy shadow needs a SID to which hosts send strays",
			"add shadow with a sid like fcbb:bb00:d000:: to edge, and the same SID as backup to "+
				"the hosts' SIDs")
	}
}

// maxPeers bounds whom an edge asks when it starts.
const maxPeers = 16

func (c *checker) peers(peers []netip.AddrPort) {
	c.count("edge.peers", "peers", len(peers), maxPeers)
	seen := unique[netip.AddrPort]{}
	for i, p := range peers {
		seen.once(c, fmt.Sprintf("edge.peers[%d]", i), p, deleteOne, "peer %s is given twice")
	}
}

func (c *checker) shadow(s Shadow) {
	if !s.SID.IsValid() {
		return
	}
	block := c.node.Domain.Block
	if ids, err := block.CSIDs(s.SID); !block.Contains(s.SID) || err != nil || len(ids) != 1 ||
		!ids[0].Global() {
		c.invalid("edge.shadow.sid", fmt.Sprintf(
			"sid %s is not one global identifier behind the block %s", s.SID, block.Prefix()),
			fmt.Sprintf("write the block, an identifier from 1 to %s that no backend has, and "+
				"zeros", srv6.MaxGlobalCSID), "domain.block")
	}
	for _, service := range c.node.Edge.Services {
		for _, b := range service.Backends {
			if b.SID == s.SID {
				c.conflict("edge.shadow.sid", fmt.Sprintf(
					"sid %s is that of backend %q of service %q", s.SID, b.Name, service.Name),
					"give End.SHADOW a SID of its own")
				return
			}
		}
	}
}

// String writes what a person wants to know first.
func (k Continuity) String() string {
	if k.Policy != PolicyOffer {
		return fmt.Sprintf("policy %s, table %s", k.Policy, k.Table)
	}
	return fmt.Sprintf("policy %s, table %s, candidates %d", k.Policy, k.Table, k.Candidates)
}

// String writes both SIDs, or nothing.
func (s Shadow) String() string {
	if !s.SID.IsValid() {
		return ""
	}
	return fmt.Sprintf("%s last offer %s", s.SID, s.LastOffer)
}
