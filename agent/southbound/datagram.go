package southbound

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"time"

	"google.golang.org/protobuf/proto"

	"sextant/agent/southbound/southboundpb"
	"sextant/packet/flow"
)

// What a datagram has, and where: southbound.proto has the format, and bpf/include/flow_changes.h
// reads it as well.
const (
	datagramSegments = 6

	datagramFlowAt     = 8
	datagramPortsAt    = datagramFlowAt + 2*16
	datagramProtocolAt = datagramPortsAt + 2*2
	datagramHoldAt     = datagramProtocolAt + 4
	datagramSegmentsAt = datagramHoldAt + 8
	datagramCodeAt     = datagramSegmentsAt + 16*datagramSegments
	datagramSize       = datagramCodeAt + 8
)

// A Seal is the key of a stream's datagrams, by which changes come ahead of the stream.
type Seal struct{ key flow.Secret }

// NewSeal is the seal of a key.
func NewSeal(key []byte) (Seal, error) {
	var s Seal
	if len(key) != len(s.key) {
		return s, fmt.Errorf("a key of datagrams has %d octets; %d are wanted", len(key),
			len(s.key))
	}
	copy(s.key[:], key)
	return s, nil
}

// Datagram is a change as a datagram; nil: it does not fit one.
func (s Seal) Datagram(change *southboundpb.Change) []byte {
	if len(change.GetSet()) != 1 || proto.Size(change) != proto.Size(&southboundpb.Change{
		Number: change.GetNumber(), Set: change.GetSet()}) {
		return nil
	}
	p, err := PathOf(change.GetSet()[0])
	hold := p.Hold.Milliseconds()
	if err != nil || len(p.Segments) > datagramSegments || hold > math.MaxUint32 {
		return nil
	}
	b := make([]byte, datagramCodeAt, datagramSize)
	binary.BigEndian.PutUint64(b, change.GetNumber())
	source, destination := p.Flow.Src.As16(), p.Flow.Dst.As16()
	copy(b[datagramFlowAt:], source[:])
	copy(b[datagramFlowAt+16:], destination[:])
	binary.BigEndian.PutUint16(b[datagramPortsAt:], p.Flow.SrcPort)
	binary.BigEndian.PutUint16(b[datagramPortsAt+2:], p.Flow.DstPort)
	b[datagramProtocolAt] = p.Flow.Protocol
	if p.Flow.Src.Is4() {
		b[datagramProtocolAt+1] = 1
	}
	binary.BigEndian.PutUint32(b[datagramHoldAt:], uint32(hold))
	for i, segment := range p.Segments {
		octets := segment.As16()
		copy(b[datagramSegmentsAt+16*i:], octets[:])
	}
	return s.code(b)
}

// code appends the code of what a datagram has in front of it.
func (s Seal) code(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(b, flow.SipHash24(s.key, b[:datagramCodeAt]))
}

// Open is the change of a datagram.
func (s Seal) Open(b []byte) (*southboundpb.Change, error) {
	if len(b) != datagramSize {
		return nil, fmt.Errorf("a datagram has %d octets; %d are wanted", len(b), datagramSize)
	}
	if want := s.code(b[:datagramCodeAt:datagramCodeAt]); subtle.ConstantTimeCompare(want, b) != 1 {
		return nil, fmt.Errorf("the datagram's code is not that of its key")
	}
	p := Path{Flow: flow.Tuple{Src: addressAt(b, datagramFlowAt),
		Dst:     addressAt(b, datagramFlowAt+16),
		SrcPort: binary.BigEndian.Uint16(b[datagramPortsAt:]),
		DstPort: binary.BigEndian.Uint16(b[datagramPortsAt+2:]), Protocol: b[datagramProtocolAt]},
		Hold: time.Duration(binary.BigEndian.Uint32(b[datagramHoldAt:])) * time.Millisecond}
	if b[datagramProtocolAt+1] != 0 {
		p.Flow.Src, p.Flow.Dst = p.Flow.Src.Unmap(), p.Flow.Dst.Unmap()
	}
	for i := range datagramSegments {
		segment := addressAt(b, datagramSegmentsAt+16*i)
		if segment.IsUnspecified() {
			break
		}
		p.Segments = append(p.Segments, segment)
	}
	return &southboundpb.Change{Number: binary.BigEndian.Uint64(b),
		Set: []*southboundpb.FlowPath{PathMessage(p)}}, nil
}

func addressAt(b []byte, at int) netip.Addr { return netip.AddrFrom16([16]byte(b[at : at+16])) }
