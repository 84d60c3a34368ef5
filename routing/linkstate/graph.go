package linkstate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/te/segment/sidlist"
	"sextant/te/topology"
)

// Graph builds the topology that routes of family link-state describe; any order of the routes
// gives the same one. Ignored says what could not be used, and why.
func Graph(name string, paths []*apiutil.Path) (g *topology.Graph, ignored []string, err error) {
	d := domain{nodes: map[string]*node{}}
	for _, p := range paths {
		if reason := d.add(p); reason != "" {
			ignored = append(ignored, reason)
		}
	}
	d.keepIPv6()
	g, alone, err := d.build(name)
	slices.Sort(ignored)
	return g, append(ignored, alone...), err
}

// built gives routers their SIDs, and builds.
func (d *domain) built(name string, l *locators) (*topology.Graph, []string, error) {
	ignored := l.give(d)
	slices.Sort(ignored)
	g, alone, err := d.build(name)
	return g, append(ignored, alone...), err
}

// domain is what routes told of.
type domain struct {
	nodes map[string]*node // by router id
	links []link
}

type node struct {
	name     string
	sid      netip.Addr
	behavior uint16 // of the SID: the plainest End is taken
	pseudo   bool   // a LAN
	// noTransit tells that nothing is to pass by the router (the overload bit of IS-IS, ISO 10589
	// section 7.2.8.1; OSPFv3 without the R-bit or the V6-bit, RFC 5340 appendix A.2)
	noTransit bool
	multi     bool // tells of the topology of IPv6 apart from that of IPv4 (RFC 5120)
}

// noTransit is what the links of a router by which nothing is to pass weigh besides their metrics:
// more than four of the greatest metric of IS-IS. So shortest paths lead elsewhere, and among those
// that begin at the router its own metrics decide. Delays are what they are.
const noTransit = 1 << 26

type link struct {
	from, to  string // router ids
	near, far string // what tells parallel links apart, at either end
	backup    bool   // routers may protect the SID: its packets may take other links then
	topology  uint16 // of IS-IS (RFC 5120)
	topology.EdgeSpec
}

// add reads a route. It returns why the route was ignored, or "".
func (d *domain) add(p *apiutil.Path) string {
	prefix, ok := p.Nlri.(*bgp.LsAddrPrefix)
	if !ok {
		return fmt.Sprintf("%v is no route of family link-state", p.Nlri)
	}
	var tlvs []bgp.LsTLVInterface
	for _, a := range p.Attrs {
		if ls, ok := a.(*bgp.PathAttributeLs); ok {
			tlvs = ls.TLVs
		}
	}
	switch n := prefix.NLRI.(type) {
	case *bgp.LsNodeNLRI:
		return d.addNode(n, tlvs)
	case *bgp.LsLinkNLRI:
		return d.addLink(n, tlvs)
	case *bgp.LsSrv6SIDNLRI:
		return d.addSID(n, tlvs)
	case *bgp.LsPrefixV4NLRI, *bgp.LsPrefixV6NLRI:
		return "" // the topology's nodes are routers
	}
	return fmt.Sprintf("route of type %d is not known", prefix.Type)
}

// node finds or makes the node of a descriptor; "" if it has no id.
func (d *domain) node(tlv bgp.LsTLVInterface) (id string) {
	descriptor, ok := tlv.(*bgp.LsTLVNodeDescriptor)
	if !ok {
		return ""
	}
	n := descriptor.Extract()
	if id = n.IGPRouterID; id == "" && n.BGPRouterID.IsValid() {
		id = n.BGPRouterID.String()
	}
	if id != "" && d.nodes[id] == nil {
		d.nodes[id] = &node{name: id, pseudo: n.PseudoNode}
	}
	return id
}

func (d *domain) addNode(n *bgp.LsNodeNLRI, tlvs []bgp.LsTLVInterface) string {
	id := d.node(n.LocalNodeDesc)
	if id == "" {
		return "a node without a router id"
	}
	here := d.nodes[id]
	for _, tlv := range tlvs {
		switch v := tlv.(type) {
		case *bgp.LsTLVNodeName:
			here.name = cmp.Or(v.Name, here.name)
		case *bgp.LsTLVNodeFlagBits:
			here.noTransit = here.noTransit || barsTransit(n.ProtocolID, v.Extract())
		}
	}
	return ""
}

