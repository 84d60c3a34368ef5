package cflb

// Find looks for a packet that takes the path, by the field that a source chooses without the other
// end: the flow label if it is controllable, else the source port. The rest of p stays. It tries
// values from first on, modulo their number, and takes the first that is usable. It finds none if
// the network controls neither, or if too few values take a path with so many choices.
func (c *Codec) Find(p Packet, path []Hop, first uint32, usable func(Packet) bool) (Packet, bool) {
	values := uint32(1) << portBits
	switch {
	case c.fields.HasLabel() && p.Src.Is4(), c.fields == NoFields:
		return p, false
	case c.fields.HasLabel():
		values = 1 << labelBits
	default:
		p.HasPorts = true
	}
	for i := range values {
		if value := (first + i) % values; c.fields.HasLabel() {
			p.FlowLabel = value
		} else {
			p.SrcPort = uint16(value)
		}
		if c.usable(p) && c.Takes(p, path) && usable(p) {
			return p, true
		}
	}
	return p, false
}

// Takes says whether routers take the path of a packet.
func (c *Codec) Takes(p Packet, path []Hop) bool {
	for _, hop := range path {
		p.HopLimit = hop.HopLimit
		if digit, choice, _ := c.Digit(p, 0); choice != Controlled || digit != hop.Index {
			return false
		}
	}
	return true
}
