package datapath

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"sextant/packet/telemetry"
)

// telemetryGenerator makes packets with and without telemetry, right and wrong ones.
type telemetryGenerator struct{ *rand.Rand }

func (g telemetryGenerator) octets(n int) []byte {
	b := make([]byte, 0, n+7)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, g.Uint64())
	}
	return b[:n:n]
}

func (g telemetryGenerator) pick(from ...int) int { return from[g.IntN(len(from))] }

// inner is a packet of one of few flows, or of none.
func (g telemetryGenerator) inner() (packet []byte, protocol uint8) {
	b := g.octets(g.pick(0, 20, 40, 60, 600, 1200+g.IntN(300), 1360+g.IntN(100)))
	transport := slices.Concat([]byte{0, byte(g.IntN(2)), 0, 80}, g.octets(9),
		[]byte{byte(g.pick(16, 16, 16, 16, 2, 18, 17, 4, 0))}, b)
	l4, host := byte(g.pick(6, 6, 6, 17, 1)), byte(g.IntN(8))
	class := g.pick(0, 0, 46<<2, 46<<2|1, 47<<2, 10<<2)
	switch g.IntN(8) {
	case 0, 1, 2:
		header := append(make([]byte, 40), transport...)
		header[0], header[6], header[23], header[39] = 0x60|byte(class>>4), l4, host, 1
		header[1] = byte(class << 4)
		header[11], header[27] = byte(g.pick(0, 0, 5)), byte(g.pick(0, 0, 5))
		return header, 41
	case 3, 4, 5:
		ihl := g.pick(5, 5, 5, 6, 15)
		header := append(make([]byte, 4*ihl), transport...)
		header[0], header[9], header[15], header[19] = byte(0x40|ihl), l4, host, 1
		header[1], header[6] = byte(class), byte(g.pick(0, 0, 0, 0x20, 1))
		return header, 4
	}
	return append([]byte{0}, b...), uint8(g.pick(41, 4, 143, 6, 17))
}

// frame is a frame with an Ethernet header.
func (g telemetryGenerator) frame() []byte {
	inner, next := g.inner()
	if g.IntN(4) > 0 {
		inner, next = g.carrying(inner, next), 17
	}
	extensions, first := g.extensions(next)
	return g.framed(extensions, first, inner)
}

// frameWithOption is a frame that may have telemetry in hop-by-hop options, and may have nothing
// encapsulated.
func (g telemetryGenerator) frameWithOption() []byte {
	inner, next := g.inner()
	var extensions []byte
	switch g.IntN(4) {
	case 0: // transport, plain
		next = uint8(g.pick(6, 6, 17, 58))
		inner = slices.Concat([]byte{0, byte(g.IntN(2)), 0, 80}, g.octets(9),
			[]byte{byte(g.pick(16, 16, 2, 17))}, g.octets(g.pick(6, 600, 1350)))
	case 1:
		extensions, next = g.extensions(next)
		if len(extensions) > 0 && extensions[0] == 0 {
			return g.frameWithOption()
		}
	}
	if g.IntN(3) > 0 {
		extensions, next = slices.Concat(g.options(next), extensions), 0
	}
	return g.framed(extensions, next, inner)
}

// options is a hop-by-hop header with telemetry, with lies now and then.
func (g telemetryGenerator) options(next uint8) []byte {
	b := []byte{next, 0}
	switch g.IntN(8) {
	case 0: // an option of others, or padding that moves the rest
		size := g.pick(0, 2, 4, 2, 4, 236, 238)
		b = append(append(b, uint8(g.pick(1, 5, 0x3e)), uint8(size)), g.octets(size)...)
	case 1:
		b = append(b, make([]byte, g.IntN(4))...)
	default:
		b = append(b, 1, 0)
	}
	if g.IntN(3) == 0 {
		midpoints := g.octets(g.pick(3, 24, 36, 37, 2, 0, 252))
		if free := g.IntN(20); free < len(midpoints) {
			clear(midpoints[len(midpoints)-free:])
		}
		b, _ = telemetry.PathTrace(midpoints).AppendBinary(b)
	} else {
		b = append(b, g.trace()...)
	}
	if g.IntN(8) == 0 {
		b = append(b, uint8(g.pick(5, 0x32, 1, 0)), 2, 0, 0)
	}
	switch padding := -len(b) & 7; {
	case padding == 1:
		b = append(b, 0)
	case padding > 1:
		b = append(append(b, 1, byte(padding-2)), make([]byte, padding-2)...)
	}
	b[1] = uint8(len(b)/8 - 1 + g.pick(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1))
	if g.IntN(8) == 0 {
		b[2+g.IntN(min(len(b)-2, 14))] ^= 1 << g.IntN(8)
	}
	return b
}