// barsTransit tells whether the flags of a router (RFC 9552 section 5.3.1.1) say that nothing is to
// pass by it.
func barsTransit(igp bgp.LsProtocolID, f *bgp.LsNodeFlags) bool {
	return f.Overload || igp == bgp.LS_PROTOCOL_OSPF_V3 && !(f.Router && f.V6)
}

// Code points of End and End.X with their flavors (IANA, "SRv6 Endpoint Behaviors").
func isEnd(b uint16) bool  { return b >= 1 && b <= 4 || b >= 28 && b <= 31 || b >= 43 && b <= 50 }
func isEndX(b uint16) bool { return b >= 5 && b <= 8 || b >= 32 && b <= 35 || b >= 52 && b <= 59 }

// shortestPath is the algorithm of SIDs that follow the IGP's metrics (RFC 8665 section 8.5, "IGP
// Algorithm Types"); flexible ones are from 128 on.
const shortestPath = 0

// addSID notes an End of a node: of several the one with the lowest code point, then the lowest
// address. Those of other algorithms than shortest paths lead over links that these leave out.
func (d *domain) addSID(n *bgp.LsSrv6SIDNLRI, tlvs []bgp.LsTLVInterface) string {
	id := d.node(n.LocalNodeDesc)
	information, ok := n.Srv6SIDInfo.(*bgp.LsTLVSrv6SIDInfo)
	if id == "" || !ok {
		return "a SID of no node"
	}
	for _, tlv := range tlvs {
		behavior, ok := tlv.(*bgp.LsTLVSrv6EndpointBehavior)
		if !ok || !isEnd(behavior.EndpointBehavior) || behavior.Algorithm != shortestPath {
			continue
		}
		for _, sid := range information.SIDs {
			here := d.nodes[id]
			order := cmp.Or(cmp.Compare(behavior.EndpointBehavior, here.behavior),
				sid.Compare(here.sid))
			if sid.Is6() && (!here.sid.IsValid() || order < 0) {
				here.sid, here.behavior = sid, behavior.EndpointBehavior
			}
		}
	}
	return ""
}

func (d *domain) addLink(n *bgp.LsLinkNLRI, tlvs []bgp.LsTLVInterface) string {
	l := link{from: d.node(n.LocalNodeDesc), to: d.node(n.RemoteNodeDesc)}
	if l.from == "" || l.to == "" || l.from == l.to {
		return fmt.Sprintf("a link from %q to %q", l.from, l.to)
	}
	l.describe(n.LinkDesc)
	if isISIS(n.ProtocolID) {
		l.topology = topologyOf(n.LinkDesc)
		d.nodes[l.from].multi = d.nodes[l.from].multi || l.topology == topologyIPv6
	}
	var te uint32
	for _, tlv := range tlvs {
		switch v := tlv.(type) {
		case *bgp.LsTLVIGPMetric:
			if l.Weight = max(1, v.Metric); isISIS(n.ProtocolID) && l.Weight == noMetric {
				return l.unused()
			}
		case *bgp.LsTLVTEDefaultMetric:
			te = v.Metric
		case *bgp.LsTLVUnidirectionalLinkDelay:
			l.Delay = int64(v.Delay)
		case *bgp.LsTLVMinMaxUnidirectionalLinkDelay:
			if l.Delay == 0 {
				l.Delay = int64(v.MinDelay)
			}
		case *bgp.LsTLVMaxLinkBw:
			l.CapacityKbps = kbps(v.Bandwidth)
		case *bgp.LsTLVSrlg:
			l.SRLGs = slices.Compact(slices.Sorted(slices.Values(v.Srlgs)))
		case *bgp.LsTLVSrv6EndXSID:
			l.addEndX(v)
		}
	}
	if l.Weight = cmp.Or(l.Weight, te); l.Weight == 0 && !d.nodes[l.from].pseudo {
		return fmt.Sprintf("link from %s to %s has no metric", l.from, l.to)
	}
	d.links = append(d.links, l)
	return ""
}

