package agent

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/quiclb"
	"sextant/packet/srv6"
)

// Explain is what api.Agent says.
func (a *Agent) Explain(ctx context.Context, q api.Question) (list []api.Explanation, err error) {
	doErr := a.do(ctx, func() { list, err = a.explain(q) })
	if doErr != nil {
		return nil, doErr
	}
	return list, err
}

func (a *Agent) explain(q api.Question) ([]api.Explanation, error) {
	x, err := a.openExplaining(q)
	if err != nil {
		return nil, err
	}
	defer x.program.Close()
	packets, err := x.packets(q)
	if err != nil {
		return nil, err
	}
	var list []api.Explanation
	for i, p := range packets {
		e, err := x.packet(p.frame)
		if err != nil {
			return nil, &api.Error{Code: api.Invalid, Message: fmt.Sprintf("packet %d: %v", i+1,
				err)}
		}
		e.Number, e.Packet = i+1, p.what
		list = append(list, e)
	}
	return list, nil
}

// explaining is a question being answered: the program's twin decides, and the model names what it
// decided by.
type explaining struct {
	agent   *Agent
	role    api.Role
	at      datapath.Attachment // where packets arrive
	program *datapath.Explainer
	// decide gives a frame to the program, and names what it met
	decide  func(*api.Explanation, []byte) (datapath.Explained, error)
	edge    *model.Edge // of the edge
	host    *model.Host // of the host
	headend *model.Headend
	merge   *model.Merge
	strays  *model.Strays
	astray  *datapath.StrayExplainer // program is a part of it
}

func (a *Agent) openExplaining(q api.Question) (*explaining, error) {
	r, found := a.chosen(q.Role)
	x := &explaining{agent: a, role: r.name}
	switch {
	case found:
		return x, r.explain(x, q.Interface)
	case q.Role == "":
		return x, &api.Error{Code: api.NotFound, Message: "this node has no role whose program " +
			"could be asked; sextant status says what it is"}
	}
	return x, &api.Error{Code: api.NotFound,
		Message: fmt.Sprintf("this node has no %s; leave --role out", q.Role)}
}

// arrival chooses the interface: the one that is named, else the first that faces clients, else the
// first.
func arrival(attachments []datapath.Attachment, program, name string) (datapath.Attachment, error) {
	var first *datapath.Attachment
	for i, at := range attachments {
		switch {
		case at.Program != program || name != "" && at.On != name:
		case name != "" || at.Side != datapath.Internal:
			return at, nil
		case first == nil:
			first = &attachments[i]
		}
	}
	if first == nil {
		return datapath.Attachment{}, &api.Error{Code: api.NotFound, Message: fmt.Sprintf(
			"the %s runs on no interface %q; see the names with: sextant status", program, name)}
	}
	return *first, nil
}

// twin is the edge in Go, with the kernel's FIB left out: which flow, service, bucket and chain a
// packet has.
func (e *edgeRole) twin(n *config.Node) *model.Edge {
	m := &model.Edge{
		Sides: map[uint32]model.Side{}, Block: e.config.Block, Locators: e.config.Locators,
		Infrastructure: e.config.Infrastructure,
		Services:       map[model.ServiceKey]uint32{}, QUIC: map[uint32]*model.QUIC{},
		VIPs:          map[netip.Addr]struct{}{},
		Buckets:       func(service uint32) uint32 { return uint32(e.services[service].buckets) },
		Secret:        e.config.Secret,
		Encapsulation: model.Encapsulation(e.config.Encapsulation), Source: e.config.Source,
		HopLimit: e.config.HopLimit,
		Shadow:   e.config.Shadow, LastOffer: e.config.LastOffer,
		SID: func(uint16) netip.Addr { return e.config.Source }, // any that is one
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Status: model.NextHopKernel}
		},
	}
	for _, at := range e.attachments {
		m.Sides[uint32(at.Index)] = model.Side(at.Side)
	}
	for i, s := range e.services {
		m.Services[modelKey(s.key)] = uint32(i)
		m.VIPs[s.VIP] = struct{}{}
		if quic := s.quicModel(); quic != nil {
			m.QUIC[uint32(i)] = quic
		}
	}
	m.Chains = func(service, bucket uint32) pool.Chain {
		return e.services[service].generation.Chain(int(bucket))
	}
	return m
}

// learning is the flow cache of what explains packets, nil without one: each packet meets what the
// ones before left there.
func (e *edgeRole) learning(program *datapath.Explainer) *model.Learning {
	if e.config.FlowCache.Entries == 0 {
		return nil
	}
	return &model.Learning{
		SID: e.config.FlowCache.SID,
		Owner: func(hash uint64) uint16 {
			owner, err := program.CachedOwner(hash)
			if err != nil {
				return 0 // as the program does that can't look
			}
			return owner
		},
		Remember: func(uint64, uint16) {}, // the program does
	}
}

