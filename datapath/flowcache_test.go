package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/datapath/packettest"
)

// cachingEdge is the edge of the shared tables with a flow cache.
func cachingEdge(t testing.TB, w *world, encapsulation Encapsulation) *Edge {
	t.Helper()
	return tableEdge(t, w, encapsulation, func(c *EdgeConfig) {
		c.FlowCache = FlowCache{SID: packettest.LearnSID, Entries: 4, Rest: time.Hour}
	})
}

// ownerSID is what a host names that has a backend's id.
func ownerSID(t testing.TB, encapsulation Encapsulation, id uint16) netip.Addr {
	t.Helper()
	if encapsulation == Carrier {
		return sidOf(t, block(t), id)
	}
	return packettest.SID(id)
}

// wantEvents checks what the cache has counted since before, and returns what it has counted by
// now.
func wantEvents(t testing.TB, e *Edge, before map[string]uint64,
	want map[string]uint64) map[string]uint64 {
	t.Helper()
	counters, err := e.CacheEvents()
	must(t, err)
	now := map[string]uint64{}
	for _, c := range counters {
		now[c.Name] = c.Packets
		if c.Packets-before[c.Name] != want[c.Name] {
			t.Errorf("%s: %d more, want %d", c.Name, c.Packets-before[c.Name], want[c.Name])
		}
	}
	return now
}

// TestEdgeLearns compares whole frames: the SYN-ACK as it goes on to its client, and then the
// client's packet with the owner in front, for each place that the owner can have, each
// encapsulation and family, and no to two VLAN tags.
func TestEdgeLearns(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	ids := []uint16{0x1, 0xdfff, 0x203, 0x7, 0xabcd, 0x600}
	for encapsulation, name := range encapsulationNames {
		e := cachingEdge(t, w, encapsulation)
		outside, inside := w.edgeSubject(e, External), w.edgeSubject(e, Internal)
		serveAll(t, e, 2, ids...)
		for at, owner := range ids {
			for _, packet := range []packettest.Packet{packettest.Web4("A"), packettest.Web6("A")} {
				w.run(t, fmt.Sprintf("%s/%d/%v", name, at, packet.Dst), func(t *testing.T) {
					must(t, e.maps["flows"].Put(uint32(0), flowSet{}))
					events := wantEvents(t, e, nil, nowEvents(t, e))
					checkEncapsulation(t, outside, name, packet, ids, wayElsewhere)
					events = wantEvents(t, e, events, map[string]uint64{"miss": 6})
					checkLearning(t, inside, packet.Reply("SA"), ownerSID(t, encapsulation, owner))
					events = wantEvents(t, e, events, map[string]uint64{"stored": 9})
					first := append([]uint16{owner}, slices.Delete(slices.Clone(ids), at, at+1)...)
					checkEncapsulation(t, outside, name, packet, first, wayElsewhere)
					wantEvents(t, e, events, map[string]uint64{"hit": 6})
				})
			}
		}
	}
}

func nowEvents(t testing.TB, e *Edge) map[string]uint64 {
	t.Helper()
	counters, err := e.CacheEvents()
	must(t, err)
	now := map[string]uint64{}
	for _, c := range counters {
		now[c.Name] = c.Packets
	}
	return now
}

// checkLearning gives the edge a SYN-ACK from a host: nine times, with marks of congestion and
// tags.
func checkLearning(t *testing.T, edge subject, packet packettest.Packet, owner netip.Addr) {
	t.Helper()
	for _, ecn := range []struct{ outer, inner, want uint8 }{{0xb8, 0xb8, 0xb8}, {0xb9, 0xba, 0xb9},
		{0xbb, 0xba, 0xbb}} {
		packet.TrafficClass = ecn.want
		want := packet.Bytes(t)
		packet.TrafficClass = ecn.inner
		ip := packet.Bytes(t)
		outer := packettest.Learn(ip, owner)
		outer.TrafficClass = ecn.outer
		for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
			in := packettest.FromClient(vlans...)
			in.Padding = []byte("padding")
			outcome, after := edge.process(t, in.Frame(t, outer.Around(t, ip)))
			if outcome != "learned" {
				t.Fatalf("%s, want learned", outcome)
			}
			packettest.WantFrame(t, after, in.Frame(t, want))
		}
	}
}

// TestEdgeLearnsFromHostsAlone: what is no SYN-ACK of a host is dropped for a reason; one that
// names nobody of the chain goes to its client, and nothing is learnt.
func TestEdgeLearnsFromHostsAlone(t *testing.T) {
	w := newWorld(t)
	for encapsulation, name := range encapsulationNames {
		e := cachingEdge(t, w, encapsulation)
		serveAll(t, e, 2, 1, 2, 3)
		edge := w.edgeSubject(e, Internal)
		for _, packet := range []packettest.Packet{packettest.Web4("").Reply("SA"),
			packettest.Web6("").Reply("SA")} {
			for _, test := range packettest.LearnCases(packet.Bytes(t),
				ownerSID(t, encapsulation, 2)) {
				w.run(t, fmt.Sprintf("%s/%v/%s", name, packet.Src, test.Name), func(t *testing.T) {
					events := nowEvents(t, e)
					in := packettest.FromClient()
					outcome, after := edge.process(t, in.Frame(t, test.Outer.Around(t, test.IP)))
					if outcome != test.Want {
						t.Fatalf("%s, want %s", outcome, test.Want)
					}
					if outcome == "learned" {
						packettest.WantFrame(t, after, in.Frame(t, test.IP))
					}
					want := map[string]uint64{}
					if test.Cache != "" {
						want[test.Cache] = 1
					}
					wantEvents(t, e, events, want)
				})
			}
		}
	}
}

