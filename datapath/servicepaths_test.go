package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"sextant/datapath/packettest"
	"sextant/lb/pool"
)

// TestEdgePaths compares the whole frame: paths of one to four SIDs before chains of one to six,
// every encapsulation, every kind of packet, every way out. What does not fit into one address is
// in two carriers; what does not fit into an SRH goes without.
func TestEdgePaths(t *testing.T) {
	w := newWorld(t)
	chain := []uint16{0x1, 0xdfff, 0x203, 0x7, 0xabcd, 0x600}
	path := []uint16{0xa1, 0xdffe, 0x8001, 0xffff}
	for encapsulation, name := range encapsulationNames {
		e := tableEdge(t, w, encapsulation, withPaths)
		for _, id := range path {
			must(t, e.SetSID(id, packettest.SID(id)))
		}
		edge := w.edgeSubject(e, External)
		for _, out := range []way{wayBack, wayElsewhere, wayUnknown} {
			out.lead(t, e)
			for length := 1; length <= MaxPathSIDs; length++ {
				pathTo(t, e, chain[0], path[:length])
				for n := 1; n <= pool.MaxChain; n++ {
					serveAll(t, e, 1, chain[:n]...)
					w.run(t, fmt.Sprintf("%s/%s/%d/%d", name, out.outcome, length, n),
						func(t *testing.T) {
							checkPath(t, edge, name, path[:length], chain[:n], out)
						})
				}
			}
		}
	}
}

func withPaths(c *EdgeConfig) { c.Paths = true }

// ledPacket is what a packet becomes that visits a chain by a path.
func ledPacket(t *testing.T, encapsulation string, path, chain []uint16,
	packet packettest.Packet) []byte {
	t.Helper()
	switch {
	case len(path)+len(chain) <= pool.MaxChain:
		chain = slices.Concat(path, chain)
	case encapsulation == packettest.Carrier:
		ip := packet.Bytes(t)
		o := packettest.Outer{Src: packettest.EdgeAddr, FlowLabel: label(packet.Flow()),
			TrafficClass: packet.TrafficClass, HopLimit: 63, Dst: carrierAddress(path),
			Extensions: packettest.SRH(packettest.ProtocolOf(ip), 1, 0, carrierAddress(chain))}
		return o.Around(t, packettest.Forwarded(ip))
	}
	return packettest.Encapsulated(t, encapsulation, chain, label(packet.Flow()),
		packet.TrafficClass, packet.Bytes(t))
}

// carrierAddress spells out what a carrier of the tests' block is.
func carrierAddress(ids []uint16) netip.Addr {
	text := "fcbb:bb00"
	for i := range 6 {
		id := uint16(0)
		if i < len(ids) {
			id = ids[i]
		}
		text += fmt.Sprintf(":%x", id)
	}
	return netip.MustParseAddr(text)
}

// TestEdgeTwoPaths: of two paths to a backend a flow keeps one, which its hash chooses; about half
// of the flows take either.
func TestEdgeTwoPaths(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier, withPaths)
	edge := w.edgeSubject(e, External)
	serveAll(t, e, 1, 1)
	paths := [][]uint16{{0xa1}, {0xa2, 0xa3}}
	must(t, e.SetPaths(0, map[uint16][][]uint16{1: paths}))
	must(t, e.SetService(ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}, 0, tableBuckets))
	var taken [2]int
	for port := range uint16(64) {
		packet := packettest.Web4("A")
		packet.SrcPort = 10000 + port
		choice := testHash(packet.Flow()) >> 20 & 1
		taken[choice]++
		checkEncapsulation(t, edge, packettest.Carrier, packet,
			append(slices.Clone(paths[choice]), 1), wayElsewhere)
	}
	if min(taken[0], taken[1]) < 16 {
		t.Errorf("%d of 64 flows take the first path, want about half", taken[0])
	}
}

// An edge that is told of no paths does without, whatever services say.
func TestEdgeWithoutPaths(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 1, 2)
	pathTo(t, e, 1, []uint16{0xa1})
	checkEncapsulation(t, w.edgeSubject(e, External), packettest.Carrier, packettest.Web6("A"),
		[]uint16{1, 2}, wayElsewhere)
}

