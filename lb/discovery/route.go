package discovery

import (
	"net/netip"
	"slices"

	"sextant/config"
	"sextant/packet/srv6"
)

// Route is what one peer says of a host: it serves a VIP at a SID (RFC 9252).
type Route struct {
	// who told: a BGP peer, ViaFPM or ViaKernel; the zero value: this node itself
	Peer          netip.Addr
	Distinguisher string // of the host, from whichever peer
	Prefix        netip.Prefix
	SID           netip.Addr
	Structure     Structure // of the SID; the zero value: it was not told
	Behavior      srv6.Behavior
	Weight        int
	Draining      bool
	Services      []Port // which services of the VIP; nil: all
}

// Structure is how many bits of a SID are what (RFC 9252 section 3.2.1).
type Structure struct{ Block, Node, Function, Argument uint8 }

// Port is a service of a VIP.
type Port struct {
	Protocol config.Protocol `json:"protocol"`
	Port     uint16          `json:"port"` // config.AnyPort: any
}

// Who told, where no BGP peer did. They are no addresses of peers, because these have no zone of
// such a name.
var (
	// routing software, to this node's forwarding plane manager
	ViaFPM    = netip.IPv6Unspecified().WithZone("fpm")
	ViaKernel = netip.IPv6Unspecified().WithZone("kernel") // a routing table of the kernel
)

// Source says by which way routing told of something.
type Source string

// The sources.
const (
	BGP    Source = "bgp"
	FPM    Source = "fpm"
	Kernel Source = "kernel"
)

// SourceOf is the way by which a peer told.
func SourceOf(peer netip.Addr) Source {
	switch peer {
	case ViaFPM:
		return FPM
	case ViaKernel:
		return Kernel
	}
	return BGP
}

// serves reports whether the route is for the endpoint.
func (r Route) serves(e config.Endpoint) bool {
	return r.Prefix.IsSingleIP() && r.Prefix.Addr() == e.VIP &&
		(r.Services == nil || slices.Contains(r.Services, Port{e.Protocol, e.Port}))
}

// Reason is why a route is ignored.
type Reason string

// The reasons, as labels of a metric.
const (
	NoService    Reason = "no_service"    // no service of this edge has this address and port
	NotASID      Reason = "not_a_sid"     // the SID can't be written into the edge's encapsulation
	BadStructure Reason = "sid_structure" // the SID's structure is not that of the edge's domain
	// what the host does at the SID is not what the service's policy needs
	BadBehavior Reason = "behavior"
	StaticSID   Reason = "static_sid"   // the node file has a backend with this SID
	SIDConflict Reason = "sid_conflict" // two hosts claim the same SID
	// the next hop has several segments, or the route is for more than one address
	Segments     Reason = "segments"
	NameConflict Reason = "name_conflict" // the node file has another backend of this name
	TooMany      Reason = "too_many"      // the service can't have more backends
)

// Refusal is a route that is ignored.
type Refusal struct {
	Route   Route
	Service string // "" if it is none's
	Reason  Reason
}

// Service is a service of the edge.
type Service struct {
	config.Service
	Limit int // of backends, those of the node file included
}

// behaviors lists what hosts of a service may do at their SID. Without a chain, a host that always
// takes what it gets will do.
func behaviors(s config.Service) []srv6.Behavior {
	v4 := s.VIP.Is4()
	switch s.Policy {
	case config.PolicyShadow:
		if v4 {
			return []srv6.Behavior{srv6.EndDT4COND, srv6.EndDT46COND}
		}
		return []srv6.Behavior{srv6.EndDT6COND, srv6.EndDT46COND}
	case config.PolicyECMP:
		if v4 {
			return []srv6.Behavior{srv6.EndOFFER, srv6.EndDT4, srv6.EndDT46}
		}
		return []srv6.Behavior{srv6.EndOFFER, srv6.EndDT6, srv6.EndDT46}
	}
	return []srv6.Behavior{srv6.EndOFFER}
}

// opaque is the behaviour of a SID that does not tell it (RFC 9252 section 3.1). Some routers write
// it over the behaviour of routes that they pass on, as FRR 8 does.
const opaque srv6.Behavior = 65535

// does reports whether the host does at the SID what the service needs. Where the behaviour got
// lost, a route that names its services is one of our own hosts', who announce nothing else.
func (r Route) does(s config.Service) bool {
	if SourceOf(r.Peer) != BGP {
		return true // tables of routes do not say; the operator configured their use here
	}
	return slices.Contains(behaviors(s), r.Behavior) || r.Behavior == opaque && r.Services != nil
}

// Domain says which SIDs an edge can use.
type Domain struct {
	Block   srv6.Block
	Carrier bool // they are written into carriers: the block and one global identifier
}

const idBits = 16 // of a compressed SID's identifier

// contradicts reports whether the structure makes of the SID another one than carriers of the
// domain do: a block of another length, or an identifier that ends before its 16 bits do.
func (d Domain) contradicts(s Structure) bool {
	return d.Carrier && s != (Structure{}) &&
		(int(s.Block) != d.Block.Prefix().Bits() || int(s.Node)+int(s.Function) < idBits)
}

func (d Domain) holds(sid netip.Addr) bool {
	if !d.Carrier {
		return sid.Is6() && !sid.Is4In6() && sid.IsGlobalUnicast()
	}
	ids, err := d.Block.CSIDs(sid)
	return err == nil && len(ids) == 1 && ids[0].Global()
}
