package datapath

import (
	"bytes"
	"net/netip"
	"testing"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

const benchCached = 1 << 17 // flows that the cache knows

// cacheRows are packets of connections that the flow cache knows, as those of the first or the
// second candidate, or does not know. Beside them is the edge without a cache, in edgeRows.
func cacheRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	of := func(name string, place int) benchRow {
		e := newBenchEdge(t, w, Carrier, func(c *EdgeConfig) {
			c.FlowCache = FlowCache{SID: c.Source.Next(), Entries: 1 << 20}
		})
		frame := benchArriving(t, benchACK(benchClientV6, hostVIPv6), benchCached)
		if place >= 0 {
			cacheAll(t, w, e, frame, place)
		}
		return benchRow{
			name: name, program: e.programs[External], frame: frame, verdict: xdpTransmit,
			counted: func() uint64 { return nowEvents(t, e)["hit"] + nowEvents(t, e)["miss"] },
		}
	}
	config := hostConfig(t)
	config.SIDs = []LocalSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"),
		Behavior: srv6.EndOFFER}}
	config.Source = netip.MustParseAddr("fd00:5e::51")
	config.Learners = []netip.Prefix{netip.MustParsePrefix("fd00:5e::e0/124")}
	h := newBenchHost(t, w, config, acceptance.Policy{Kind: acceptance.Static, Threshold: 4})
	return []benchRow{
		of("edge, flow cache, miss, 131,072 flows", -1),
		of("edge, flow cache, hit: the first candidate, 131,072 flows", 0),
		of("edge, flow cache, hit: the second candidate, 131,072 flows", 1),
		{
			name: "host, takes a SYN of an edge with a flow cache", program: h.programs["host"],
			frame: benchOffered(t, benchSYN(benchStrangerV6, hostVIPv6), 1<<17), verdict: xdpPass,
			counted: benchOutcome(t, h.collection, "taken"),
		},
		learnRow(t, w),
	}
}

// learnRow is a SYN-ACK on its way through the edge, always of the same flow: its owner has to be
// one of its bucket's.
func learnRow(t testing.TB, w *world) benchRow {
	t.Helper()
	e := newBenchEdge(t, w, Carrier, func(c *EdgeConfig) {
		c.FlowCache = FlowCache{SID: packettest.LearnSID, Entries: 1 << 20}
		c.Interfaces = append(c.Interfaces, EdgeInterface{Name: "far", Side: Internal})
	})
	packet := benchACK(benchClient(0), hostVIPv6)
	_, after := newRunner(e.programs[External], w.near).run(t,
		benchLink.Frame(t, benchPacket(t, packet)))
	owner := fromBigEndian([2]byte(after[ethernetHeader+ipv6Destination+4:]))
	answer := benchPacket(t, packet.Reply("SA"))
	outer := packettest.Learn(answer, ownerSID(t, Carrier, owner)).Around(t, answer)
	client := ethernetHeader + len(outer) - len(answer) + ipv6Destination + 12
	return benchRow{
		name: "edge, End.LEARN: a SYN-ACK", program: e.programs[Internal], verdict: xdpPass,
		frame: benchFrame{octets: benchLink.Frame(t, outer), source: client,
			ports: client + 4 + 2, flows: 1},
		counted: func() uint64 { return nowEvents(t, e)["stored"] },
	}
}

// cacheAll notes for each of the driver's flows the backend at a place of its chain.
func cacheAll(t testing.TB, w *world, e *Edge, frame benchFrame, place int) {
	t.Helper()
	run := newRunner(e.programs[External], w.near)
	octets, lost := bytes.Clone(frame.octets), benchCached
	for i := range benchCached {
		client, port := benchClient(i/portsPerClient), uint16(benchFirstPort+i%portsPerClient)
		address := client.As16()
		copy(octets[frame.source:], address[12:])
		octets[frame.ports], octets[frame.ports+1] = byte(port>>8), byte(port)
		_, after := run.run(t, octets)
		at := ethernetHeader + ipv6Destination + 4 + 2*place
		owner := fromBigEndian([2]byte(after[at:]))
		hash := testHash(flow.Tuple{Src: client, Dst: hostVIPv6, SrcPort: port,
			DstPort: hostPort, Protocol: 6})
		index := uint32(uint64(uint32(hash)) * uint64(e.config.FlowCache.sets()) >> 32)
		var set flowSet
		must(t, e.maps["flows"].Lookup(index, &set))
		for way := range set.Ways {
			if set.Ways[way] == 0 {
				set.Ways[way] = hash>>32<<32 | uint64(owner)<<16
				lost--
				break
			}
		}
		must(t, e.maps["flows"].Put(index, set))
	}
	if lost > benchCached/1000 {
		t.Fatalf("%d of %d flows had no place in the cache", lost, benchCached)
	}
}
