package model

import (
	"cmp"
	"encoding/binary"
	"net/netip"
)

const (
	maxQuoteIPv4 = 548  // RFC 1812 section 4.3.2.3: 576 bytes in all
	maxQuoteIPv6 = 1232 // RFC 4443 section 2.4: the minimum MTU in all
	icmpTOS      = 0xc0 // internetwork control, RFC 1812 section 4.3.2.5
	ipv4DontFrag = 0x4000
	minMTU       = 1280 // RFC 8200 section 5
)

// Answer says what an edge says in a VIP's name, by the names of the programs' counters.
type Answer uint8

// The answers.
const (
	AnswerNone       Answer = iota
	AnswerEcho              // an echo reply
	AnswerTooBig            // the packet does not fit: Packet Too Big, or Fragmentation Needed
	AnswerTranslated        // the same, translated from what a router of the SR domain says
)

var answerNames = [...]string{AnswerNone: "none", AnswerEcho: "echoed",
	AnswerTooBig: "too_big_answered", AnswerTranslated: "translated"}

// String returns the answer in lower snake case.
func (a Answer) String() string { return name(answerNames[:], int(a)) }

// echo answers an echo request for the VIP. The answer goes back the way that the request came.
func (e *Edge) echo(r Result, f *frame, p *packet, ingress uint32) Result {
	if !f.isUnicast() || !isAnswerable(p.dst, p.src) {
		return r.drop(ReasonUnanswerable)
	}
	b := f.appendTurned(nil, p.etherType())
	b = append(b, p.data[p.start:]...)
	header, message := b[f.network:], b[f.network+p.upper-p.start:]
	if p.ipv6 {
		copy(header[8:], p.dst.AsSlice())
		copy(header[24:], p.src.AsSlice())
		header[ipv6HopLimitOffset] = e.hopLimit()
	} else {
		copy(header[12:], p.dst.AsSlice())
		copy(header[16:], p.src.AsSlice())
		before := binary.BigEndian.Uint16(header[8:])
		header[8] = e.hopLimit()
		updateChecksum(header[ipv4ChecksumOffset:], before, binary.BigEndian.Uint16(header[8:]))
	}
	before := binary.BigEndian.Uint16(message)
	message[0] = 0
	if p.ipv6 {
		message[0] = icmpv6EchoReply
	}
	updateChecksum(message[icmpChecksumOffset:], before, binary.BigEndian.Uint16(message))
	// A message of zeros adds up to a positive zero, which RFC 1624 rules out. Without identifier
	// and sequence it is one.
	if !p.ipv6 && binary.BigEndian.Uint64(message) == 0 {
		binary.BigEndian.PutUint16(message[icmpChecksumOffset:], 0xffff)
	}
	r.Verdict, r.Interface, r.Frame, r.Answer = Transmit, ingress, b, AnswerEcho
	return r
}

// tooBig tells a client that its packet may have mtu bytes. How often is not limited here.
func (e *Edge) tooBig(r Result, f *frame, p *packet, ingress uint32, mtu int) Result {
	return r.tooBig(f, p, ingress, mtu, e.hopLimit())
}

func (r Result) tooBig(f *frame, p *packet, ingress uint32, mtu int, hopLimit uint8) Result {
	says, reason := tooLong(p.ipv6, p.end-p.start, mtu)
	if !p.answerable(f) {
		return r.drop(cmp.Or(reason, ReasonPacketTooBig))
	}
	r.Verdict, r.Interface, r.Reason = Transmit, ingress, reason
	if reason == ReasonNone {
		r.Answer = AnswerTooBig
	}
	r.Frame = appendError(f.appendTurned(nil, p.etherType()), p.dst, p.src, says, hopLimit,
		p.data[p.start:p.end])
	return r
}

// answerable reports whether a packet's sender may be told what became of it: never of an ICMP
// packet, nor of a later fragment.
func (p *packet) answerable(f *frame) bool {
	return p.icmp == icmpNone && p.fragment.kind != fragmentLater && f.isUnicast() &&
		isAnswerable(p.dst, p.src)
}

