package packetgen

import "encoding/binary"

const (
	routingTypeSRH = 4
	maxWalked      = 8 // extension headers that the data plane walks over
)

// chainLength returns how many extension headers a packet gets: mostly none, sometimes
// as many as are walked, sometimes more.
func (g *Generator) chainLength() int {
	switch {
	case g.percent(75):
		return 0
	case g.percent(60):
		return 1 + g.below(3)
	case g.oneIn(2):
		return 4 + g.below(3)
	}
	return maxWalked - 1 + g.below(4)
}

// appendExtensions appends a chain of extension headers. Half of the chains are of
// options only, as few of the others live to their end if they are long.
func (g *Generator) appendExtensions(count int) {
	kinds := 8
	if g.oneIn(2) {
		kinds = 5
	}
	for range count {
		switch g.below(kinds) {
		case 0, 1, 2:
			g.appendOptions(protocolDestination)
		case 3, 4:
			g.appendOptions(protocolHopByHop)
		case 5, 6:
			g.appendRouting()
		default:
			g.appendFragment()
		}
	}
}

// link makes the header at the end of the frame the next one.
func (g *Generator) link(protocol uint8) {
	g.frame[g.nextHeader] = protocol
	g.nextHeader = len(g.frame)
	g.extensions = append(g.extensions, extension{at: len(g.frame), protocol: protocol})
}

// appendOptions appends a hop-by-hop or destination options header.
func (g *Generator) appendOptions(protocol uint8) {
	g.link(protocol)
	units := 0
	if g.oneIn(3) {
		units = g.below(4)
	}
	b := g.appendZeros(8 + 8*units)
	b[1] = uint8(units)
	b[2], b[3] = 1, uint8(len(b)-4) // one PadN
}

// routingTypes are: deprecated, Mobile IPv6, RPL, SRH.
var routingTypes = [...]uint8{0, 2, 3, routingTypeSRH}

// appendRouting appends a routing header of any type, mostly one that has been followed
// to its end.
func (g *Generator) appendRouting() {
	kind := routingTypes[g.below(len(routingTypes))]
	left := 0
	if g.oneIn(8) {
		left = 1 + g.below(3)
	}
	if kind == routingTypeSRH {
		g.appendSRH(1+g.below(3), left)
		return
	}
	g.link(protocolRouting)
	b := g.appendZeros(8 + 16*g.below(3))
	b[1], b[2], b[3] = uint8(len(b)/8-1), kind, uint8(left)
}

// appendSRH appends a segment routing header, sometimes with TLVs.
func (g *Generator) appendSRH(segments, left int) {
	g.link(protocolRouting)
	at := len(g.frame)
	g.appendZeros(8)
	for range segments {
		other := pick(g, g.world.Others)
		if !other.IsValid() || g.oneIn(8) {
			other = g.inBlock()
		}
		g.frame = append(g.frame, other.AsSlice()...)
	}
	signed := len(g.world.HMACKeys) > 0 && !g.oneIn(5)
	if !signed && g.oneIn(6) {
		g.appendNoise(8 * (1 + g.below(3)))
	}
	b := g.frame[at:]
	b[1], b[2], b[3], b[4] = uint8(len(b)/8-1), routingTypeSRH, uint8(left), uint8(segments-1)
	if g.oneIn(4) {
		binary.BigEndian.PutUint16(b[6:], uint16(g.random.Uint32())) // tag
	}
	if signed {
		g.appendHMAC(at)
	}
}

// appendFragment appends a fragment header: mostly an atomic fragment's.
func (g *Generator) appendFragment() {
	g.link(protocolFragment)
	b := g.appendZeros(8)
	binary.BigEndian.PutUint32(b[4:], uint32(g.below(fragmentIDs)))
	b[1] = uint8(g.random.Uint32()) // reserved, not a length
	switch g.below(8) {
	case 0, 3:
		b[3] = 1 // the first of several
	case 4, 5:
		binary.BigEndian.PutUint16(b[2:], uint16(g.laterOffset()|g.below(2)))
	case 1:
		binary.BigEndian.PutUint16(b[2:], uint16(g.random.Uint32()))
	case 2:
		b[3] = 6 // reserved bits
	}
}
