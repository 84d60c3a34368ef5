package rtnetlink

// AppendRouteDump writes a request to the kernel for all routes of a table that are of a family.
// Each request has a number of its own, which is in the answers.
func AppendRouteDump(b []byte, seq uint32, family uint8, table uint32) []byte {
	w := begin(b, getRoute, seq, flagDump)
	w.bytes = append(w.bytes, family, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	w.number(rtaTable, table)
	return w.end()
}

// AppendNextHopDump writes a request for all next hops.
func AppendNextHopDump(b []byte, seq uint32) []byte {
	w := begin(b, getNextHop, seq, flagDump)
	w.bytes = append(w.bytes, familyAny, 0, 0, 0, 0, 0, 0, 0)
	return w.end()
}

// AppendNothing writes a request that does nothing but be answered.
func AppendNothing(b []byte, seq uint32) []byte { return begin(b, kindNothing, seq, flagAck).end() }
