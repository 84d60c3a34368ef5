package telemetry

import "encoding/binary"

// RepType says what a report is about (Telemetry Report 2.0 section 3.2).
type RepType uint8

// The types of a report.
const (
	RepInnerOnly RepType = 0
	RepINT       RepType = 1
	RepIOAM      RepType = 2 // its main contents are left to a later version
)

// InType says what a report's inner contents are (section 3.2).
type InType uint8

// The inner contents.
const (
	InNone     InType = 0
	InTLV      InType = 1
	InDomain   InType = 2
	InEthernet InType = 3
	InIPv4     InType = 4
	InIPv6     InType = 5
)

const (
	reportVersion = 2
	groupSize     = 8
	mainSize      = 8 // fixed part of the main contents of RepINT
	toTheEnd      = 255
	maxHardware   = 1<<6 - 1
	// SequenceBits is how wide the sequence number of a group is.
	SequenceBits = 22
	sequenceMask = 1<<SequenceBits - 1
)

// Group is the group header, once per datagram (section 3.1).
type Group struct {
	Hardware uint8  // 6 bits
	Sequence uint32 // 22 bits, of one node, hardware and destination
	Node     uint32
}

// ParseGroup parses the group header and returns the reports behind it.
func ParseGroup(b []byte) (Group, []byte, error) {
	if len(b) < groupSize {
		return Group{}, nil, Truncated
	}
	first := binary.BigEndian.Uint32(b)
	if first>>28 != reportVersion {
		return Group{}, nil, BadVersion
	}
	return Group{Hardware: uint8(first >> SequenceBits & maxHardware),
		Sequence: first & sequenceMask, Node: binary.BigEndian.Uint32(b[word:])}, b[groupSize:], nil
}

// Append appends the group header. The sequence number is taken modulo 2^22.
func (g Group) Append(b []byte) ([]byte, error) {
	if g.Hardware > maxHardware {
		return b, TooLong
	}
	b = binary.BigEndian.AppendUint32(b,
		reportVersion<<28|uint32(g.Hardware)<<SequenceBits|g.Sequence&sequenceMask)
	return binary.BigEndian.AppendUint32(b, g.Node), nil
}

// Report is one individual report (sections 3.2 and 3.3).
type Report struct {
	Type         RepType
	InType       InType
	Dropped      bool // D
	Congested    bool // Q
	Tracked      bool // F: the packet belongs to a tracked flow
	Intermediate bool // I: sent on the way, the stack being full
	// For RepINT only:
	Bits     Instructions // NodeID is reserved, ChecksumComplement is the drop reason
	DomainID uint16
	DSBits   uint16
	DSStatus uint16

	Metadata []byte // baseline, then domain-specific
	Inner    []byte // as InType says
}

// ParseReport parses one report and returns the octets behind it.
func ParseReport(b []byte) (r Report, rest []byte, err error) {
	if rest, err = r.Parse(b); err != nil {
		return Report{}, rest, err
	}
	return r, rest, nil
}

// Parse is ParseReport into a report that is there. Beside an error, the report is good for
// nothing.
func (r *Report) Parse(b []byte) (rest []byte, err error) {
	if len(b) < word {
		return nil, Truncated
	}
	r.Type, r.InType = RepType(b[0]>>4), InType(b[0]&15)
	r.Dropped, r.Congested = b[3]&0x80 != 0, b[3]&0x40 != 0
	r.Tracked, r.Intermediate = b[3]&0x20 != 0, b[3]&0x10 != 0
	r.Bits, r.DomainID, r.DSBits, r.DSStatus = 0, 0, 0, 0
	size, metadata := word*int(b[1]), word*int(b[2])
	whole := b[1] == toTheEnd
	b = b[word:]
	if len(b) < size {
		return nil, Truncated
	}
	if whole {
		size = len(b)
	}
	body, rest := b[:size], b[size:]
	if r.Type > RepIOAM || r.InType > InIPv6 {
		return rest, BadType
	}
	if r.Type == RepINT {
		if len(body) < mainSize {
			return rest, BadLength
		}
		r.Bits = Instructions(binary.BigEndian.Uint16(body))
		r.DomainID = binary.BigEndian.Uint16(body[2:])
		r.DSBits = binary.BigEndian.Uint16(body[4:])
		r.DSStatus = binary.BigEndian.Uint16(body[6:])
		body = body[mainSize:]
	}
	if len(body) < metadata || word*r.Bits.Words() > metadata {
		return rest, BadLength
	}
	r.Metadata, r.Inner = body[:metadata], body[metadata:]
	return rest, nil
}

