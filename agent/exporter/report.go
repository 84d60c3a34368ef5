package exporter

import (
	"encoding/binary"
	"math"

	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

const (
	protocolTCP = 6
	protocolUDP = 17
	hopLimit    = 64 // of headers that stand for a flow
)

// congested are the reasons that set the Q bit.
const congested = model.TelemetryGap | model.TelemetryQueue

// ofEvent is the report of a packet: its first octets as they came, with the telemetry, and the
// interface that they came on.
func ofEvent(e datapath.TelemetryEvent) telemetry.Report {
	r := telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6, Tracked: true,
		Congested: e.Reasons&congested != 0, Bits: telemetry.Interfaces,
		Inner: e.Packet[:len(e.Packet)&^3]}
	r.Metadata = telemetry.AppendMetadata(nil, r.Bits, telemetry.Metadata{
		Present: telemetry.Interfaces, Ingress: uint16(min(e.Interface, math.MaxUint16)),
		Egress: math.MaxUint16})
	if e.Reasons&model.TelemetryGap != 0 {
		withGap(&r, e.GapNS, hashOf(e.Flow))
	}
	return r
}

// ofPause is the report of a flow without a packet: headers that have nothing but the flow.
func ofPause(p datapath.Pause) telemetry.Report {
	r := telemetry.Report{Type: telemetry.RepINT, Tracked: true, Congested: true}
	r.InType, r.Inner = headersOf(p.Flow)
	withGap(&r, p.GapNS, hashOf(p.Flow))
	return r
}

func withGap(r *telemetry.Report, gapNS uint64, hash uint32) {
	r.DomainID, r.DSBits = telemetry.Domain, telemetry.DSIdleGap|telemetry.DSFlowHash
	r.Metadata = telemetry.AppendCongestion(r.Metadata, telemetry.Congestion{
		IdleGapUS: uint32(min(gapNS/1000, math.MaxUint32)), FlowHash: hash})
}

// headersOf writes IP header and ports of a flow.
func headersOf(t flow.Tuple) (kind telemetry.InType, b []byte) {
	if t.Src.Is4() {
		b = append(b, 0x45, 0, 0, 28, 0, 0, 0, 0, hopLimit, t.Protocol, 0, 0)
		kind = telemetry.InIPv4
	} else {
		b = append(b, 0x60, 0, 0, 0, 0, 8, t.Protocol, hopLimit)
		kind = telemetry.InIPv6
	}
	b = append(append(b, t.Src.AsSlice()...), t.Dst.AsSlice()...)
	if t.Protocol == protocolTCP || t.Protocol == protocolUDP {
		b = binary.BigEndian.AppendUint16(b, t.SrcPort)
		b = binary.BigEndian.AppendUint16(b, t.DstPort)
		return kind, append(b, 0, 0, 0, 0)
	}
	return kind, append(b, make([]byte, 8)...)
}

// hashOf is FNV-1a over the flow: a number by which a collector tells flows apart.
func hashOf(t flow.Tuple) uint32 {
	_, b := headersOf(t)
	hash := uint32(2166136261)
	for _, octet := range b {
		hash = (hash ^ uint32(octet)) * 16777619
	}
	return hash
}
