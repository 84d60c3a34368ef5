package sidlist

import (
	"fmt"
	"net/netip"
	"strings"

	"sextant/packet/lists"
	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/topology"
)

// List is a path with its SIDs as addresses, ready to be printed or installed. Its JSON is stable.
type List struct {
	// the way, by names; none when packets take several
	Nodes []string `json:"nodes,omitempty"`
	// by number: in travel order, or, where there are branches, ascending
	Edges []int `json:"edges"`
	// what each SID says, for people: "b", or "a->b" for a link
	Names []string     `json:"segments"`
	SIDs  []netip.Addr `json:"sids"` // in travel order
	// the same, compressed; none if a SID is not of the block
	Carriers []netip.Addr `json:"carriers,omitempty"`
	Latency  int64        `json:"latency"` // in the graph's unit of delay
	// "forced": packets take this way and no other; "loose"
	Steering string `json:"steering"`
}

// How packets are held to a path, as List.Steering says it.
const (
	SteeringForced = "forced"
	SteeringLoose  = "loose"
)

// List turns a path into addresses. It fails where the plan has no SID for something.
func (p Plan) List(path segment.Path) (List, error) {
	addresses, err := p.addresses(path.SIDs)
	if err != nil {
		return List{}, err
	}
	l := List{SIDs: addresses, Latency: path.Latency, Steering: SteeringLoose}
	if path.Forced {
		l.Steering = SteeringForced
	}
	// SIDs outside the block can't be compressed; SIDs serves then
	l.Carriers, _ = p.carriers(addresses)
	for _, e := range path.Edges {
		l.Edges = append(l.Edges, int(e))
	}
	l.Nodes = p.nodes(path.Edges)
	for _, s := range path.SIDs {
		l.Names = append(l.Names, p.name(s))
	}
	return l, nil
}

// nodes are the names along edges that follow each other.
func (p Plan) nodes(edges []topology.Edge) []string {
	var names []string
	for i, e := range edges {
		if i == 0 {
			names = append(names, p.Graph.Node(p.Graph.From(e)).Name)
		} else if p.Graph.From(e) != p.Graph.To(edges[i-1]) {
			return nil
		}
		names = append(names, p.Graph.Node(p.Graph.To(e)).Name)
	}
	return names
}

func (p Plan) name(s segment.SID) string {
	if s.Link == topology.NoEdge {
		return p.Graph.Node(s.Node).Name
	}
	return p.Graph.Node(s.Node).Name + "->" + p.Graph.Node(p.Graph.To(s.Link)).Name
}

// String is the list for people: what the SIDs say, and how packets are held to it.
func (l List) String() string { return strings.Join(l.Names, ", ") + " (" + l.Steering + ")" }

// SRH is the segment routing header that a source puts before a packet of the protocol given, 41
// for IPv6, with the destination address that goes with it. The carriers are used if there are any.
// A reduced header leaves the first segment out (RFC 8986, H.Encaps.Red); it is empty if there is
// only one.
func (l List) SRH(next uint8, reduced bool) (destination netip.Addr, header []byte, err error) {
	travel := l.travel()
	if len(travel) == 0 {
		return netip.Addr{}, nil, fmt.Errorf("make a segment routing header: the list has no SIDs")
	}
	h, ok := srv6.SRH{}, true
	if reduced {
		h, ok, err = srv6.NewReducedSRH(next, travel)
	} else {
		h, err = srv6.NewSRH(next, travel)
	}
	if err != nil || !ok {
		return travel[0], nil, err
	}
	header, err = h.AppendBinary(nil)
	return travel[0], header, err
}

func (l List) travel() []netip.Addr {
	if len(l.Carriers) > 0 {
		return l.Carriers
	}
	return l.SIDs
}

// Route is the command that makes Linux send what goes to dst over the path, out of an interface
// (ip-route(8), encap seg6). The kernel puts its last segment first into the header, so the list is
// in travel order. Of several routes to dst the kernel takes the one with the lowest rank, from 0
// on: without ranks it would refuse all but one.
func (l List) Route(dst netip.Prefix, device string, rank int) string {
	return fmt.Sprintf("ip -6 route add %s encap seg6 mode encap segs %s dev %s metric %d  # %s",
		dst, join(l.travel(), ","), device, linuxMetric+rank, l)
}

// linuxMetric is what Linux gives routes of IPv6 that say none (IP6_RT_PRIO_USER).
const linuxMetric = 1024

// FRR is the static route for FRRouting's staticd that does the same. FRRouting 9.1 was the first
// to know segments there.
func (l List) FRR(dst netip.Prefix, device string) string {
	return fmt.Sprintf("! %s\nipv6 route %s %s segments %s", l, dst, device, join(l.travel(), "/"))
}

func join(addresses []netip.Addr, by string) string {
	texts := lists.Map(addresses, netip.Addr.String)
	return strings.Join(texts, by)
}