// Append appends the report. One of 255 words or more must be the last of its datagram, as its
// length is not written.
func (r Report) Append(b []byte) ([]byte, error) {
	octets := len(r.Metadata) + len(r.Inner)
	if r.Type == RepINT {
		octets += mainSize
	}
	words := min(octets/word, toTheEnd)
	switch {
	case r.Type > RepIOAM || r.InType > InIPv6:
		return b, BadType
	case len(r.Metadata)%word != 0 || words < toTheEnd && octets%word != 0:
		return b, NotWords
	case len(r.Metadata)/word > 255:
		return b, TooLong
	case r.Type == RepINT && word*r.Bits.Words() > len(r.Metadata):
		return b, BadLength
	}
	b = append(b, uint8(r.Type)<<4|uint8(r.InType), uint8(words), uint8(len(r.Metadata)/word),
		bit(r.Dropped, 0x80)|bit(r.Congested, 0x40)|bit(r.Tracked, 0x20)|bit(r.Intermediate, 0x10))
	if r.Type == RepINT {
		b = binary.BigEndian.AppendUint16(b, uint16(r.Bits))
		b = binary.BigEndian.AppendUint16(b, r.DomainID)
		b = binary.BigEndian.AppendUint16(b, r.DSBits)
		b = binary.BigEndian.AppendUint16(b, r.DSStatus)
	}
	return append(append(b, r.Metadata...), r.Inner...), nil
}

// Baseline returns the baseline metadata of the reporting node, without the drop reason, and the
// domain-specific metadata. The report is one that ParseReport accepted.
func (r Report) Baseline() (Metadata, []byte) {
	m := readMetadata(r.Metadata, r.Bits)
	m.Present, m.NodeID = m.Present&^NodeID, 0 // the node is in the group header
	return m, r.Metadata[word*r.Bits.Words():]
}

// The domain of this program's own metadata, and its bits in DSBits.
const (
	Domain     uint16 = 0x534d
	DSIdleGap  uint16 = 0x8000 // 4 octets: microseconds without a packet of the flow
	DSFlowHash uint16 = 0x4000 // 4 octets
)

// Congestion says that a flow paused for longer than congestion explains otherwise: a report with
// Congested set, in Domain.
type Congestion struct {
	IdleGapUS uint32 // microseconds
	FlowHash  uint32
}

// AppendCongestion appends the metadata of a report whose DSBits are DSIdleGap and DSFlowHash.
func AppendCongestion(b []byte, c Congestion) []byte {
	b = binary.BigEndian.AppendUint32(b, c.IdleGapUS)
	return binary.BigEndian.AppendUint32(b, c.FlowHash)
}

// Congestion returns what the report says of a paused flow; false if it is not of that kind.
func (r Report) Congestion() (c Congestion, ok bool) {
	const both = DSIdleGap | DSFlowHash
	if r.Type != RepINT || !r.Congested || r.DomainID != Domain || r.DSBits&both != both {
		return Congestion{}, false
	}
	_, own := r.Baseline()
	if len(own) < 2*word {
		return Congestion{}, false
	}
	return Congestion{binary.BigEndian.Uint32(own), binary.BigEndian.Uint32(own[word:])}, true
}

// TLV is one TLV of inner contents of type InTLV (section 3.4).
type TLV struct {
	Type     uint8 // 0 domain-specific, 1 Ethernet, 2 IPv4, 3 IPv6
	Template uint16
	Value    []byte
}

// ParseTLV parses one TLV and returns the octets behind it.
func ParseTLV(b []byte) (TLV, []byte, error) {
	if len(b) < word || len(b) < word+word*int(b[1]) {
		return TLV{}, nil, Truncated
	}
	size := word + word*int(b[1])
	return TLV{Type: b[0] >> 4, Template: binary.BigEndian.Uint16(b[2:]), Value: b[word:size]},
		b[size:], nil
}

// Append appends the TLV.
func (t TLV) Append(b []byte) ([]byte, error) {
	switch {
	case len(t.Value)%word != 0:
		return b, NotWords
	case len(t.Value)/word > 255 || t.Type > 15:
		return b, TooLong
	}
	b = append(b, t.Type<<4, uint8(len(t.Value)/word))
	return append(binary.BigEndian.AppendUint16(b, t.Template), t.Value...), nil
}
