package southbound

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"sextant/agent/southbound/southboundpb"
	"sextant/packet/flow"
)

// MaxHold bounds for how long a flow can keep a path that nobody renews.
const MaxHold = 24 * time.Hour

// Window is the flow-control window of a stream, and of its connection, in octets. It is fixed:
// gRPC's estimate of a better one costs a ping for each change, on the way of the change.
const Window = 1 << 20

// Path is a flow with the segments that it takes, and for how long.
type Path struct {
	Flow     flow.Tuple
	Segments []netip.Addr
	Hold     time.Duration
}

// FlowMessage is a flow as a message.
func FlowMessage(t flow.Tuple) *southboundpb.Flow {
	return &southboundpb.Flow{Source: t.Src.AsSlice(), Destination: t.Dst.AsSlice(),
		SourcePort: uint32(t.SrcPort), DestinationPort: uint32(t.DstPort),
		Protocol: uint32(t.Protocol)}
}

// FlowOf reads a flow.
func FlowOf(m *southboundpb.Flow) (flow.Tuple, error) {
	source, ok := netip.AddrFromSlice(m.GetSource())
	destination, also := netip.AddrFromSlice(m.GetDestination())
	switch {
	case !ok || !also:
		return flow.Tuple{}, fmt.Errorf("a flow's addresses have %d and %d octets; 4 or 16 are "+
			"wanted", len(m.GetSource()), len(m.GetDestination()))
	case source.Is4() != destination.Is4() || source.Is4In6() || destination.Is4In6():
		return flow.Tuple{}, fmt.Errorf("a flow from %v to %v: both addresses are of one IP "+
			"version", source, destination)
	case m.GetSourcePort() > math.MaxUint16 || m.GetDestinationPort() > math.MaxUint16 ||
		m.GetProtocol() > math.MaxUint8:
		return flow.Tuple{}, fmt.Errorf("a flow of protocol %d from port %d to %d: ports have 16 "+
			"bits, protocols 8", m.GetProtocol(), m.GetSourcePort(), m.GetDestinationPort())
	}
	return flow.Tuple{Src: source, Dst: destination, SrcPort: uint16(m.GetSourcePort()),
		DstPort: uint16(m.GetDestinationPort()), Protocol: uint8(m.GetProtocol())}, nil
}

// PathMessage is a path as a message.
func PathMessage(p Path) *southboundpb.FlowPath {
	return &southboundpb.FlowPath{Flow: FlowMessage(p.Flow), HoldMs: uint64(p.Hold.Milliseconds()),
		Segments: segmentOctets(p.Segments)}
}

func segmentOctets(segments []netip.Addr) (octets [][]byte) {
	for _, s := range segments {
		octets = append(octets, s.AsSlice())
	}
	return octets
}

func segmentsOf(octets [][]byte) (segments []netip.Addr, err error) {
	for i, o := range octets {
		s, ok := netip.AddrFromSlice(o)
		if !ok || !s.Is6() {
			return nil, fmt.Errorf("segment %d has %d octets; 16 are wanted", i+1, len(o))
		}
		segments = append(segments, s)
	}
	return segments, nil
}

func holdOf(ms uint64) (time.Duration, error) {
	if ms == 0 || ms > uint64(MaxHold.Milliseconds()) {
		return 0, fmt.Errorf("hold %d ms: more than 0, and at most %d, are wanted", ms,
			MaxHold.Milliseconds())
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// PathOf reads a path.
func PathOf(m *southboundpb.FlowPath) (p Path, err error) {
	if p.Flow, err = FlowOf(m.GetFlow()); err != nil {
		return p, err
	}
	if p.Segments, err = segmentsOf(m.GetSegments()); err != nil {
		return p, err
	}
	p.Hold, err = holdOf(m.GetHoldMs())
	return p, err
}
