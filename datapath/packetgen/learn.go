package packetgen

// learnPacket makes a frame with the answer to a SYN that a host sends by way of the edge, or
// something near to it.
func (g *Generator) learnPacket() {
	s := g.toService()
	if !g.oneIn(6) {
		s.SrcPort = uint16(1024 + g.below(8)) // flows that come again
	}
	g.matchFamily(&s)
	s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
	if !g.oneIn(10) {
		s.flags = flagSYN | flagACK
	}
	src := pick(g, g.world.Infrastructure)
	if g.oneIn(16) {
		src = g.anyAddr(true)
	}
	g.appendLink(etherTypeIPv6)
	outer := ipHeader{at: len(g.frame), ipv6: true}
	g.headers = append(g.headers, outer)
	g.appendIPv6Header(src, g.world.Learning)
	if g.percent(75) {
		g.frame[outer.at+1] &^= 0x10 // no CE
	}
	g.appendOwner()
	g.frame[g.nextHeader] = g.innerProtocol(s.Dst)
	g.appendPacket(s)
	g.fit(outer, len(g.frame))
}

// appendOwner appends an SRH that names who took the connection, sometimes another one or none.
func (g *Generator) appendOwner() {
	if g.oneIn(8) {
		g.appendExtensions(g.below(4))
	}
	if g.oneIn(10) {
		return
	}
	segments, left := 2, 0
	if g.oneIn(10) {
		segments = 1 + g.below(3)
	}
	if g.oneIn(16) {
		left = 1
	}
	const fixed, segment = 8, 16
	at := len(g.frame)
	g.appendSRH(segments, left)
	if owner := pick(g, g.world.Owners); segments > 1 && owner.IsValid() && !g.oneIn(16) {
		copy(g.frame[at+fixed+segment:], owner.AsSlice())
	}
}
