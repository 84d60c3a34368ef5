// Package linkstatetest makes routes of family link-state, as a router would announce them, for
// tests.
package linkstatetest

import (
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// Network collects the routes of a network whose routers have numbers from 1 on.
type Network struct{ Routes []*apiutil.Path }

// Link is what a router says of a link.
type Link struct {
	Number int // apart from parallel links; the same at both ends
	Metric uint32
	Delay  uint32 // microseconds
	Kbps   int64
	Risks  []uint32
	EndX   string // a SID
}

func descriptor(id string, kind bgp.LsTLVType) *bgp.LsTLVNodeDescriptor {
	d := bgp.NewLsTLVNodeDescriptor(&bgp.LsNodeDescriptor{Asn: 64512, IGPRouterID: id}, kind)
	return &d
}

func routerID(router int) string { return fmt.Sprintf("0000.0000.%04x", router) }

func lanID(lan int) string { return fmt.Sprintf("0000.0000.00ff-%02x", lan) }

// add makes a route of an NLRI and what is said of it. It panics if this package makes what GoBGP
// does not take.
func (n *Network) add(kind bgp.LsNLRIType, nlri bgp.LsNLRIInterface, about *bgp.LsAttribute) {
	body, err := nlri.Serialize()
	if err != nil {
		panic(err)
	}
	prefix := &bgp.LsAddrPrefix{Type: kind, Length: uint16(len(body)), NLRI: nlri}
	reach, err := bgp.NewPathAttributeMpReachNLRI(bgp.RF_LS, []bgp.PathNLRI{{NLRI: prefix}},
		netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		panic(err)
	}
	tlvs := bgp.NewLsAttributeTLVs(about)
	attribute := &bgp.PathAttributeLs{TLVs: tlvs}
	attribute.Type, attribute.Flags = bgp.BGP_ATTR_TYPE_LS, bgp.BGP_ATTR_FLAG_OPTIONAL
	for _, tlv := range tlvs {
		attribute.Length += uint16(tlv.Len())
	}
	n.Routes = append(n.Routes, &apiutil.Path{Family: bgp.RF_LS, Nlri: prefix,
		Attrs: []bgp.PathAttributeInterface{
			bgp.NewPathAttributeOrigin(bgp.BGP_ORIGIN_ATTR_TYPE_IGP), reach, attribute,
		}})
}

func header(kind bgp.LsNLRIType) bgp.LsNLRI {
	return bgp.LsNLRI{NLRIType: kind, ProtocolID: bgp.LS_PROTOCOL_ISIS_L2}
}

// Node adds a router with its name, if it has one, and the SID of its End.
func (n *Network) Node(router int, name, end string) {
	about := &bgp.LsAttribute{}
	if name != "" {
		about.Node.Name = &name
	}
	n.add(bgp.LS_NLRI_TYPE_NODE, &bgp.LsNodeNLRI{LsNLRI: header(bgp.LS_NLRI_TYPE_NODE),
		LocalNodeDesc: descriptor(routerID(router), bgp.LS_TLV_LOCAL_NODE_DESC)}, about)
	n.End(router, end, 0)
}

// End adds the SID of an End of a router, by an algorithm of the IGP.
func (n *Network) End(router int, end string, algorithm uint8) {
	sid := &bgp.LsTLVSrv6SIDInfo{LsTLV: bgp.LsTLV{Type: bgp.LS_TLV_SRV6_SID_INFO, Length: 16},
		SIDs: []netip.Addr{netip.MustParseAddr(end)}}
	behavior := &bgp.LsAttribute{Srv6SID: bgp.LsAttributeSrv6SID{
		Srv6EndpointBehavior: &bgp.LsSrv6EndpointBehavior{EndpointBehavior: 1,
			Algorithm: algorithm},
	}}
	n.add(bgp.LS_NLRI_TYPE_SRV6_SID,
		&bgp.LsSrv6SIDNLRI{LsNLRI: header(bgp.LS_NLRI_TYPE_SRV6_SID),
			LocalNodeDesc: descriptor(routerID(router), bgp.LS_TLV_LOCAL_NODE_DESC),
			Srv6SIDInfo:   sid}, behavior)
}

// Flags adds what a router says of itself in an IGP besides its name.
func (n *Network) Flags(router int, igp bgp.LsProtocolID, flags bgp.LsNodeFlags) {
	head := header(bgp.LS_NLRI_TYPE_NODE)
	head.ProtocolID = igp
	n.add(bgp.LS_NLRI_TYPE_NODE, &bgp.LsNodeNLRI{LsNLRI: head,
		LocalNodeDesc: descriptor(routerID(router), bgp.LS_TLV_LOCAL_NODE_DESC)},
		&bgp.LsAttribute{Node: bgp.LsAttributeNode{Flags: &flags}})
}

// EndX adds the SID of an End.X to what was said last, of a link.
func (n *Network) EndX(sid bgp.LsSrv6EndXSID) {
	about := n.Routes[len(n.Routes)-1].Attrs
	attribute := about[len(about)-1].(*bgp.PathAttributeLs)
	tlv := bgp.NewLsTLVSrv6EndXSID(&sid)
	attribute.TLVs = append(attribute.TLVs, tlv)
	attribute.Length += uint16(tlv.Len())
}

// Link adds one direction of a link.
func (n *Network) Link(from, to int, l Link) { n.link(routerID(from), routerID(to), from, to, l) }

// Metric says another metric of what was said last, of a link, and can say 0.
func (n *Network) Metric(metric uint32) {
	about := n.Routes[len(n.Routes)-1].Attrs
	for _, tlv := range about[len(about)-1].(*bgp.PathAttributeLs).TLVs {
		if m, ok := tlv.(*bgp.LsTLVIGPMetric); ok {
			m.Metric = metric
		}
	}
}

// InTopology says of which topology of IS-IS what was said last is. It panics if that was no link.
func (n *Network) InTopology(id uint16) {
	prefix := n.Routes[len(n.Routes)-1].Nlri.(*bgp.LsAddrPrefix)
	link := prefix.NLRI.(*bgp.LsLinkNLRI)
	link.LinkDesc = append(link.LinkDesc, &bgp.LsTLVMultiTopoID{
		LsTLV:        bgp.LsTLV{Type: bgp.LS_TLV_MULTI_TOPO_ID, Length: 2},
		MultiTopoIDs: []uint16{id}})
	body, err := link.Serialize()
	if err != nil {
		panic(err)
	}
	prefix.Length = uint16(len(body))
}

// LAN adds a network with several routers, all of which say the same metric, by the node that
// stands for it.
func (n *Network) LAN(lan int, metric uint32, routers ...int) {
	for _, router := range routers {
		n.OnLAN(lan, metric, router)
		n.link(lanID(lan), routerID(router), 0, router, Link{Number: lan})
	}
}

// OnLAN adds what a router says of its link to a network: if the node that stands for that does not
// say so, too, the router has failed.
func (n *Network) OnLAN(lan int, metric uint32, router int) {
	n.link(routerID(router), lanID(lan), router, 0, Link{Number: lan, Metric: metric})
}

func (n *Network) link(from, to string, near, far int, l Link) {
	address := func(end int) *netip.Addr {
		a := netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::%x", l.Number, end+1))
		return &a
	}
	about := &bgp.LsAttribute{}
	if l.Metric > 0 {
		about.Link.IGPMetric = &l.Metric
	}
	if l.Delay > 0 {
		about.Link.UnidirectionalLinkDelay = &bgp.LsUnidirectionalLinkDelay{Delay: l.Delay}
	}
	if l.Kbps > 0 {
		octets := float32(l.Kbps) * 1000 / 8
		about.Link.Bandwidth = &octets
	}
	if l.Risks != nil {
		about.Link.Srlgs = &l.Risks
	}
	if l.EndX != "" {
		about.Link.Srv6EndXSID = &bgp.LsSrv6EndXSID{EndpointBehavior: 5,
			SIDs: []netip.Addr{netip.MustParseAddr(l.EndX)}}
	}
	n.add(bgp.LS_NLRI_TYPE_LINK, &bgp.LsLinkNLRI{
		LsNLRI:         header(bgp.LS_NLRI_TYPE_LINK),
		LocalNodeDesc:  descriptor(from, bgp.LS_TLV_LOCAL_NODE_DESC),
		RemoteNodeDesc: descriptor(to, bgp.LS_TLV_REMOTE_NODE_DESC),
		LinkDesc: bgp.NewLsLinkTLVs(&bgp.LsLinkDescriptor{InterfaceAddrIPv6: address(near),
			NeighborAddrIPv6: address(far)}),
	}, about)
}
