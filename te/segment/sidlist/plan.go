package sidlist

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/topology"
)

// Plan says which SID names what. Where the graph has SIDs of its own, they count; the block is for
// all others.
type Plan struct {
	Graph *topology.Graph
	Block srv6.Block
	// Decap is the function at the destination that takes packets out of the list, such as an
	// End.DT46, as a local compressed SID: the last SID becomes block:node:decap::. 0 leaves the
	// destination's node SID as it is.
	Decap srv6.CSID
}

// firstLocal is the lowest local compressed SID. Links take the numbers from there on, in the order
// of their node's edges.
const firstLocal = srv6.MaxGlobalCSID + 1

// ErrNoNumber is the error of a network that is too large for the plan.
var ErrNoNumber = errors.New("no compressed SID is left")

// node is the id of a node: its number and one more, as 0 is taken.
func (p Plan) node(v topology.Node) (srv6.CSID, error) {
	if id := int(v) + 1; id <= int(srv6.MaxGlobalCSID) {
		return srv6.CSID(id), nil
	}
	return 0, fmt.Errorf("node %s is number %d, a block has ids up to %d: %w; give the graph "+
		"SIDs of its own",
		p.Graph.Node(v).Name, v, srv6.MaxGlobalCSID, ErrNoNumber)
}

// link is the local id of a link's End.X.
func (p Plan) link(e topology.Edge) (srv6.CSID, error) {
	i := slices.Index(p.Graph.Out(p.Graph.From(e)), e)
	if id := int(firstLocal) + i; id <= 0xffff {
		return srv6.CSID(id), nil
	}
	return 0, fmt.Errorf("link %d is number %d of its node: %w; give the graph SIDs of its own",
		e, i, ErrNoNumber)
}

// Unknown stands in a graph for the SID of what has one that nobody told: what the plan would say
// is not to be taken for it.
var Unknown = netip.IPv6Unspecified()

// Node is the SID of a node (End).
func (p Plan) Node(v topology.Node) (netip.Addr, error) {
	if own := p.Graph.Node(v).SID; own.IsValid() && own.Addr() == Unknown {
		return Unknown, fmt.Errorf("node %s tells of no SID of its own; let it announce its "+
			"locator", p.Graph.Node(v).Name)
	} else if own.IsValid() {
		return own.Addr(), nil
	}
	id, err := p.node(v)
	if err != nil {
		return netip.Addr{}, err
	}
	return p.Block.Carrier(id)
}

// Link is the SID of a link (End.X) at the node it leaves.
func (p Plan) Link(e topology.Edge) (netip.Addr, error) {
	if own := p.Graph.Edge(e).SID; own == Unknown {
		from, to := p.Graph.Node(p.Graph.From(e)).Name, p.Graph.Node(p.Graph.To(e)).Name
		return own, fmt.Errorf("node %s tells of no SID for its link to %s; take paths without "+
			"one (--model forced)", from, to)
	} else if own.IsValid() {
		return own, nil
	}
	id, err := p.link(e)
	if err != nil {
		return netip.Addr{}, err
	}
	return p.local(p.Graph.From(e), id)
}

// local is the SID of a function at a node: its locator with one more id.
func (p Plan) local(v topology.Node, function srv6.CSID) (netip.Addr, error) {
	node, err := p.Node(v)
	if err != nil {
		return netip.Addr{}, err
	}
	ids, err := p.Block.CSIDs(node)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("a function of node %s: %w; its SID %s must be in block %s",
			p.Graph.Node(v).Name, err, node, p.Block)
	}
	return p.Block.Carrier(append(ids, function)...)
}

// addresses are the SIDs of a list, in travel order.
func (p Plan) addresses(list []segment.SID) ([]netip.Addr, error) {
	addresses := make([]netip.Addr, len(list))
	for i, s := range list {
		var err error
		switch {
		case s.Link != topology.NoEdge:
			addresses[i], err = p.Link(s.Link)
		case i == len(list)-1 && p.Decap != 0:
			addresses[i], err = p.local(s.Node, p.Decap)
		default:
			addresses[i], err = p.Node(s.Node)
		}
		if err != nil {
			return nil, fmt.Errorf("SID %d of the list: %w", i+1, err)
		}
	}
	return addresses, nil
}

// carriers pack SIDs of the block into as few addresses as hold them (RFC 9800, NEXT-C-SID). The
// ids of one SID stay in one carrier: a local one means something only behind its node's.
func (p Plan) carriers(sids []netip.Addr) ([]netip.Addr, error) {
	var carriers []netip.Addr
	var held []srv6.CSID
	flush := func() error {
		if len(held) == 0 {
			return nil
		}
		c, err := p.Block.Carrier(held...)
		carriers, held = append(carriers, c), nil
		return err
	}
	for _, sid := range sids {
		ids, err := p.Block.CSIDs(sid)
		if err != nil {
			return nil, fmt.Errorf("pack %s into a carrier of block %s: %w", sid, p.Block, err)
		}
		if len(held)+len(ids) > srv6.MaxCarrierCSIDs {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		held = append(held, ids...)
	}
	return carriers, flush()
}
