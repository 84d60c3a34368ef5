package telemetry

import (
	"encoding/binary"
	"math/bits"
)

const (
	word     = 4
	allOnes  = ^uint32(0)
	allOnes8 = ^uint64(0)
	low24    = 1<<24 - 1
	low56    = 1<<56 - 1
)

// Instructions is the instruction bitmap of INT 2.1 (section 5.7): what each node pushes.
type Instructions uint16

// The instructions, in the order in which a node writes them. The bits between Buffer and
// ChecksumComplement are reserved and take 4 octets each.
const (
	NodeID             Instructions = 0x8000
	Interfaces         Instructions = 0x4000
	HopLatency         Instructions = 0x2000
	Queue              Instructions = 0x1000
	IngressTime        Instructions = 0x0800
	EgressTime         Instructions = 0x0400
	WideInterfaces     Instructions = 0x0200
	Utilization        Instructions = 0x0100
	Buffer             Instructions = 0x0080
	ChecksumComplement Instructions = 0x0001

	wide     = IngressTime | EgressTime | WideInterfaces // 8 octets
	reserved = Instructions(0x007e)
)

// Words returns how many words of 4 octets the metadata of the bits takes.
func (i Instructions) Words() int {
	return bits.OnesCount16(uint16(i)) + bits.OnesCount16(uint16(i&wide))
}

// Metadata is what a node writes for the baseline instructions. Times and delays are in
// nanoseconds, occupancies in octets, utilization in parts per million, as this program publishes
// them: INT leaves units open.
type Metadata struct {
	Present                     Instructions // what the node could tell; the rest is all ones
	NodeID                      uint32
	Ingress, Egress             uint16
	LatencyNS                   uint32
	QueueID                     uint8
	QueueBytes                  uint32 // 24 bits
	IngressTimeNS, EgressTimeNS uint64
	WideIngress, WideEgress     uint32
	Utilization                 uint32 // parts per million of the link's rate
	BufferID                    uint8
	BufferBytes                 uint32 // 24 bits
}

// value returns what is written for one bit, as one number of 4 or 8 octets.
func (m *Metadata) value(bit Instructions) uint64 {
	switch bit {
	case NodeID:
		return uint64(m.NodeID)
	case Interfaces:
		return uint64(m.Ingress)<<16 | uint64(m.Egress)
	case HopLatency:
		return uint64(m.LatencyNS)
	case Queue:
		return uint64(m.QueueID)<<24 | uint64(m.QueueBytes&low24)
	case IngressTime:
		return m.IngressTimeNS
	case EgressTime:
		return m.EgressTimeNS
	case WideInterfaces:
		return uint64(m.WideIngress)<<32 | uint64(m.WideEgress)
	case Utilization:
		return uint64(m.Utilization)
	case Buffer:
		return uint64(m.BufferID)<<24 | uint64(m.BufferBytes&low24)
	}
	return allOnes8
}

func (m *Metadata) set(bit Instructions, v uint64) {
	switch bit {
	case NodeID:
		m.NodeID = uint32(v)
	case Interfaces:
		m.Ingress, m.Egress = uint16(v>>16), uint16(v)
	case HopLatency:
		m.LatencyNS = uint32(v)
	case Queue:
		m.QueueID, m.QueueBytes = uint8(v>>24), uint32(v)&low24
	case IngressTime:
		m.IngressTimeNS = v
	case EgressTime:
		m.EgressTimeNS = v
	case WideInterfaces:
		m.WideIngress, m.WideEgress = uint32(v>>32), uint32(v)
	case Utilization:
		m.Utilization = uint32(v)
	case Buffer:
		m.BufferID, m.BufferBytes = uint8(v>>24), uint32(v)&low24
	}
}

// baseline are the bits that Metadata holds.
const baseline = ^(reserved | ChecksumComplement)

// readMetadata reads the metadata of the bits, which b must be long enough for.
func readMetadata(b []byte, of Instructions) (m Metadata) {
	for bit := NodeID; bit != 0; bit >>= 1 {
		if of&bit == 0 {
			continue
		}
		v, none := uint64(binary.BigEndian.Uint32(b)), uint64(allOnes)
		if bit&wide != 0 {
			v, none = binary.BigEndian.Uint64(b), allOnes8
			b = b[word:]
		}
		b = b[word:]
		if v != none && bit&baseline != 0 {
			m.Present |= bit
			m.set(bit, v)
		}
	}
	return m
}

// AppendMetadata appends the metadata for the bits: all ones for what is not present, reserved, or
// the checksum complement.
func AppendMetadata(b []byte, of Instructions, m Metadata) []byte {
	for bit := NodeID; bit != 0; bit >>= 1 {
		if of&bit == 0 {
			continue
		}
		v := uint64(allOnes8)
		if m.Present&bit != 0 {
			v = m.value(bit)
		}
		if bit&wide != 0 {
			b = binary.BigEndian.AppendUint64(b, v)
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

// Sample returns the metadata as a sample. The time is that of egress, or else of ingress; the
// delay is the latency, or else the difference of the two times.
func (m Metadata) Sample() Sample {
	s := Sample{Ingress: allOnes, Egress: allOnes}
	if m.Present&NodeID != 0 {
		s.Node, s.Known = uint64(m.NodeID), s.Known|FieldNode
	}
	if m.Present&Interfaces != 0 {
		s.Ingress, s.Egress = narrow(m.Ingress), narrow(m.Egress)
		s.Known |= FieldInterfaces
	}
	if m.Present&WideInterfaces != 0 && m.Present&Interfaces == 0 {
		s.Ingress, s.Egress = m.WideIngress, m.WideEgress
		s.Known |= FieldInterfaces
	}
	if m.Present&Queue != 0 {
		s.QueueID, s.QueueBytes, s.Known = m.QueueID, m.QueueBytes, s.Known|FieldQueue
	}
	if m.Present&Utilization != 0 {
		s.UtilizationPPM, s.Known = m.Utilization, s.Known|FieldUtilization
	}
	m.addTimes(&s)
	return s
}

// narrow is the number of an interface from 16 bits, of which all ones say that it is not known.
func narrow(number uint16) uint32 {
	if number == 1<<16-1 {
		return allOnes
	}
	return uint32(number)
}

func (m *Metadata) addTimes(s *Sample) {
	const both = IngressTime | EgressTime
	if m.Present&IngressTime != 0 {
		s.TimeNS, s.Known = m.IngressTimeNS, s.Known|FieldTime
	}
	if m.Present&EgressTime != 0 {
		s.TimeNS, s.Known = m.EgressTimeNS, s.Known|FieldTime
	}
	passed := m.EgressTimeNS - m.IngressTimeNS
	switch {
	case m.Present&HopLatency != 0:
		s.DelayNS, s.Known = m.LatencyNS, s.Known|FieldDelay
	case m.Present&both == both && passed <= uint64(allOnes):
		s.DelayNS, s.Known = uint32(passed), s.Known|FieldDelay
	}
}
