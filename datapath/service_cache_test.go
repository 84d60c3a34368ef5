package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"sextant/datapath/packettest"
)

// servedBy is where the program sent a packet: the first id in the carrier, 0 if nowhere.
func servedBy(t *testing.T, edge subject, frame []byte) uint16 {
	t.Helper()
	const firstID = ethernetHeader + 24 + 4 // of the outer destination, behind the block
	if outcome, after := edge.process(t, frame); outcome == "redirected" {
		return binary.BigEndian.Uint16(after[firstID:])
	}
	return 0
}

// TestServicesAreFollowed changes services at random, more of them than a CPU caches, and compares
// where packets go with a map: what was cached never outlives a change.
func TestServicesAreFollowed(t *testing.T) {
	const ports, indexes, steps = 300, 16, 6000
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier, func(c *EdgeConfig) { c.Locators = nil })
	for index := range uint32(indexes) {
		all := make([]chain, tableBuckets)
		for i := range all {
			all[i] = chain{Length: 1, Candidates: 1}
			all[i].IDs[0] = bigEndian(uint16(1 + index))
		}
		must(t, putChains(e, index, all))
	}
	edge := w.edgeSubject(e, External)
	rng := rand.New(rand.NewPCG(14, 20))
	serves := map[ServiceKey]uint16{}
	key := func() ServiceKey {
		vips := []netip.Addr{packettest.VIP4, packettest.VIP6, packettest.VIP6.Next()}
		k := ServiceKey{VIP: vips[rng.IntN(len(vips))], Protocol: 6}
		if rng.IntN(50) > 0 { // else any port
			k.Port = uint16(1 + rng.IntN(ports))
		}
		return k
	}
	for _, k := range []ServiceKey{
		{VIP: packettest.VIP4, Port: 80, Protocol: 6},
		{VIP: packettest.VIP6, Port: 80, Protocol: 6}, {VIP: packettest.VIP6, Protocol: 17},
		{VIP: packettest.VIP4, Port: 53, Protocol: 17},
	} {
		must(t, e.DeleteService(k, false)) // of the fixture; its VIPs stay marked
	}
	must(t, e.SetService(ServiceKey{VIP: packettest.VIP6.Next(), Port: 1, Protocol: 17}, 0,
		tableBuckets))
	for range steps {
		k := key()
		switch rng.IntN(6) {
		case 0:
			index := uint32(rng.IntN(indexes))
			must(t, e.SetService(k, index, tableBuckets))
			serves[k] = uint16(1 + index)
		case 1:
			must(t, e.DeleteService(k, false))
			delete(serves, k)
		}
		to := k
		if to.Port == 0 {
			to.Port = uint16(1 + rng.IntN(ports))
		}
		want := serves[to]
		if want == 0 {
			want = serves[ServiceKey{VIP: k.VIP, Protocol: 6}]
		}
		p := packettest.Web6("A")
		if to.VIP.Is4() {
			p = packettest.Web4("A")
		}
		frame := packettest.FromClient().Frame(t, p.To(to.VIP, to.Port).Bytes(t))
		for range 1 + rng.IntN(3) { // the first finds the next hop, too
			if got := servedBy(t, edge, frame); got != want {
				t.Fatalf("a packet to %v went to %d, want %d", to, got, want)
			}
		}
	}
}
