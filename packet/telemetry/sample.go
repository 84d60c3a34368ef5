package telemetry

import (
	"encoding/binary"
	"math/bits"
)

// Field is a set of fields of a Sample.
type Field uint8

// The fields of a Sample that a source may lack.
const (
	FieldNode        Field = 1 << iota // Node
	FieldInterfaces                    // Ingress and Egress
	FieldQueue                         // QueueBytes
	FieldDelay                         // DelayNS
	FieldTime                          // TimeNS
	FieldUtilization                   // UtilizationPPM
)

// Sample is what one node said about one packet, whatever format carried it.
type Sample struct {
	Path       uint64 // as the caller calls the path or flow
	Node       uint64
	TimeNS     uint64 // nanoseconds of the node's own clock
	DelayNS    uint32 // nanoseconds that the packet was in the node
	QueueBytes uint32 // octets in the queue that the packet left through
	// UtilizationPPM is how much of the rate of the egress link was used, in parts per million.
	UtilizationPPM uint32
	Ingress        uint32 // number of the interface; all ones if unknown
	Egress         uint32
	Hop            uint8 // 0 is the first node that wrote
	QueueID        uint8
	Known          Field // the fields that the node filled
}

// read is Metadata.Sample of what readMetadata reads, in one step: it is most of what a collector
// does.
func (s *Sample) read(b []byte, of Instructions) {
	ingress, egress := allOnes8, allOnes8 // not told
	for of != 0 {
		bit := NodeID >> bits.LeadingZeros16(uint16(of))
		of &^= bit
		if bit&wide != 0 {
			v := binary.BigEndian.Uint64(b)
			b = b[2*word:]
			switch bit {
			case IngressTime:
				ingress = v
			case EgressTime:
				egress = v
			case WideInterfaces:
				if v != allOnes8 && s.Known&FieldInterfaces == 0 {
					s.Ingress, s.Egress = uint32(v>>32), uint32(v)
					s.Known |= FieldInterfaces
				}
			}
			continue
		}
		v := binary.BigEndian.Uint32(b)
		if b = b[word:]; v != allOnes {
			s.set(bit, v)
		}
	}
	s.setTimes(ingress, egress)
}

func (s *Sample) setTimes(ingress, egress uint64) {
	switch {
	case egress != allOnes8:
		s.TimeNS, s.Known = egress, s.Known|FieldTime
	case ingress != allOnes8:
		s.TimeNS, s.Known = ingress, s.Known|FieldTime
	}
	if passed := egress - ingress; s.Known&FieldDelay == 0 && ingress != allOnes8 &&
		egress != allOnes8 && passed <= uint64(allOnes) {
		s.DelayNS, s.Known = uint32(passed), s.Known|FieldDelay
	}
}

// set sets what a node wrote in 4 octets.
func (s *Sample) set(bit Instructions, v uint32) {
	switch bit {
	case NodeID:
		s.Node, s.Known = uint64(v), s.Known|FieldNode
	case Interfaces:
		s.Ingress, s.Egress = narrow(uint16(v>>16)), narrow(uint16(v))
		s.Known |= FieldInterfaces
	case HopLatency:
		s.DelayNS, s.Known = v, s.Known|FieldDelay
	case Queue:
		s.QueueID, s.QueueBytes, s.Known = uint8(v>>24), v&low24, s.Known|FieldQueue
	case Utilization:
		s.UtilizationPPM, s.Known = v, s.Known|FieldUtilization
	}
}
