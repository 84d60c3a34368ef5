package rib

import (
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/config"
	"sextant/membership"
)

// Announcement is a route that this node originates.
type Announcement struct {
	VIP netip.Addr
	// SID makes it the route of a host that serves the VIP there. The zero value makes it the plain route of an edge.
	SID config.SID
	// The rest is said with a SID only.
	Services []membership.Port
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
	distinguisher bgp.RouteDistinguisherInterface
	target        bgp.ExtendedCommunityInterface
}

func newSpeech(b *config.BGP) (s speech, err error) {
	s.asn = uint32(b.ASN)
	if s.distinguisher, err = bgp.ParseRouteDistinguisher(b.RouteDistinguisher); err != nil {
		return s, fmt.Errorf("route distinguisher %s: %w; write it like 64512:80", b.RouteDistinguisher, err)
	}
	if s.target, err = bgp.ParseRouteTarget(b.RouteTarget); err != nil {
		return s, fmt.Errorf("route target %s: %w; write it like 64512:80", b.RouteTarget, err)
	}
	return s, nil
}

// path writes the route. Its next hop is unspecified: each session puts its own local address there.
func (s speech) path(a Announcement) (*apiutil.Path, error) {
	prefix := netip.PrefixFrom(a.VIP, a.VIP.BitLen())
	attributes := []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(bgp.BGP_ORIGIN_ATTR_TYPE_IGP)}
	var nlri bgp.NLRI
	var err error
	if a.SID.Prefix.IsValid() {
		nlri, err = bgp.NewLabeledVPNIPAddrPrefix(prefix, *bgp.NewMPLSLabelStack(implicitNull), s.distinguisher)
		attributes = append(attributes, s.service(a)...)
	} else {
		nlri, err = bgp.NewIPAddrPrefix(prefix)
	}
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", prefix, err)
	}
	f := familyOf(a)
	reach, err := bgp.NewPathAttributeMpReachNLRI(f, []bgp.PathNLRI{{NLRI: nlri}}, netip.IPv6Unspecified())
	if err != nil {
		return nil, fmt.Errorf("announce %s: %w", prefix, err)
	}
	return &apiutil.Path{Family: f, Nlri: nlri, Attrs: append(attributes, reach)}, nil
}

// service is what a host's route says besides its VIP.
func (s speech) service(a Announcement) []bgp.PathAttributeInterface {
	communities := []bgp.ExtendedCommunityInterface{
		s.target, bgp.NewLinkBandwidthExtended(shortASN(s.asn), float32(a.Weight)),
	}
	var large []*bgp.LargeCommunity
	for _, p := range a.Services {
		large = append(large, bgp.NewLargeCommunity(s.asn, protocolNumbers[p.Protocol], uint32(p.Port)))
	}
	attributes := []bgp.PathAttributeInterface{
		bgp.NewPathAttributeExtendedCommunities(communities), bgp.NewPathAttributePrefixSID(sidTLV(a.SID)),
		bgp.NewPathAttributeLargeCommunities(large),
	}
	if a.Draining {
		attributes = append(attributes, bgp.NewPathAttributeCommunities([]uint32{uint32(bgp.COMMUNITY_PLANNED_SHUT)}))
	}
	return attributes
}

// shortASN is what the 16 bits of the link bandwidth community can hold: AS_TRANS for a longer number (RFC 6793).
func shortASN(asn uint32) uint16 {
	if asn > 0xffff {
		return bgp.AS_TRANS
	}
	return uint16(asn)
}

// sidTLV is the SRv6 L3 Service TLV (RFC 9252 section 2) of a SID in the F3216 format: what follows the node's identifier up to the
// end of the prefix is the function, and what follows the prefix the argument, which holds the rest of a carrier (RFC 9800).
func sidTLV(sid config.SID) bgp.PrefixSIDTLVInterface {
	bits := sid.Prefix.Bits()
	var structure []bgp.PrefixSIDTLVInterface
	if function := bits - structureBlock - structureNode; function >= 0 {
		structure = append(structure, bgp.NewSRv6SIDStructureSubSubTLV(
			structureBlock, structureNode, uint8(function), uint8(srv6Bits-bits), 0, 0))
	}
	information := bgp.NewSRv6InformationSubTLV(sid.Prefix.Addr(), bgp.SRBehavior(sid.Behavior), structure...)
	return bgp.NewSRv6ServiceTLV(bgp.TLVTypeSRv6L3Service, information)
}

const srv6Bits = 128

// familyOf is the family that carries an announcement.
func familyOf(a Announcement) bgp.Family {
	switch vpn := a.SID.Prefix.IsValid(); {
	case vpn && a.VIP.Is4():
		return bgp.RF_IPv4_VPN
	case vpn:
		return bgp.RF_IPv6_VPN
	case a.VIP.Is4():
		return bgp.RF_IPv4_UC
	}
	return bgp.RF_IPv6_UC
}