// pathTo gives all services of the tables a path to a backend, which may be none.
func pathTo(t testing.TB, e *Edge, backend uint16, path []uint16) {
	t.Helper()
	for i, key := range []ServiceKey{
		{VIP: packettest.VIP4, Port: 80, Protocol: 6},
		{VIP: packettest.VIP6, Port: 80, Protocol: 6},
		{VIP: packettest.VIP6, Protocol: 17}, {VIP: packettest.VIP4, Port: 53, Protocol: 17},
	} {
		paths := map[uint16][][]uint16{}
		if path != nil {
			paths[backend] = [][]uint16{path}
		}
		must(t, e.SetPaths(uint32(i), paths))
		must(t, e.SetService(key, uint32(i), tableBuckets))
	}
}

func checkPath(t *testing.T, edge subject, encapsulation string, path, chain []uint16, out way) {
	t.Helper()
	for _, packet := range packettest.Kinds(packettest.Web4("A"), packettest.Web6("A")) {
		visited := chain
		if packet.Flow().Protocol == 17 {
			visited = chain[:1]
		}
		want := ledPacket(t, encapsulation, path, visited, packet)
		checkEncapsulated(t, edge, packet, want, out)
	}
}

// TestEdgePathOfOthers: a path is that of its service and its backend alone, the one that is set
// last holds from the next packet on, and is gone when it is taken away.
func TestEdgePathOfOthers(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier, withPaths)
	edge := w.edgeSubject(e, External)
	serveAll(t, e, 2, 1, 2)
	check := func(packet packettest.Packet, ids ...uint16) {
		t.Helper()
		checkEncapsulation(t, edge, packettest.Carrier, packet, ids, wayElsewhere)
	}
	set := func(paths map[uint16][][]uint16) {
		t.Helper()
		must(t, e.SetPaths(0, paths))
		must(t, e.SetService(ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}, 0,
			tableBuckets))
	}
	pathTo(t, e, 2, []uint16{0xa1})
	check(packettest.Web4("A"), 1, 2)
	set(map[uint16][][]uint16{1: {{0xa1}}})
	check(packettest.Web4("A"), 0xa1, 1, 2)
	check(packettest.Web6("A"), 1, 2)
	must(t, e.SetPaths(0, map[uint16][][]uint16{1: {{0xa2, 0xa3}}, 2: {{0xa1}}}))
	check(packettest.Web4("A"), 0xa1, 1, 2) // until the service is set
	set(map[uint16][][]uint16{1: {{0xa2, 0xa3}}, 2: {{0xa1}}})
	check(packettest.Web4("A"), 0xa2, 0xa3, 1, 2)
	set(nil)
	check(packettest.Web4("A"), 1, 2)
}

// Too long a path is refused, and changes nothing; a service that is deleted leaves none behind.
func TestSetPaths(t *testing.T) {
	w := newWorld(t)
	e, err := OpenEdge(w.dir, edgeConfig(t))
	must(t, err)
	t.Cleanup(e.Close)
	must(t, e.SetPaths(3, map[uint16][][]uint16{9: {{1}}}))
	if err := e.SetPaths(3, map[uint16][][]uint16{9: {{1}, {1, 2, 3, 4, 5}}}); err == nil {
		t.Error("a path of five SIDs was set")
	}
	if err := e.SetPaths(3, map[uint16][][]uint16{9: {{1}, {2}, {3}}}); err == nil {
		t.Error("three paths to a backend were set")
	}
	must(t, e.SetService(ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}, 3, testBuckets))
	for at, path := range e.paths.all() {
		want := servicePath{IDs: [pathMaxSIDs][2]byte{{0, 1}}, Owner: 9, Length: 1, Paths: 1}
		if at.service != 3 || at.backend != 9 || path != want {
			t.Errorf("path %v of %v, want %v of backend 9", path, at, want)
		}
	}
	must(t, e.SetChains(3, testPool(t, testBuckets, 1, 1)))
	must(t, e.DeleteChains(3))
	must(t, e.forgetPaths())
	for place, paths := range e.paths.array {
		if paths != (backendPaths{}) {
			t.Errorf("paths of a deleted service at %d: %v", place, paths)
		}
	}
}
