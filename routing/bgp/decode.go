package bgp

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
)

// The reasons for which the speaker ignores a route, before package membership looks at it.
const (
	// no SRv6 L3 service, or one that was malformed
	noSID discovery.Reason = "no_sid"
	// its structure contradicts itself (RFC 9252 sections 3.2.1 and 7)
	malformedSID discovery.Reason = "malformed_sid"
	// a SID with an argument, of a behaviour that is not known
	unknownArgument discovery.Reason = "unknown_argument"
	badWeight       discovery.Reason = "weight" // the link bandwidth is no finite number
	// a large community of ours with a port above 65,535
	badService discovery.Reason = "service"
)

// maxWeight is the most that a backend can weigh.
const maxWeight = 65535

// decode reads a VPN route. Ours is false for what is not meant for this cluster: another kind of
// route, or another route target.
func (s speech) decode(p *apiutil.Path) (r discovery.Route, reason discovery.Reason, ours bool) {
	nlri, ok := p.Nlri.(*gobgp.LabeledVPNIPAddrPrefix)
	if !ok || nlri.RD == nil {
		return r, "", false
	}
	r = discovery.Route{
		Peer: p.PeerAddress, Distinguisher: nlri.RD.String(), Prefix: nlri.Prefix,
		Weight: config.DefaultWeight,
	}
	reason = noSID
	var large []*gobgp.LargeCommunity
	origin := s.asn
	for _, attribute := range p.Attrs {
		switch a := attribute.(type) {
		case *gobgp.PathAttributeExtendedCommunities:
			var problem discovery.Reason
			if ours, problem = s.extended(a, &r); problem != "" {
				defer func() { reason = problem }()
			}
		case *gobgp.PathAttributeCommunities:
			for _, c := range a.Value {
				r.Draining = r.Draining || c == uint32(gobgp.COMMUNITY_PLANNED_SHUT)
			}
		case *gobgp.PathAttributeLargeCommunities:
			large = a.Values
		case *gobgp.PathAttributeAsPath:
			origin = originOf(a, origin)
		case *gobgp.PathAttributePrefixSID:
			reason = sidOf(a, nlri.Labels, &r)
		}
	}
	var problem discovery.Reason
	if r.Services, problem = servicesOf(large, origin); problem != "" {
		reason = problem
	}
	return r, reason, ours
}

// extended reads the weight, and reports whether the route target is ours.
func (s speech) extended(a *gobgp.PathAttributeExtendedCommunities,
	r *discovery.Route) (ours bool, reason discovery.Reason) {
	for _, c := range a.Value {
		if c == nil {
			continue
		}
		if c.String() == s.target.String() && sameKind(c, s.target) {
			ours = true
		}
		bandwidth, ok := c.(*gobgp.LinkBandwidthExtended)
		if !ok {
			continue
		}
		if b := float64(bandwidth.Bandwidth); math.IsNaN(b) || math.IsInf(b, 0) || b < 0 {
			reason = badWeight
		} else {
			r.Weight = int(math.Round(min(b, maxWeight)))
		}
	}
	return ours, reason
}

func sameKind(a, b gobgp.ExtendedCommunityInterface) bool {
	aType, aSubtype := a.GetTypes()
	bType, bSubtype := b.GetTypes()
	return aType == bType && aSubtype == bSubtype
}

// originOf is the autonomous system that the route began in, whose large communities are meant.
func originOf(a *gobgp.PathAttributeAsPath, own uint32) uint32 {
	for _, v := range slices.Backward(a.Value) {
		if list := v.GetAS(); len(list) > 0 {
			return list[len(list)-1]
		}
	}
	return own
}

