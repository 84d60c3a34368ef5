package model_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/pool"
)

// Whatever the flow cache says, a packet visits the backends of its bucket's chain, each once, and
// a SYN the candidates in their order.
func TestAnyCacheLeavesTheChain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Uint16Range(1, 12), 1, pool.MaxChain,
			rapid.ID[uint16]).Draw(rt, "ids")
		chain := pool.Chain{Length: uint8(len(ids)),
			Candidates: uint8(rapid.IntRange(1, len(ids)).Draw(rt, "candidates"))}
		copy(chain.IDs[:], ids)
		named := rapid.Uint16Range(0, 12).Draw(rt, "named")
		edge := newEdge(t, chain, internal)
		edge.Learning = &model.Learning{SID: packettest.LearnSID,
			Owner: func(uint64) uint16 { return named }}
		visited := func(flags string) []uint16 {
			return edge.Process(external, packettest.FromClient().Frame(t,
				packettest.Web4(flags).Bytes(t))).Chain
		}
		left := map[uint16]bool{}
		for _, id := range ids {
			left[id] = true
		}
		got := visited("A")
		for i, id := range got {
			if !left[id] {
				rt.Fatalf("chain %v, cached %d: visits %v", ids, named, got)
			}
			if i > 0 && id == named {
				rt.Fatalf("chain %v, cached %d: visits %v, not the owner first", ids, named, got)
			}
			delete(left, id)
		}
		if len(left) > 0 {
			rt.Fatalf("chain %v, cached %d: visits only %v", ids, named, got)
		}
		if got := visited("S"); len(got) != int(chain.Candidates) || got[0] != ids[0] {
			rt.Fatalf("chain %v of %d candidates: a SYN visits %v", ids, chain.Candidates, got)
		}
	})
}

// Four flows share a set; a fifth takes the place of the one that rested longest.
func TestFlowCache(t *testing.T) {
	now := uint16(0xfffe) // the time runs over
	cache := model.NewFlowCache(1, func() uint16 { return now })
	hash := func(i uint64) uint64 { return i << 32 }
	for i := uint64(1); i <= 4; i++ {
		cache.Remember(hash(i), uint16(10+i))
		now++
	}
	cache.Owner(hash(1))
	cache.Remember(hash(5), 15)
	for i, want := range map[uint64]uint16{1: 11, 2: 0, 3: 13, 4: 14, 5: 15, 6: 0} {
		if got := cache.Owner(hash(i)); got != want {
			t.Errorf("owner of flow %d is %d, want %d", i, got, want)
		}
	}
	cache.Remember(hash(3), 33)
	if got := cache.Owner(hash(3)); got != 33 {
		t.Errorf("another answer left owner %d", got)
	}
}

// The first SYN-ACK goes by way of the edge that asked, the next straight; a cookie goes straight,
// and the edge is asked for again then.
func TestAnswersByEdge(t *testing.T) {
	host := newHost(internal)
	host.Source = packettest.HostAddr
	host.Learners = []netip.Prefix{netip.PrefixFrom(packettest.LearnSID, 64)}
	host.Routed = func(netip.Addr) bool { return true }
	ip := packettest.Web4("S").Bytes(t)
	outer := packettest.To(packettest.OfferSID).From(packettest.LearnSID.String())
	if got := host.Process(internal,
		0, packettest.FromClient().Frame(t, outer.Around(t, ip))); !got.Taken {
		t.Fatalf("the SYN was not taken: %+v", got)
	}
	answer := packettest.FromClient().Frame(t, packettest.Web4("").Reply("SA").Bytes(t))
	for i, want := range []struct {
		cookie bool
		grows  int
	}{{true, 0}, {false, 80}, {false, 0}} {
		if got := len(host.Egress(answer, want.cookie)) - len(answer); got != want.grows {
			t.Errorf("SYN-ACK %d grew by %d bytes, want %d", i+1, got, want.grows)
		}
	}
}