// trace is an option with a trace of IOAM.
func (g telemetryGenerator) trace() []byte {
	kind := telemetry.TraceType(g.pick(0x820000, 0x820000, 0xc20000, 0x800000, 0x8a0000, 0x820002,
		0xffffff, 0x00c000, 0x00a000, 0x002000, 0x020000, 0))
	words := kind.Words()
	hops := min(g.pick(1, 2, 4, 8, 30), 60/max(1, words))
	trace := telemetry.Trace{Option: telemetry.OptionIOAM, Type: kind, OtherFlags: uint8(g.IntN(8)),
		Namespace: telemetryNamespace, Overflow: g.IntN(8) == 0,
		Data: g.octets(4 * words * hops)}
	trace.RemainingWords = uint8(words * g.IntN(hops+1))
	if g.IntN(8) == 0 {
		trace.Namespace++
	}
	for i := 0; i+4 <= len(trace.Data); i += 4 { // nodes and queues that repeat, and unknown ones
		copy(trace.Data[i:], []byte{g.octets(1)[0], 0, 0, byte(g.IntN(3))})
		if g.IntN(8) == 0 {
			copy(trace.Data[i:], "\xff\xff\xff\xff")
		}
	}
	b, err := trace.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	return b
}

// extensions are headers in front of a protocol.
func (g telemetryGenerator) extensions(next uint8) (extensions []byte, first uint8) {
	first = next
	for range g.pick(0, 1, 1, 1, 2, 3, 4) {
		units := g.pick(0, 2, 4, 6, 15, 31)
		extension := append([]byte{first, byte(units)}, g.octets(6+8*units)...)
		extensions = append(extension, extensions...)
		first = uint8(g.pick(43, 43, 43, 0, 60))
	}
	return extensions, first
}

// framed puts Ethernet and IPv6 headers in front, with lies now and then.
func (g telemetryGenerator) framed(extensions []byte, first uint8, inner []byte) []byte {
	ip := binary.BigEndian.AppendUint32(nil, 6<<28|g.Uint32()>>4)
	ip = binary.BigEndian.AppendUint16(ip, uint16(len(extensions)+len(inner)))
	ip = append(ip, first, 64)
	from := telemetryInside[g.IntN(2)].Addr().As16()
	if g.IntN(3) == 0 {
		from = telemetryPlain[0].Addr().As16()
	}
	if from[15] = byte(g.IntN(4)); g.IntN(64) == 0 {
		copy(from[8:], g.octets(8))
	}
	if g.IntN(8) == 0 {
		from[4] ^= 0x80
	}
	ip = append(ip, from[:]...)
	to := telemetrySID.Addr().As16()
	if to[6] = byte(g.pick(0, 0x80)); g.IntN(64) == 0 {
		copy(to[8:], g.octets(8))
	}
	if g.IntN(8) == 0 {
		to[5]++
	}
	ip = slices.Concat(ip, to[:], extensions, inner)
	frame := slices.Concat(nearMAC, routerMAC, []byte{0x86, 0xdd}, ip)
	switch g.IntN(16) {
	case 0:
		frame[ethernetHeader+g.IntN(len(ip))] ^= 1 << g.IntN(8)
	case 1:
		frame = frame[:ethernetHeader+g.IntN(len(ip))]
	case 2:
		frame = append(frame, g.octets(g.IntN(30))...)
	case 3:
		frame[13] = byte(g.Uint32())
	}
	return frame
}

// carrying puts INT in front of an inner packet, with lies now and then.
func (g telemetryGenerator) carrying(inner []byte, next uint8) []byte {
	instructions := telemetry.Instructions(g.pick(0x8000, 0x9000, 0xff80, 0x0400, 0xffff, 0))
	words := instructions.Words() + g.pick(0, 0, 1, 5)
	md := telemetry.MD{Shim: telemetry.Shim{NPT: uint8(g.pick(2, 2, 2, 2, 2, 2, 1)),
		Value: uint16(next)}, Discard: g.IntN(8) == 0, HopWords: uint8(words),
		Remaining: uint8(g.pick(0, 1, 7, 255)), Instructions: instructions,
		DSFlags: uint16(g.pick(0, 1, 2, 3, 60, 0x101))}
	if g.IntN(2) == 0 {
		md.DomainID = telemetry.Domain
	}
	hops := min(g.pick(0, 1, 2, 3, 8, 250), 250/max(1, words))
	md.Stack = bytes.Repeat([]byte{0xff}, 4*words*hops)
	if g.IntN(2) == 0 {
		md.Stack = g.octets(4 * (words*hops + g.pick(0, 0, 1)))
	}
	behind, err := md.AppendBinary(nil)
	if err != nil {
		panic(err)
	}
	udp := binary.BigEndian.AppendUint16(nil, uint16(g.Uint32()))
	udp = binary.BigEndian.AppendUint16(udp, uint16(telemetryPort-g.pick(0, 0, 0, 0, 0, 0, 1)))
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(behind)+len(inner)))
	udp = append(udp, 0, 0)
	all := slices.Concat(udp, behind, inner)
	if g.IntN(8) == 0 {
		all[g.IntN(24)] ^= 1 << g.IntN(8)
	}
	return all
}
