package model

import (
	"encoding/binary"
	"net/netip"
)

// fragmentKind says which part of a packet it is.
type fragmentKind uint8

const (
	fragmentNone  fragmentKind = iota // a whole packet
	fragmentFirst                     // with the transport header
	fragmentLater
)

// fragment is what a packet says about being a part of one.
type fragment struct {
	kind  fragmentKind
	id    uint32
	bytes int // of data: how many the first fragment has, or how many are before a later one
}

// fragmentOf reads a fragment header: the 16 bits with the offset, and how much data there is.
func fragmentOf(offset uint16, id uint32, data int) fragment {
	if before := int(offset &^ 7); before > 0 {
		return fragment{kind: fragmentLater, id: id, bytes: before}
	}
	return fragment{kind: fragmentFirst, id: id, bytes: data}
}

// parseFragment parses the transport header of a first fragment, which has to be whole, and checks
// that a later one does not reach into it (RFC 1858, RFC 3128, RFC 7112). A later one has no ports:
// which flow it is of, the first has told.
func (p *packet) parseFragment() {
	b := p.data[p.upper:p.end]
	switch {
	case p.fragment.kind == fragmentLater:
		if p.protocol == protocolTCP && p.fragment.bytes < tcpHeaderLength {
			p.note(ReasonTinyFragment)
		} else if !p.ipv6 && p.protocol != protocolTCP && p.protocol != protocolUDP {
			p.note(ReasonFragment)
		}
	case p.protocol == protocolTCP:
		if p.transport.parseTCP(b) {
			return
		}
		if len(b) >= tcpHeaderLength && int(b[12]>>4)*4 < tcpHeaderLength {
			p.note(ReasonBadTransport)
		}
		p.note(ReasonTinyFragment)
	case p.protocol == protocolUDP:
		if len(b) < udpHeaderLength {
			p.note(ReasonTinyFragment)
			return
		}
		p.transport = transport{srcPort: binary.BigEndian.Uint16(b),
			dstPort: binary.BigEndian.Uint16(b[2:])}
		if binary.BigEndian.Uint16(b[4:]) < udpHeaderLength {
			p.note(ReasonBadTransport)
		}
	default:
		p.note(ReasonFragment)
	}
}

// fragmentKey is what all fragments of a packet have in common (RFC 791, RFC 8200 section 4.5).
type fragmentKey struct {
	src, dst netip.Addr
	id       uint32
	protocol uint8 // IPv4
}

func (p *packet) fragmentKey() fragmentKey {
	key := fragmentKey{src: p.src, dst: p.dst, id: p.fragment.id}
	if !p.ipv6 {
		key.protocol = p.protocol
	}
	return key
}

// firstFragment is what the later ones have to know.
type firstFragment struct {
	transport transport
	protocol  uint8
	bytes     int
}

// fragments are the first fragments seen. The programs forget those that were not used for longest;
// here, all are kept. The zero value has none.
type fragments struct {
	first map[fragmentKey]firstFragment
}

// remember notes a first fragment. It takes the place of an older one.
func (f *fragments) remember(p *packet) {
	if f.first == nil {
		f.first = make(map[fragmentKey]firstFragment)
	}
	f.first[p.fragmentKey()] = firstFragment{transport: p.transport, protocol: p.protocol,
		bytes: p.fragment.bytes}
}

// recall gives a later fragment the flow of the first, and what decides about the first's way.
func (f *fragments) recall(p *packet) {
	first, ok := f.first[p.fragmentKey()]
	switch {
	case !ok:
		p.note(ReasonFragmentWithoutFirst)
	case p.fragment.bytes < first.bytes:
		p.note(ReasonOverlappingFragment)
	default:
		p.transport, p.protocol = first.transport, first.protocol
	}
}

// knows reports whether the first fragment was remembered.
func (f *fragments) knows(p *packet) bool {
	_, ok := f.first[p.fragmentKey()]
	return ok
}
