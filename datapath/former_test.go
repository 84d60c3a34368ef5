package datapath

import (
	"testing"

	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// formerSecret is another one than the tests' edges have.
var formerSecret = flow.Secret{1: 2, 15: 3}

// formerPools are the tables of before of some services: of more or fewer buckets than now, other
// backends, one with a past, one without anybody.
func formerPools(t testing.TB) map[uint32]*pool.Generation {
	all := edgePools(t)
	return map[uint32]*pool.Generation{
		0: testPool(t, 3001, 2, backendFar, backendNear2, backendNear),
		2: all[0],
		4: testPool(t, 1021, 6, backendNear, backendFar, backendUnresolved, backendBlackhole,
			backendNarrow, backendNear2),
		5: testPool(t, 1021, 2),
		6: all[2],
	}
}

// knowFormer makes both edges know tables of before.
func knowFormer(t testing.TB, secret flow.Secret) func(*twoEdges) {
	return func(edges *twoEdges) {
		pools := formerPools(t)
		for i, key := range edgeServices {
			if g := pools[uint32(i)]; g != nil {
				_, err := edges.program.ChangeChains([]ServiceChains{FormerChains(uint32(i), g)})
				must(t, err)
				must(t, edges.program.SetService(key, uint32(i), bucketsOf(i)))
			}
		}
		edges.model.Former = &model.FormerFlows{
			Secret: secret,
			Buckets: func(service uint32) uint32 {
				if g := pools[service]; g != nil {
					return uint32(g.Buckets())
				}
				return 0
			},
			Chains: func(service, bucket uint32) pool.Chain {
				return pools[service].Chain(int(bucket))
			},
		}
	}
}

// While flows of before are known, the program offers packets to whom its model does: with another
// secret and with the same one, with and without a flow cache, in each encapsulation.
func TestEdgeWithFormerFlowsAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	for i, encapsulation := range []Encapsulation{Carrier, SRH, SRHReduced} {
		config := edgeConfig(t)
		config.Encapsulation, config.Interfaces[0].Side = encapsulation, Mixed
		config.Former = FormerFlows{Known: true, Secret: formerSecret}
		config.FlowHash = flow.Function(i % 2)
		switch encapsulation {
		case SRH: // the same secret, by the other function
			config.Former.Secret = config.Secret
		case SRHReduced:
			config.FlowCache = testFlowCache
		}
		compareEdges(t, w, config, uint64(100+i), *frames/18+1,
			knowFormer(t, config.Former.Secret))
	}
}

// A former table that is taken away is asked no more, and one that changes is asked at once.
func TestFormerChainsChange(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	config := edgeConfig(t)
	config.Former = FormerFlows{Known: true, Secret: formerSecret}
	compareEdges(t, w, config, 7, *frames/36+1, knowFormer(t, formerSecret),
		func(edges *twoEdges) {
			for i, key := range edgeServices {
				edges.program.ForgetFormer(uint32(i))
				must(t, edges.program.SetService(key, uint32(i), bucketsOf(i)))
			}
			edges.model.Former = nil
		})
	compareEdges(t, w, config, 8, *frames/36+1, knowFormer(t, formerSecret),
		func(edges *twoEdges) {
			later := testPool(t, 3001, 2, backendNarrow, backendBlackhole)
			_, err := edges.program.ChangeChains([]ServiceChains{FormerChains(0, later)})
			must(t, err)
			chains := edges.model.Former.Chains
			edges.model.Former.Chains = func(service, bucket uint32) pool.Chain {
				if service == 0 {
					return later.Chain(int(bucket))
				}
				return chains(service, bucket)
			}
		})
}