// isAnswerable reports whether there may be an answer, which goes from one address to the other:
// not to itself.
func isAnswerable(from, to netip.Addr) bool {
	return from != to && isSingleHost(from) && isSingleHost(to)
}

// isSingleHost reports whether an address is that of one host, which can be answered (RFC 1812
// sections 4.3.2.7 and 5.3.7,
// RFC 4443 section 2.4 (e)). The first half of ::, ::1 and IPv4-mapped addresses is 0; 64:ff9b::/96
// is a translator's.
func isSingleHost(addr netip.Addr) bool {
	if addr.Is4() {
		const loopback, multicast = 127, 224 // and all behind it: class E, broadcast
		first := addr.As4()[0]
		return first != 0 && first != loopback && first < multicast
	}
	b := addr.As16()
	return !addr.IsMulticast() && binary.BigEndian.Uint64(b[:]) != 0
}

// timeExceeded tells a client that its packet has made too many hops (RFC 8986 section 5.1, RFC
// 1812 section 5.3.1).
func (e *Edge) timeExceeded(r Result, f *frame, p *packet, ingress uint32) Result {
	if !p.answerable(f) {
		return r.drop(ReasonHopLimit)
	}
	r.Verdict, r.Interface, r.Reason = Transmit, ingress, ReasonHopLimit
	r.Frame = appendError(f.appendTurned(nil, p.etherType()), p.dst, p.src, exceeded(p.ipv6),
		e.hopLimit(),
		p.data[p.start:p.end])
	return r
}

// icmpError is what an ICMP error says.
type icmpError struct {
	kind, code byte
	mtu        int // 0: it names none
}

// tooLong says how much of a packet fits: Packet Too Big (RFC 4443 section 3.2), or Fragmentation
// Needed (RFC 1191). No IPv6
// sender goes below 1280 bytes (RFC 8201 section 4), so it is never told less; what is no longer
// and does not fit can't be
// carried, as by a link with a problem (RFC 4443 section 3.1).
func tooLong(ipv6 bool, length, mtu int) (icmpError, Reason) {
	switch {
	case !ipv6:
		return icmpError{kind: icmpUnreachable, code: icmpFragNeeded, mtu: mtu}, ReasonNone
	case length <= minMTU:
		return icmpError{kind: icmpv6Unreachable, code: icmpv6AddressUnreachable}, ReasonBelowMinMTU
	}
	return icmpError{kind: icmpv6TooBig, mtu: max(mtu, minMTU)}, ReasonNone
}

func exceeded(ipv6 bool) icmpError {
	if ipv6 {
		return icmpError{kind: icmpv6TimeExceeded}
	}
	return icmpError{kind: icmpTimeExceeded}
}

