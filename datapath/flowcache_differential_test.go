package datapath

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/lb/pool"
)

// testFlowCache is so small that flows compete, in a test that is over before any of them has
// rested.
var testFlowCache = FlowCache{SID: netip.MustParseAddr("fcbb:bb00:1ea2::"), Entries: 64,
	Rest: 1000 * time.Hour}

// TestEdgeWithFlowCacheAgreesWithModel: while hosts say who has which flow, rightly or not, the
// program and its model send the same frames, and count the same.
func TestEdgeWithFlowCacheAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	seed := uint64(500)
	for _, encapsulation := range []Encapsulation{Carrier, SRH, SRHReduced} {
		for _, side := range []Side{External, Internal, Mixed} {
			config := edgeConfig(t)
			config.Encapsulation, config.Interfaces[0].Side, config.FlowCache = encapsulation, side,
				testFlowCache
			seed++
			w.run(t, fmt.Sprintf("encapsulation %d, side %d", encapsulation, side),
				func(t *testing.T) {
					compareCachingEdges(t, w, config, seed, *frames/18+1)
				})
		}
	}
}

// loseBackends leaves two services with the backends of their shortest chains: others were known to
// have flows.
func (e twoEdges) loseBackends(t *testing.T) {
	t.Helper()
	left, before := map[uint32]*pool.Generation{}, e.model.Chains
	for _, service := range []uint32{0, 2} {
		left[service] = testPool(t, bucketsOf(int(service)), 2, backendNear,
			backendFar)
		must(t, e.program.SetChains(service, left[service]))
	}
	e.model.Chains = func(service, bucket uint32) pool.Chain {
		if g := left[service]; g != nil {
			return g.Chain(int(bucket))
		}
		return before(service, bucket)
	}
}

func compareCachingEdges(t *testing.T, w *world, config EdgeConfig, seed uint64, count int) {
	t.Helper()
	edges := newTwoEdges(t, w, config)
	generator := edgeGenerator(t, seed, config)
	run := newRunner(edges.program.programs[config.Interfaces[0].Side], w.near)
	events := map[string]uint64{}
	for i := range count {
		if i == count/2 {
			edges.loseBackends(t)
		}
		frame := generator.Next()
		if len(frame) < minFrame {
			continue // the kernel's test run refuses frames without an Ethernet header
		}
		want := edges.model.Process(uint32(w.near), frame)
		verdict, after := run.run(t, frame)
		events[want.Cache.String()]++
		if !agree(t, frame, verdict, after, want) {
			t.Fatalf("seed %d, frame %d, cache %q", seed, i, want.Cache)
		}
	}
	counted, err := edges.program.CacheEvents()
	must(t, err)
	for _, c := range counted {
		if c.Packets != events[c.Name] {
			t.Errorf("%s: the program has counted %d, the model %d", c.Name, c.Packets,
				events[c.Name])
		}
		// From outside comes no SYN-ACK of a host, and a chain of more than one backend forgets
		// none of the few that the generator names.
		if enough := uint64(count / 5000); config.Interfaces[0].Side != External &&
			c.Packets < enough {
			t.Errorf("%s: only %d of %d frames: the generator misses", c.Name, c.Packets, count)
		}
	}
	if config.Interfaces[0].Side == External && events[model.CacheStored.String()] > 0 {
		t.Error("an edge has learnt from outside of the SR domain")
	}
}
