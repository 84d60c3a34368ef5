package edge

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/agent/state"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Trace is what api.Agent says.
func (e *Room) Trace(ctx context.Context, f api.Flow) (trace api.Trace, err error) {
	doErr := e.Do(ctx, func() { trace, err = e.trace(f) })
	if doErr != nil {
		return api.Trace{}, doErr
	}
	return trace, err
}

func (e *Room) trace(f api.Flow) (api.Trace, error) {
	s := e.Runs.serviceOf(f)
	if s == nil {
		return api.Trace{}, &api.Error{Code: api.NotFound, Message: fmt.Sprintf(
			"no service of this node's edge has %s over %s; see sextant service list",
			f.Destination, f.Protocol)}
	}
	return e.traceOf(s, f, e.Node.FlowHash.Hash(e.Node.Secret, tupleOf(f))), nil
}

func tupleOf(f api.Flow) flow.Tuple {
	return flow.Tuple{
		Src: f.Source.Addr(), Dst: f.Destination.Addr(), SrcPort: f.Source.Port(),
		DstPort:  f.Destination.Port(),
		Protocol: state.ProtocolNumbers[f.Protocol],
	}
}

// traceOf tells what the tables say about a flow of a hash.
func (e *Room) traceOf(s *Service, f api.Flow, hash uint64) api.Trace {
	bucket := int(flow.Bucket(hash, uint32(s.Generation.Buckets())))
	chain, places := s.Generation.Chain(bucket), s.Generation.Places(bucket)
	if s.former != nil {
		chain, places = e.Runs.former.join(s.former, f, chain, places)
	}
	trace := api.Trace{
		Flow: f, Service: s.Name, Policy: s.Policy, Table: s.Table,
		Bucket: bucket, Buckets: s.Generation.Buckets(), FlowLabel: flow.Label(hash),
		Chain: []api.Place{},
	}
	for _, p := range places {
		trace.Chain = append(trace.Chain, e.place(s, p))
	}
	opening, following := chain.IDs[:chain.Candidates], chain.IDs[:chain.Length]
	if f.Protocol == config.UDP {
		opening, following = chain.IDs[:min(1, chain.Length)], chain.IDs[:min(1, chain.Length)]
	}
	trace.Opening, trace.Following = e.segments(s, hash, opening), e.segments(s, hash, following)
	if chain.Shadow != 0 {
		trace.Shadow = e.place(s, pool.Place{ID: chain.Shadow}).Backend
	}
	return trace
}

// serviceOf finds the service as the program does: by the port, else that of any port.
func (e *Role) serviceOf(f api.Flow) *Service {
	for _, port := range []uint16{f.Destination.Port(), config.AnyPort} {
		if s := e.service(config.Endpoint{VIP: f.Destination.Addr(), Protocol: f.Protocol,
			Port: port}); s != nil {
			return s
		}
	}
	return nil
}

// place tells who is at a place of a chain.
func (e *Room) place(s *Service, p pool.Place) api.Place {
	place := api.Place{Role: string(p.Role)}
	if p.Role == pool.PastOwner {
		place.LeftSeconds = new((e.Now() - p.Left).Seconds())
	}
	for i, m := range s.Members {
		if m.ID == p.ID {
			b := s.Backends[i]
			place.Backend, place.SID, place.State = b.Name, b.SID,
				config.BackendState(m.State.String())
			if place.Site = b.Site; p.Role == pool.Candidate {
				place.Order = e.placeOrder(s, i)
			}
		}
	}
	return place
}

// segments are the destinations that the packets of a chain travel to, the path to its first
// included: the carrier of all, or one for path and chain each, or their SIDs.
func (e *Room) segments(s *Service, hash uint64, ids []uint16) []netip.Addr {
	segments := []netip.Addr{}
	if len(ids) == 0 {
		return segments
	}
	path := s.Paths.ofFlow(ids[0], hash)
	fits := len(path)+len(ids) <= srv6.MaxCarrierCSIDs
	if e.Node.Edge.Encapsulation == config.Carrier {
		lists := [][]uint16{slices.Concat(path, ids)}
		if !fits {
			lists = [][]uint16{path, ids}
		}
		for _, list := range lists {
			var csids []srv6.CSID
			for _, id := range list {
				csids = append(csids, srv6.CSID(id))
			}
			if carrier, err := e.Node.Domain.Block.Carrier(csids...); err == nil {
				segments = append(segments, carrier)
			}
		}
		return segments
	}
	if !fits {
		path = nil // it is left out
	}
	for _, id := range path {
		segments = append(segments, s.Paths.sids[id])
	}
	for _, id := range ids {
		segments = append(segments, e.place(s, pool.Place{ID: id}).SID)
	}
	return segments
}
