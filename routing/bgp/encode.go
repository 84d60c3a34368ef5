package bgp

import (
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
)

// Announcement is a route that this node originates.
type Announcement struct {
	VIP netip.Addr
	// SID makes it the route of a host that serves the VIP there. The zero value makes it the plain
	// route of an edge.
	SID config.SID
	// The rest is said with a SID only.
	Services []discovery.Port
	Weight   int
	Draining bool
}

const (
	implicitNull = 3 // label of a route whose whole SID is in the attribute (RFC 9252 section 4)

	structureBlock, structureNode = 32, 16 // bits of the F3216 format (RFC 9800)
)

// protocolNumbers are the IP protocol numbers of the transports.
var protocolNumbers = map[config.Protocol]uint32{config.TCP: 6, config.UDP: 17}

// speech is what all routes of a node have in common.
type speech struct {
	asn           uint32
	distinguisher gobgp.RouteDistinguisherInterface
	target        gobgp.ExtendedCommunityInterface
}

func newSpeech(b *config.BGP) (s speech, err error) {
	s.asn = uint32(b.ASN)
	if s.distinguisher, err = gobgp.ParseRouteDistinguisher(b.RouteDistinguisher); err != nil {
		return s, fmt.Errorf("route distinguisher %s: %w; write it like 64512:80",
			b.RouteDistinguisher, err)
	}
	if s.target, err = gobgp.ParseRouteTarget(b.RouteTarget); err != nil {
		return s, fmt.Errorf("route target %s: %w; write it like 64512:80", b.RouteTarget, err)
	}
	return s, nil
}

// path writes the route. Its next hop is unspecified: each session puts its own local address
// there.
func (s speech) path(a Announcement) (*apiutil.Path, error) {
	prefix := netip.PrefixFrom(a.VIP, a.VIP.BitLen())
	attributes := []gobgp.PathAttributeInterface{gobgp.NewPathAttributeOrigin(
		gobgp.BGP_ORIGIN_ATTR_TYPE_IGP)}
	var nlri gobgp.NLRI
	var err error
	if a.SID.Prefix.IsValid() {
		nlri, err = gobgp.NewLabeledVPNIPAddrPrefix(prefix, *gobgp.NewMPLSLabelStack(implicitNull),
			s.distinguisher)
		attributes = append(attributes, s.service(a)...)
	} else {
		nlri, err = gobgp.NewIPAddrPrefix(prefix)
	}
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", prefix, err)
	}
	f := familyOf(a)
	reach, err := gobgp.NewPathAttributeMpReachNLRI(f, []gobgp.PathNLRI{{NLRI: nlri}},
		netip.IPv6Unspecified())
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", prefix, err)
	}
	return &apiutil.Path{Family: f, Nlri: nlri, Attrs: append(attributes, reach)}, nil
}

// service is what a host's route says besides its VIP.
func (s speech) service(a Announcement) []gobgp.PathAttributeInterface {
	communities := []gobgp.ExtendedCommunityInterface{
		s.target, gobgp.NewLinkBandwidthExtended(shortASN(s.asn), float32(a.Weight)),
	}
	var large []*gobgp.LargeCommunity
	for _, p := range a.Services {
		large = append(large, gobgp.NewLargeCommunity(s.asn, protocolNumbers[p.Protocol],
			uint32(p.Port)))
	}
	attributes := []gobgp.PathAttributeInterface{
		gobgp.NewPathAttributeExtendedCommunities(communities),
		gobgp.NewPathAttributePrefixSID(sidTLV(a.SID)),
		gobgp.NewPathAttributeLargeCommunities(large),
	}
	if a.Draining {
		attributes = append(attributes,
			gobgp.NewPathAttributeCommunities([]uint32{uint32(gobgp.COMMUNITY_PLANNED_SHUT)}))
	}
	return attributes
}

// shortASN is what the 16 bits of the link bandwidth community can hold: AS_TRANS for a longer
// number (RFC 6793).
func shortASN(asn uint32) uint16 {
	if asn > 0xffff {
		return gobgp.AS_TRANS
	}
	return uint16(asn)
}

// sidTLV is the SRv6 L3 Service TLV (RFC 9252 section 2) of a SID in the F3216 format: what follows
// the node's identifier up to the end of the prefix is the function, and what follows the prefix
// the argument, which holds the rest of a carrier (RFC 9800). Behaviours that take none have the
// length 0 (RFC 9252 section 3.2.1).
func sidTLV(sid config.SID) gobgp.PrefixSIDTLVInterface {
	bits := sid.Prefix.Bits()
	var structure []gobgp.PrefixSIDTLVInterface
	if function := bits - structureBlock - structureNode; function >= 0 {
		argument := srv6Bits - bits
		if sid.Behavior >= srv6.EndDT6 && sid.Behavior <= srv6.EndDT46 {
			argument = 0
		}
		structure = append(structure, gobgp.NewSRv6SIDStructureSubSubTLV(
			structureBlock, structureNode, uint8(function), uint8(argument), 0, 0))
	}
	information := gobgp.NewSRv6InformationSubTLV(sid.Prefix.Addr(), gobgp.SRBehavior(sid.Behavior),
		structure...)
	return gobgp.NewSRv6ServiceTLV(gobgp.TLVTypeSRv6L3Service, information)
}

const srv6Bits = 128

// familyOf is the family that carries an announcement.
func familyOf(a Announcement) gobgp.Family {
	switch vpn := a.SID.Prefix.IsValid(); {
	case vpn && a.VIP.Is4():
		return gobgp.RF_IPv4_VPN
	case vpn:
		return gobgp.RF_IPv6_VPN
	case a.VIP.Is4():
		return gobgp.RF_IPv4_UC
	}
	return gobgp.RF_IPv6_UC
}
