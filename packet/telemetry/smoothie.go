package telemetry

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/flow"
)

// SmoothieReport is a report as the published P4 program of SMOOTHIE sends it, the payload of a UDP
// datagram: Telemetry Report 1.0, the headers of the packet, an octet that no specification has,
// and INT 1.0 (Advanced-Observability/Smoothie, p4_src/include/headers.p4). It is read for
// comparison; nothing in this program writes it.
type SmoothieReport struct {
	Hardware  uint8 // 6 bits
	Sequence  uint32
	Node      uint32
	IngressUS uint32 // when the packet came to the sink: microseconds of its clock
	Dropped   bool
	Congested bool
	Tracked   bool
	Reroute   bool // the flow asks for another path: a pause was longer than tau
	Flow      flow.Tuple

	instructions Instructions
	hopWords     int
	stack        []byte // of nodes, the newest first
}

const (
	smoothieVersion = 1
	smoothieFixed   = 16 // Telemetry Report 1.0
	smoothieShim    = 12 // shim and header of INT 1.0
	smoothieTCP     = 20 // options do not count: the program puts INT before them
	smoothieType    = 1  // hop by hop
	// ports of level 2, which are a word in INT 1.0
	smoothieKnown Instructions = 0xff00
)

// IsSmoothieReport says whether a datagram claims to be one: its version is 1.
func IsSmoothieReport(b []byte) bool { return len(b) > 0 && b[0]>>4 == smoothieVersion }

// ParseSmoothieReport parses the payload of a datagram.
func ParseSmoothieReport(b []byte) (SmoothieReport, error) {
	if len(b) < smoothieFixed {
		return SmoothieReport{}, Truncated
	}
	if !IsSmoothieReport(b) {
		return SmoothieReport{}, BadVersion
	}
	first := binary.BigEndian.Uint32(b)
	r := SmoothieReport{Hardware: uint8(first & maxHardware), Tracked: first&0x40 != 0,
		Congested: first&0x80 != 0, Dropped: first&0x100 != 0,
		Node:      binary.BigEndian.Uint32(b[4:]),
		Sequence:  binary.BigEndian.Uint32(b[8:]),
		IngressUS: binary.BigEndian.Uint32(b[12:])}
	b, err := r.parseHeaders(b[smoothieFixed:])
	if err != nil {
		return SmoothieReport{}, err
	}
	return r, r.parseINT(b)
}

// parseHeaders reads the headers of the packet and returns what is behind them.
func (r *SmoothieReport) parseHeaders(b []byte) ([]byte, error) {
	if len(b) < ethernetHeader+ipv4Header {
		return nil, Truncated
	}
	protocol, ether := uint8(0), binary.BigEndian.Uint16(b[12:])
	b = b[ethernetHeader:]
	switch ether {
	case etherIPv4:
		protocol = b[9]
		r.Flow.Src, _ = netip.AddrFromSlice(b[12:16])
		r.Flow.Dst, _ = netip.AddrFromSlice(b[16:20])
		b = b[ipv4Header:]
	case etherIPv6:
		if len(b) < ipv6Header {
			return nil, Truncated
		}
		protocol = b[6]
		r.Flow.Src, _ = netip.AddrFromSlice(b[8:24])
		r.Flow.Dst, _ = netip.AddrFromSlice(b[24:40])
		b = b[ipv6Header:]
	default:
		return nil, BadType
	}
	if ether == etherIPv6 && protocol == routing {
		if len(b) < routingFixed+segmentSize {
			return nil, Truncated
		}
		size := routingFixed + segmentSize*(int(b[4])+1) // by the last entry
		if len(b) < size {
			return nil, Truncated
		}
		protocol = b[0]
		r.Flow.Dst, _ = netip.AddrFromSlice(b[routingFixed : routingFixed+segmentSize])
		b = b[size:]
	}
	size := udpHeader
	switch protocol {
	case protocolUDP:
	case protocolTCP:
		size = smoothieTCP
	default:
		return nil, BadType
	}
	if len(b) < size {
		return nil, Truncated
	}
	r.Flow.Protocol = protocol
	r.Flow.SrcPort, r.Flow.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return b[size:], nil
}

func (r *SmoothieReport) parseINT(b []byte) error {
	if len(b) < 1+smoothieShim {
		return Truncated
	}
	r.Reroute = b[0] != 0
	b = b[1:]
	size := word * int(b[2]) // shim and header counted
	switch {
	case b[0] != smoothieType:
		return BadType
	case b[4]>>4 != smoothieVersion:
		return BadVersion
	case size < smoothieShim:
		return BadLength
	case len(b) < size:
		return Truncated
	}
	r.hopWords, r.instructions = int(b[6]&0x1f), Instructions(binary.BigEndian.Uint16(b[8:]))
	r.stack = b[smoothieShim:size]
	if r.instructions&^smoothieKnown != 0 || r.hopWords != r.instructions.smoothieWords() ||
		r.hopWords == 0 || len(r.stack)%(word*r.hopWords) != 0 {
		return BadLength
	}
	return nil
}

// smoothieWords is how many words a node writes: ports of level 2 take one in INT 1.0.
func (i Instructions) smoothieWords() int {
	words := i.Words()
	if i&WideInterfaces != 0 {
		words--
	}
	return words
}

// Nodes is how many nodes wrote.
func (r *SmoothieReport) Nodes() int { return len(r.stack) / (word * max(1, r.hopWords)) }

// AppendSamples appends one sample per node, the first on the way first. Its switches count packets
// in their queues, of which each is taken for so many octets, and microseconds.
func (r *SmoothieReport) AppendSamples(to []Sample, path uint64, packetOctets uint32) []Sample {
	from := len(to)
	for i := range r.Nodes() {
		s := r.sample(r.stack[word*r.hopWords*i:], packetOctets)
		s.Path = path
		to = append(to, s)
	}
	turn(to[from:])
	return to
}

func (r *SmoothieReport) sample(b []byte, packetOctets uint32) Sample {
	const usNS, queueMask = 1000, 1<<23 - 1 // of the queue's word, the highest bit is its trend
	s := Sample{Ingress: allOnes, Egress: allOnes}
	ingress, egress := allOnes8, allOnes8
	for bit := NodeID; bit >= Utilization; bit >>= 1 {
		if r.instructions&bit == 0 {
			continue
		}
		v := binary.BigEndian.Uint32(b)
		switch bit {
		case HopLatency:
			s.DelayNS, s.Known = v*usNS, s.Known|FieldDelay
		case Queue:
			s.QueueID, s.QueueBytes = uint8(v>>24), v&queueMask*packetOctets
			s.Known |= FieldQueue
		case IngressTime:
			ingress = binary.BigEndian.Uint64(b)
			b = b[word:]
		case EgressTime:
			egress = binary.BigEndian.Uint64(b)
			b = b[word:]
		case WideInterfaces: // no such thing in its switches
		default:
			s.set(bit, v)
		}
		b = b[word:]
	}
	s.setTimes(ingress, egress)
	return s
}
