package datapath

import "testing"

// pathRows are packets that are led over SIDs on the way to the first candidate, each backend's
// over others. Beside them is the edge without paths, in edgeRows.
func pathRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	const firstRouter = 0x1000
	of := func(encapsulation Encapsulation) *Edge {
		e := newBenchEdge(t, w, encapsulation, func(c *EdgeConfig) { c.Paths = true })
		paths := map[uint16][][]uint16{}
		for id := uint16(1); id <= benchBackends; id++ {
			routers := []uint16{firstRouter + 2*id, firstRouter + 2*id + 1}
			for _, router := range routers {
				must(t, e.SetSID(router, sidOf(t, e.config.Block, router)))
			}
			paths[id] = [][]uint16{routers}
		}
		for i, vip := range []ServiceKey{{VIP: hostVIPv6, Port: hostPort, Protocol: 6},
			{VIP: hostVIPv4, Port: hostPort, Protocol: 6}} {
			must(t, e.SetPaths(uint32(i), paths))
			must(t, e.SetService(vip, uint32(i), benchBuckets))
		}
		return e
	}
	carrier, srh := of(Carrier), of(SRHReduced)
	without := ServiceKey{VIP: hostVIPv6, Port: hostPort + 1, Protocol: 6}
	must(t, carrier.SetService(without, benchQUIC, benchBuckets))
	row := func(name string, e *Edge, frame benchFrame) benchRow {
		return benchRow{name: "edge, path of 2 SIDs, " + name, program: e.programs[External],
			frame: frame, verdict: xdpTransmit,
			counted: benchOutcome(t, e.collection, "transmitted")}
	}
	beside := func(name string, e *Edge, frame benchFrame) benchRow {
		r := row(name, e, frame)
		r.name = "edge, no path, others have some, " + name
		return r
	}
	plain := benchACK(benchClientV6, hostVIPv6)
	plain.DstPort = without.Port
	v6, v4 := benchACK(benchClientV6, hostVIPv6), benchACK(benchClientV4, hostVIPv4)
	return []benchRow{
		row("IPv6, 1 flow", carrier, benchArriving(t, v6, 1)),
		row("IPv6, 131,072 flows", carrier, benchArriving(t, v6, 1<<17)),
		row("IPv4, 131,072 flows", carrier, benchArriving(t, v4, 1<<17)),
		beside("IPv6, 131,072 flows", carrier, benchArriving(t, plain, 1<<17)),
		row("SRH, 131,072 flows", srh, benchArriving(t, v6, 1<<17)),
	}
}