// quicModel is how the service's connection IDs are read, nil if it is not QUIC.
func (s *edgeService) quicModel() *model.QUIC {
	if len(s.QUIC.Configs) == 0 {
		return nil
	}
	quic := &model.QUIC{Backends: s.quicBackends()}
	for _, c := range s.QUIC.Configs {
		if codec, err := quiclb.New(
			c.Config()); err == nil { // as the program's are, or it would not run
			quic.Codecs = append(quic.Codecs, codec)
		}
	}
	return quic
}

func modelKey(k datapath.ServiceKey) model.ServiceKey {
	return model.ServiceKey{Addr: k.VIP, Port: k.Port, Protocol: k.Protocol}
}

// packet gives one frame to the program and to the model.
func (x *explaining) packet(frame []byte) (api.Explanation, error) {
	e := api.Explanation{Role: x.role, Interface: x.at.On, Program: x.program.Tag(),
		Bytes: len(frame)}
	got, err := x.decide(&e, frame)
	if err != nil {
		return e, err
	}
	e.Verdict, e.Outcome, e.Reason = got.Verdict.String(), got.Outcome, got.Reason
	x.leaves(&e, got)
	e.Why = why(&e)
	return e, nil
}

func (x *explaining) onEdge(e *api.Explanation, frame []byte) (datapath.Explained, error) {
	x.accountEdge(e, frame)
	return x.program.Run(x.at.Index, frame)
}

// accountEdge names the packet's flow, service, bucket and chain.
func (x *explaining) accountEdge(e *api.Explanation, frame []byte) {
	r := x.edge.Process(uint32(x.at.Index), frame)
	e.Flow = flowOf(r.Flow)
	index, ok := x.edge.Services[r.Service]
	if !ok || e.Flow == nil {
		return
	}
	s := &x.agent.edge.services[index]
	trace := x.agent.traceOf(s, *e.Flow, r.Hash)
	e.Service, e.Trace, e.FlowCache = s.Name, &trace, r.Cache.String()
	for _, id := range r.Chain {
		e.OfferedTo = append(e.OfferedTo, x.agent.place(s, pool.Place{ID: id}).Backend)
	}
}

// flowOf is nil for what is neither TCP nor UDP.
func flowOf(t flow.Tuple) *api.Flow {
	for protocol, number := range protocolNumbers {
		if number == t.Protocol && t.Src.IsValid() {
			return &api.Flow{
				Source: netip.AddrPortFrom(t.Src, t.SrcPort), Destination: netip.AddrPortFrom(t.Dst,
					t.DstPort), Protocol: protocol,
			}
		}
	}
	return nil
}

// leaves tells how the frame is after processing, and where it goes.
func (x *explaining) leaves(e *api.Explanation, got datapath.Explained) {
	if got.Verdict == model.Drop || got.Verdict == model.Pass {
		return
	}
	if len(e.Copies) > 1 {
		return // each has its own
	}
	e.Frame = hex.EncodeToString(got.Frame)
	if !got.Taken {
		e.Path = segmentsOf(got.Frame)
	}
	if got.Verdict == model.HandToKernel || len(got.Frame) < ethernetHeader {
		return
	}
	e.NextHop = nextHopOf(got)
}

func nextHopOf(got datapath.Explained) *api.NextHop {
	hop := &api.NextHop{Destination: net.HardwareAddr(got.Frame[:6]).String(),
		Source: net.HardwareAddr(got.Frame[6:12]).String()}
	if device, err := net.InterfaceByIndex(int(got.Interface)); err == nil {
		hop.Interface = device.Name
	}
	return hop
}

// Lengths in bytes, and offsets in an IPv6 header.
const (
	ethernetHeader  = 14
	ipv6Header      = 40
	ipv6Destination = 24
	ipv6Next        = 6
	routingHeader   = 43 // protocol number
)

// isVLAN reports whether an EtherType announces a VLAN tag.
func isVLAN(etherType uint16) bool { return etherType == 0x8100 || etherType == 0x88a8 }

// segmentsOf reads what a frame's IPv6 packet visits: its destination, then the segments left of
// its SRH.
func segmentsOf(frame []byte) []netip.Addr {
	at := ethernetHeader
	for tags := 0; tags < 2 && len(frame) > at+4 &&
		isVLAN(binary.BigEndian.Uint16(frame[at-2:])); tags++ {
		at += 4
	}
	if len(frame) < at+ipv6Header || frame[at]>>4 != 6 {
		return nil
	}
	ip := frame[at:]
	path := []netip.Addr{netip.AddrFrom16([16]byte(ip[ipv6Destination:ipv6Header]))}
	if ip[ipv6Next] != routingHeader {
		return path
	}
	header, _, err := srv6.ParseSRH(ip[ipv6Header:])
	for left := int(header.SegmentsLeft) - 1; err == nil && left >= 0 &&
		left < len(header.Segments); left-- {
		path = append(path, header.Segments[left])
	}
	return path
}