// Topologies of IS-IS (RFC 5120 section 7.5).
const (
	topologyOfAll = 0 // IPv4, and IPv6 where that has none of its own
	topologyIPv6  = 2
)

// topologyOf is that of a link (RFC 9552 section 5.2.2.1).
func topologyOf(description []bgp.LsTLVInterface) uint16 {
	for _, tlv := range description {
		if t, ok := tlv.(*bgp.LsTLVMultiTopoID); ok && len(t.MultiTopoIDs) > 0 {
			return t.MultiTopoIDs[0]
		}
	}
	return topologyOfAll
}

// keepIPv6 leaves out links, and metrics, that packets of IPv6 do not follow.
func (d *domain) keepIPv6() {
	d.links = slices.DeleteFunc(d.links, func(l link) bool {
		if d.nodes[l.from].multi {
			return l.topology != topologyIPv6
		}
		return l.topology != topologyOfAll
	})
}

// addEndX takes the SID of an End.X by shortest paths: of several the first one without a backup,
// else the first.
func (l *link) addEndX(v *bgp.LsTLVSrv6EndXSID) {
	const backup = 1 << 7 // RFC 9514 section 4.1
	if !isEndX(v.EndpointBehavior) || v.Algorithm != shortestPath || len(v.SIDs) == 0 ||
		!v.SIDs[0].Is6() {
		return
	}
	if has := v.Flags&backup != 0; !l.SID.IsValid() || l.backup && !has {
		l.SID, l.backup = v.SIDs[0], has
	}
}

func isISIS(igp bgp.LsProtocolID) bool {
	return igp == bgp.LS_PROTOCOL_ISIS_L1 || igp == bgp.LS_PROTOCOL_ISIS_L2
}

// noMetric is the greatest metric of IS-IS, of links that are for traffic engineering alone:
// shortest paths leave them out (RFC 5305 section 3).
const noMetric = 1<<24 - 1

func (l link) unused() string {
	return fmt.Sprintf("link from %s to %s: by its metric, %d, it is not for shortest paths",
		l.from, l.to, noMetric)
}

// describe takes what tells parallel links apart: addresses if there are any, else numbers of
// interfaces.
func (l *link) describe(tlvs []bgp.LsTLVInterface) {
	var description bgp.LsLinkDescriptor
	description.ParseTLVs(tlvs)
	for _, pair := range [][2]*netip.Addr{
		{description.InterfaceAddrIPv6, description.NeighborAddrIPv6},
		{description.InterfaceAddrIPv4, description.NeighborAddrIPv4},
	} {
		if pair[0] != nil && pair[1] != nil {
			l.near, l.far = pair[0].String(), pair[1].String()
			return
		}
	}
	if description.LinkLocalID != nil && description.LinkRemoteID != nil {
		l.near, l.far = fmt.Sprintf("%010d", *description.LinkLocalID),
			fmt.Sprintf("%010d", *description.LinkRemoteID)
	}
}

// kbps translates octets per second as a float (RFC 5305 section 3.4).
func kbps(bandwidth float32) int64 {
	if b := float64(bandwidth); b > 0 && !math.IsInf(b, 0) {
		return min(int64(min(b, math.MaxInt64/1024)/1000*8), topology.MaxCapacityKbps)
	}
	return 0
}

// build makes the graph: nodes by name, links by the ends' names.
func (d *domain) build(name string) (*topology.Graph, []string, error) {
	alone := d.dissolveLANs()
	links, others := d.paired()
	alone = slices.Sorted(slices.Values(append(alone, others...)))
	b := topology.NewBuilder(name, delays(links))
	numbers := map[string]topology.Node{}
	d.nameApart()
	ids := slices.SortedFunc(maps.Keys(d.nodes),
		func(x, y string) int { return strings.Compare(d.nodes[x].name, d.nodes[y].name) })
	for _, id := range ids {
		spec := topology.NodeSpec{Name: d.nodes[id].name, NoTransit: d.nodes[id].noTransit,
			SID: netip.PrefixFrom(sidlist.Unknown, sidlist.Unknown.BitLen())}
		if sid := d.nodes[id].sid; sid.IsValid() {
			spec.SID = netip.PrefixFrom(sid, sid.BitLen())
		}
		v, err := b.AddNode(spec)
		if err != nil {
			return nil, nil, err
		}
		numbers[id] = v
	}
	for _, l := range links {
		if d.nodes[l.from].noTransit {
			l.Weight += min(noTransit, math.MaxUint32-l.Weight)
		}
		if l.From, l.To = numbers[l.from], numbers[l.to]; !l.SID.IsValid() {
			l.SID = sidlist.Unknown
		}
		if _, err := b.AddEdge(l.EdgeSpec); err != nil {
			return nil, nil, fmt.Errorf("link from %s to %s: %w", l.from, l.to, err)
		}
	}
	return b.Build(), alone, nil
}