// TestEdgeAsksForAnswers: a SYN comes from End.LEARN, and goes to the candidates whatever is
// cached; without a cache it comes from the edge.
func TestEdgeAsksForAnswers(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := cachingEdge(t, w, Carrier)
	serveAll(t, e, 2, 1, 2, 3)
	ip := packettest.Web6("").Reply("SA").Bytes(t)
	w.edgeSubject(e, Internal).process(t, packettest.FromClient().Frame(t,
		packettest.Learn(ip, ownerSID(t, Carrier, 2)).Around(t, ip)))
	syn := packettest.Web6("S")
	in := packettest.FromClient()
	outcome, after := w.edgeSubject(e, External).process(t, in.Frame(t, syn.Bytes(t)))
	outer := packettest.To(netip.MustParseAddr("fcbb:bb00:1:2::"))
	outer.Src, outer.HopLimit, outer.FlowLabel = packettest.LearnSID, 63, label(syn.Flow())
	if outcome != "redirected" {
		t.Fatalf("%s, want redirected", outcome)
	}
	packettest.WantFrame(t, after,
		wayElsewhere.out(in).Frame(t, outer.Around(t, packettest.Forwarded(syn.Bytes(t)))))
	wantEvents(t, e, map[string]uint64{"stored": 1}, nil)
}

// TestEdgeDisbelieves: the owner that the cache names is none of the chain's any more, and is not
// used.
func TestEdgeDisbelieves(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := cachingEdge(t, w, Carrier)
	serveAll(t, e, 2, 1, 2, 3)
	packet := packettest.Web4("A")
	checkLearning(t, w.edgeSubject(e, Internal), packet.Reply("SA"), ownerSID(t, Carrier, 2))
	serveAll(t, e, 2, 1, 3)
	events := nowEvents(t, e)
	checkEncapsulation(t, w.edgeSubject(e, External), packettest.Carrier, packet, []uint16{1, 3},
		wayElsewhere)
	events = wantEvents(t, e, events, map[string]uint64{"stale": 6})
	// A chain of one needs no cache.
	serveAll(t, e, 1, 3)
	checkEncapsulation(t, w.edgeSubject(e, External), packettest.Carrier, packet, []uint16{3},
		wayElsewhere)
	wantEvents(t, e, events, nil)
}

// TestFlowCacheReplaces: of four flows that share a set, a fifth replaces the one that rested
// longest; a packet ends a flow's rest.
func TestFlowCacheReplaces(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := cachingEdge(t, w, Carrier)
	serveAll(t, e, 2, 1, 2, 3)
	now := e.clock(t)
	var packets []packettest.Packet
	var set flowSet
	for i := range uint16(4) {
		p := packettest.Web4("A")
		p.SrcPort += i
		packets = append(packets, p)
		rest := []uint16{3, 9, 1, 7}[i]
		set.Ways[i] = testHash(p.Flow())>>32<<32 | 2<<16 | uint64(now-rest)
	}
	must(t, e.maps["flows"].Put(uint32(0), set))
	send := func(p packettest.Packet) {
		w.edgeSubject(e, External).process(t, packettest.FromClient().Frame(t, p.Bytes(t)))
	}
	learn := func(p packettest.Packet) {
		ip := p.Reply("SA").Bytes(t)
		w.edgeSubject(e, Internal).process(t, packettest.FromClient().Frame(t,
			packettest.Learn(ip, ownerSID(t, Carrier, 3)).Around(t, ip)))
	}
	owners := func() (ids []uint16) {
		var set flowSet
		must(t, e.maps["flows"].Lookup(uint32(0), &set))
		for _, word := range set.Ways {
			ids = append(ids, ownerOf(word))
		}
		return ids
	}
	send(packets[1]) // rests no longer
	fresh := packettest.Web4("A")
	fresh.SrcPort += 100
	learn(fresh)
	if got := owners(); !slices.Equal(got, []uint16{2, 2, 2, 3}) {
		t.Errorf("after a fifth flow the owners are %v, want the fourth replaced", got)
	}
	learn(packets[0]) // another answer: its own place
	if got := owners(); !slices.Equal(got, []uint16{3, 2, 2, 3}) {
		t.Errorf("after another answer to the first flow the owners are %v", got)
	}
	must(t, e.maps["flows"].Put(uint32(0),
		flowSet{Ways: [flowWays]uint64{set.Ways[0], set.Ways[1], 0, set.Ways[3]}}))
	learn(fresh)
	if got := owners(); !slices.Equal(got, []uint16{2, 2, 3, 2}) {
		t.Errorf("with an empty place the owners are %v, want the third", got)
	}
}

// clock reads the time of the cache from an entry.
func (e *Edge) clock(t testing.TB) uint16 {
	t.Helper()
	run := newRunner(e.programs[Internal], 1)
	ip := packettest.Web4("").Reply("SA").Bytes(t)
	run.run(t, packettest.FromClient().Frame(t,
		packettest.Learn(ip, ownerSID(t, Carrier, 2)).Around(t, ip)))
	var set flowSet
	must(t, e.maps["flows"].Lookup(uint32(0), &set))
	for _, word := range set.Ways {
		if ownerOf(word) != 0 {
			return uint16(word)
		}
	}
	t.Fatal("the cache has learnt nothing")
	return 0
}