// appendError appends an ICMP error from src to dst, about a packet.
func appendError(b []byte, src, dst netip.Addr, e icmpError, hopLimit uint8, about []byte) []byte {
	most := maxQuoteIPv6
	if dst.Is4() {
		most = maxQuoteIPv4
	}
	message := []byte{e.kind, e.code, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(message[icmpMTUOffset:], uint32(e.mtu))
	message = append(message, about[:min(len(about), most)&^3]...)
	sum := uint32(0)
	if dst.Is4() {
		b = appendAnswerIPv4(b, src, dst, len(message), hopLimit)
	} else {
		b = append(b, 6<<4, 0, 0, 0, byte(len(message)>>8), byte(len(message)), protocolICMPv6,
			hopLimit)
		b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
		sum = checksumOf(b[len(b)-32:], protocolICMPv6+uint32(len(message)))
	}
	binary.BigEndian.PutUint16(message[icmpChecksumOffset:], foldChecksum(checksumOf(message, sum)))
	return append(b, message...)
}

func appendAnswerIPv4(b []byte, src, dst netip.Addr, length int, hopLimit uint8) []byte {
	header := make([]byte, ipv4HeaderLength)
	header[0], header[1], header[8], header[9] = 4<<4|ipv4MinIHL, icmpTOS, hopLimit, protocolICMP
	binary.BigEndian.PutUint16(header[2:], uint16(ipv4HeaderLength+length))
	binary.BigEndian.PutUint16(header[6:], ipv4DontFrag)
	copy(header[12:], src.AsSlice())
	copy(header[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(header[ipv4ChecksumOffset:], foldChecksum(checksumOf(header, 0)))
	return append(b, header...)
}

// checksumOf adds the 16-bit words of b, of even length, to a sum (RFC 1071).
func checksumOf(b []byte, sum uint32) uint32 {
	for ; len(b) > 0; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	return sum
}

func foldChecksum(sum uint32) uint16 {
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	return ^uint16(sum)
}

// translateTooBig turns what a router of the SR domain says about an outer packet of the edge's
// into what the client can understand: its own packet, and what fits inside of the outer headers
// (RFC 2473 section 8.1). It is false if the packet is nothing of the kind.
func (e *Edge) translateTooBig(r Result, f *frame, p *packet) (Result, bool) {
	inner, says, reason, ok := e.tooBigAbout(p)
	if !ok {
		return r, false
	}
	b := f.appendLinkHeader(nil, inner.etherType())
	r.Verdict, r.Reason = HandToKernel, reason
	if reason == ReasonNone {
		r.Answer = AnswerTranslated
	}
	r.Frame = appendError(b, inner.dst, inner.src, says, e.hopLimit(),
		inner.data[inner.start:inner.end])
	return r, true
}

// tooBigAbout finds the client's packet behind the outer headers that a message quotes, and what to
// say about it.
func (e *Edge) tooBigAbout(p *packet) (inner packet, says icmpError, reason Reason, ok bool) {
	message := p.data[p.upper:p.end]
	outer := packet{data: p.data, start: p.upper + icmpHeaderLength, end: p.end, ipv6: true}
	if len(message) < icmpHeaderLength+ipv6HeaderLength || message[0] != icmpv6TooBig {
		return inner, says, ReasonNone, false
	}
	b := outer.data[outer.start:]
	outer.protocol, outer.upper = b[6], outer.start+ipv6HeaderLength
	if b[0]>>4 != 6 || netip.AddrFrom16([16]byte(b[8:])) != e.Source ||
		outer.walkExtensions(quotedOuter) != ReasonNone {
		return inner, says, ReasonNone, false
	}
	if outer.protocol != protocolIPv4 && outer.protocol != protocolIPv6 {
		return inner, says, ReasonNone, false
	}
	inner = packet{data: p.data, start: outer.upper, end: p.end,
		ipv6: outer.protocol == protocolIPv6}
	routerMTU := uint64(binary.BigEndian.Uint32(message[icmpMTUOffset:]))
	overhead := uint64(inner.start - outer.start)
	total, ok := inner.parseQuotedClient()
	// A router's MTU is one at which the packet did not fit, or else the message is a lie.
	if !ok || routerMTU < minMTU || uint64(total)+overhead <= routerMTU || !isAnswerable(inner.dst,
		inner.src) {
		return inner, says, ReasonNone, false
	}
	_, vip := e.VIPs[inner.dst]
	says, reason = tooLong(inner.ipv6, total, int(routerMTU-overhead))
	return inner, says, reason, vip
}

// parseQuotedClient reads the addresses and the length of a client's packet of which there may be
// no more than the header. It is false for what nothing can be said about: an ICMP error, and a
// fragment but the first.
func (p *packet) parseQuotedClient() (total int, ok bool) {
	b := p.data[p.start:p.end]
	if p.ipv6 {
		if len(b) < ipv6HeaderLength || b[0]>>4 != 6 || b[6] == protocolICMPv6 {
			return 0, false
		}
		p.src, p.dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		return ipv6HeaderLength + int(binary.BigEndian.Uint16(b[4:])), true
	}
	if len(b) < ipv4HeaderLength || b[0]>>4 != 4 || b[0]&0x0f < ipv4MinIHL ||
		b[9] == protocolICMP ||
		binary.BigEndian.Uint16(b[6:])&ipv4FragmentOffset != 0 {
		return 0, false
	}
	p.src, p.dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	return int(binary.BigEndian.Uint16(b[2:])), true
}