// delays lets metrics stand for delays, unless all links tell of theirs. It returns the unit.
func delays(links []link) time.Duration {
	if !slices.ContainsFunc(links, func(l link) bool { return l.Delay == 0 }) {
		return time.Microsecond
	}
	for i := range links {
		links[i].Delay = int64(links[i].Weight)
	}
	return 0
}

// nameApart gives nodes of one name their router ids besides.
func (d *domain) nameApart() {
	count := map[string]int{}
	for _, n := range d.nodes {
		count[n.name]++
	}
	for id, n := range d.nodes {
		if count[n.name] > 1 && n.name != id {
			n.name += " " + id
		}
	}
}

// key is the same for both directions of a link.
func (l link) key() string {
	a, b := l.from+" "+l.near, l.to+" "+l.far
	return min(a, b) + " " + max(a, b)
}

// paired returns the links that both ends tell of, each once, so that parallel ones come in the
// same order in both directions; and which were left out.
func (d *domain) paired() (links []link, alone []string) {
	slices.SortFunc(d.links, func(a, b link) int {
		return cmp.Or(strings.Compare(a.key(), b.key()), strings.Compare(a.from, b.from),
			cmp.Compare(a.Weight, b.Weight))
	})
	same := func(a, b link) bool { return a.key() == b.key() && a.from == b.from }
	// told twice, by two levels of the IGP: the lower metric
	links = slices.CompactFunc(d.links, same)
	directions := map[string]int{}
	for _, l := range links {
		directions[l.key()]++
	}
	return slices.DeleteFunc(links, func(l link) bool {
		if directions[l.key()] == 2 {
			return false
		}
		alone = append(alone, l.alone())
		return true
	}), alone
}

func (l link) alone() string {
	return fmt.Sprintf("link from %s to %s: the other end does not tell of it", l.from, l.to)
}

// dissolveLANs replaces the nodes that stand for LANs by links between their routers. What a router
// says of its link to the LAN holds for its links to all others there. A router is on the LAN when
// the LAN's node tells of it, too: that of one that fails stops at once, while what the router told
// stays until it is too old (ISO 10589 section C.2.6, RFC 2328 section 16.1). It returns which
// links were left out for that.
func (d *domain) dissolveLANs() (alone []string) {
	listed := map[[2]string]bool{} // LANs, and the routers there
	for _, l := range d.links {
		if d.nodes[l.from].pseudo {
			listed[[2]string{l.from, l.to}] = true
		}
	}
	attached := map[string][]link{} // what routers say, by LAN
	var direct []link
	for _, l := range d.links {
		switch {
		case d.nodes[l.from].pseudo:
		case !d.nodes[l.to].pseudo:
			direct = append(direct, l)
		case listed[[2]string{l.to, l.from}]:
			attached[l.to] = append(attached[l.to], l)
		default:
			alone = append(alone, l.alone())
		}
	}
	for lan, links := range attached {
		for _, l := range links {
			l.SRLGs = slices.Sorted(slices.Values(append(slices.Clone(l.SRLGs), riskOf(lan))))
			for _, other := range links {
				if other.from != l.from {
					l.to, l.near, l.far = other.from, lan, lan
					direct = append(direct, l)
				}
			}
		}
	}
	d.links = direct
	maps.DeleteFunc(d.nodes, func(_ string, n *node) bool { return n.pseudo })
	return alone
}

// riskOf is the number of the risk that a LAN's links share: the upper half of the numbers, which
// providers seldom use.
func riskOf(lan string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(lan))
	return h.Sum32() | 1<<31
}