// servicesOf reads which services are meant, nil: all. A community that means one, but no port
// that there is, must not become all.
func servicesOf(communities []*gobgp.LargeCommunity,
	origin uint32) (services []discovery.Port, reason discovery.Reason) {
	for _, c := range communities {
		for protocol, number := range protocolNumbers {
			if c == nil || c.ASN != origin || c.LocalData1 != number {
				continue
			}
			if c.LocalData2 > math.MaxUint16 {
				return nil, badService
			}
			services = append(services, discovery.Port{Protocol: protocol,
				Port: uint16(c.LocalData2)})
		}
	}
	return services, ""
}

// sidOf takes the first SID of the first L3 service (RFC 9252 section 3.1).
func sidOf(a *gobgp.PathAttributePrefixSID, labels gobgp.MPLSLabelStack,
	r *discovery.Route) discovery.Reason {
	for _, tlv := range a.TLVs {
		service, ok := tlv.(*gobgp.SRv6ServiceTLV)
		if !ok || service.Type != gobgp.TLVTypeSRv6L3Service {
			continue
		}
		for _, sub := range service.SubTLVs {
			if information, ok := sub.(*gobgp.SRv6InformationSubTLV); ok &&
				len(information.SID) == net16 {
				return informationOf(information, labels, r)
			}
		}
		break // a second L3 service is ignored
	}
	return noSID
}

const net16 = 16 // octets of an IPv6 address

func informationOf(i *gobgp.SRv6InformationSubTLV, labels gobgp.MPLSLabelStack,
	r *discovery.Route) discovery.Reason {
	sid := [16]byte(i.SID)
	r.Behavior = srv6.Behavior(i.EndpointBehavior)
	for _, sub := range i.SubSubTLVs {
		s, ok := sub.(*gobgp.SRv6SIDStructureSubSubTLV)
		if !ok {
			continue
		}
		if !sane(s) {
			return malformedSID
		}
		if s.ArgumentLength > 0 && !knownBehavior(r.Behavior) {
			return unknownArgument
		}
		if s.TranspositionLength > 0 {
			if len(labels.Labels) == 0 {
				return malformedSID
			}
			transpose(&sid, labels.Labels[0], int(s.TranspositionLength),
				int(s.TranspositionOffset))
		}
		r.Structure = discovery.Structure{
			Block: s.LocatorBlockLength, Node: s.LocatorNodeLength, Function: s.FunctionLength,
			Argument: s.ArgumentLength,
		}
		break
	}
	r.SID = netip.AddrFrom16(sid)
	return ""
}

// sane checks the rules of RFC 9252 sections 3.2.1 (with erratum 7817) and 4: the parts fit an
// address, and the bits that the label carries are within them.
func sane(s *gobgp.SRv6SIDStructureSubSubTLV) bool {
	length := int(s.LocatorBlockLength) + int(s.LocatorNodeLength) + int(s.FunctionLength) +
		int(s.ArgumentLength)
	moved, offset := int(s.TranspositionLength), int(s.TranspositionOffset)
	return length <= srv6Bits && length >= moved+offset &&
		moved <= min(20, int(s.FunctionLength)) && (moved != 0 || offset == 0)
}

// transpose puts the bits that travelled at the top of the label of 20 bits back into the SID (RFC
// 9252 section 4).
func transpose(sid *[16]byte, label uint32, length, offset int) {
	high, low := binary.BigEndian.Uint64(sid[:8]), binary.BigEndian.Uint64(sid[8:])
	value := uint64(label>>(20-length)) & (1<<length - 1)
	shift := srv6Bits - offset - length
	if shift >= 64 {
		high |= value << (shift - 64)
	} else {
		low |= value << shift
		if over := shift + bits.Len64(value); over > 64 {
			high |= value >> (64 - shift)
		}
	}
	binary.BigEndian.PutUint64(sid[:8], high)
	binary.BigEndian.PutUint64(sid[8:], low)
}

// knownBehavior reports whether the registry, or this product, gives the code point a name; opaque
// is one.
func knownBehavior(b srv6.Behavior) bool {
	_, err := srv6.ParseBehavior(b.String())
	return err == nil
}
