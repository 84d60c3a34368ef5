package datapath

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/datapath/packettest"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/quiclb"
	"sextant/packet/srv6"
)

// frames is how many generated frames the program and the model of each role are compared on.
var frames = flag.Int("frames", 1_000_000,
	"frames compared between the eBPF programs and the Go twin, per role")

// Backends by what lies on the way to them.
const (
	backendNear       = 0x0001 // neighbour on the ingress interface: transmit
	backendFar        = 0x0002 // neighbour on another: redirect
	backendUnresolved = 0x0003 // neighbour unknown: to the kernel
	backendBlackhole  = 0x0004
	backendNarrow     = 0x0005 // path MTU of 1300
	backendNear2      = 0x0006
	narrowMTU         = 1300
)

func routeBackends(t testing.TB) {
	addRoute(t, "fcbb:bb00:1::/48", "fd00:5e:1::2", 0)
	addRoute(t, "fcbb:bb00:2::/48", "fd00:5e:2::2", 0)
	addRoute(t, "fcbb:bb00:3::/48", "fd00:5e:1::99", 0)
	addRoute(t, "fcbb:bb00:4::/48", "", unix.RTN_BLACKHOLE)
	addRoute(t, "fcbb:bb00:6::/48", "fd00:5e:1::2", 0)
	must(t, netlink.RouteReplace(&netlink.Route{
		Dst: ipNet(netip.MustParsePrefix("fcbb:bb00:5::/48")),
		Gw:  netip.MustParseAddr("fd00:5e:2::2").AsSlice(), MTU: narrowMTU, MTULock: true,
	}))
}

// modelNextHop is what routing says in the test's world.
func (w *world) modelNextHop(dst netip.Addr, _ uint8) model.NextHop {
	near := model.NextHop{Interface: uint32(w.near), SrcMAC: [6]byte(nearMAC),
		DstMAC: [6]byte(routerMAC), MTU: 1500}
	far := model.NextHop{Interface: uint32(w.far), SrcMAC: [6]byte(farMAC),
		DstMAC: [6]byte(farRouterMAC), MTU: 1500}
	a := dst.As16()
	if [4]byte(a[:4]) != [4]byte{0xfc, 0xbb, 0xbb, 0} {
		return model.NextHop{Status: model.NextHopKernel}
	}
	switch uint16(a[4])<<8 | uint16(a[5]) {
	case backendNear, backendNear2:
		return near
	case backendFar:
		return far
	case backendNarrow:
		far.MTU = narrowMTU
		return far
	case backendBlackhole:
		return model.NextHop{Status: model.NextHopNoRoute}
	}
	return model.NextHop{Status: model.NextHopKernel}
}

// edgeServices covers both families and protocols, exact and any port, and a service without
// backends.
var edgeServices = []ServiceKey{
	{VIP: netip.MustParseAddr("2001:db8:80::80"), Port: 80, Protocol: 6},
	{VIP: netip.MustParseAddr("2001:db8:80::80"), Port: 53, Protocol: 17},
	{VIP: netip.MustParseAddr("198.51.100.80"), Port: 80, Protocol: 6},
	{VIP: netip.MustParseAddr("198.51.100.80"), Port: 0, Protocol: 17},
	{VIP: netip.MustParseAddr("2001:db8:80::81"), Port: 0, Protocol: 6},
	{VIP: netip.MustParseAddr("198.51.100.81"), Port: 443, Protocol: 6}, // without backends
	{VIP: netip.MustParseAddr("2001:db8:80::81"), Port: 443, Protocol: 17},
	{VIP: netip.MustParseAddr("198.51.100.81"), Port: 4433, Protocol: 17},
}

// quicServices are those of the edge's services that are QUIC, and the backends which their
// connection IDs can name: also some that no chain has.
var quicServices = map[uint32][]uint16{6: {backendNear, backendFar, backendNarrow, backendNear2},
	7: {backendNear2, backendBlackhole}}

// edgePaths are those of the services that have some: with chains that leave room for them always,
// only for SYNs, or never; of one to four SIDs, to some of the backends, two to some of these, or
// by ways of all kinds.
var edgePaths = map[uint32]map[uint16][][]uint16{
	0: {backendNear: {{backendFar}, {backendNear2, backendFar, backendNarrow}},
		backendFar:        {{backendNear2, backendNarrow}},
		backendUnresolved: {{backendBlackhole, backendNear, backendFar}, {backendFar}}},
	2: {backendNear: {{backendFar}}, backendFar: {{}, {backendNear2}},
		backendNear2: {{backendFar, backendNarrow}, {backendNear}}},
	3: {backendNear: {{backendNear2}}, backendFar: {{backendNarrow, backendNear}}},
	4: {backendNear: {{backendNear2, backendNarrow, backendFar, backendUnresolved}}},
	6: {backendNear: {{backendFar}}, backendNear2: {{backendNarrow, backendFar, backendNear}}},
}

// edgeCopies are of services with and without two paths.
var edgeCopies = map[uint32]Copies{
	0: {SYN: true}, 1: {All: true}, 2: {All: true}, 3: {SYN: true, Data: true}, 4: {Data: true},
}

// quicCodecs are those of the shared configurations.
func quicCodecs(t testing.TB) (codecs []*quiclb.Codec) {
	for _, c := range packettest.QUICConfigs() {
		codecs = append(codecs, packettest.QUICCodec(t, c))
	}
	return codecs
}

// connectionIDs are of all configurations and backends, and some that name nobody.
func connectionIDs(t testing.TB) (all [][]byte) {
	for _, c := range packettest.QUICConfigs() {
		for id := uint16(1); id <= 8; id++ {
			all = append(all, packettest.ServerConnectionID(t, c, id))
		}
	}
	return append(all, []byte{0xff, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{0xbf, 1, 2, 3})
}

// limitedService is which of the edge's services may get few new connections.
const (
	limitedService = 2
	limitedTokens  = 30
)

func testPool(t testing.TB, buckets, candidates int, ids ...uint16) *pool.Generation {
	backends := make([]pool.Backend, len(ids))
	for i, id := range ids {
		backends[i] = pool.Backend{ID: id, Weight: 1}
	}
	g, err := pool.New(pool.Spec{Buckets: buckets, Seed: 1, Method: pool.Exact,
		Candidates: candidates}, backends, 0)
	must(t, err)
	return g
}

// bucketsOf is how many buckets each of edgeServices has: no two as many, and not all are in one
// block.
func bucketsOf(service int) int {
	if service == 2 || service == 4 {
		return leastBlock/2 - tableSlack - service
	}
	return testBuckets + 500*service
}

// edgePools gives services chains of one to six backends, some with a past.
func edgePools(t testing.TB) []*pool.Generation {
	pools := []*pool.Generation{
		testPool(t, bucketsOf(0), 2, backendNear, backendFar, backendUnresolved, backendNarrow,
			backendNear2),
		testPool(t, bucketsOf(1), 1, backendNear, backendFar),
		testPool(t, bucketsOf(2), 6, backendNear, backendFar, backendUnresolved, backendBlackhole,
			backendNarrow, backendNear2),
		testPool(t, bucketsOf(3), 3, backendNear, backendFar, backendBlackhole),
		testPool(t, bucketsOf(4), 1, backendNear),
		testPool(t, bucketsOf(5), 2),
		testPool(t, bucketsOf(6), 2, backendNear, backendFar, backendUnresolved, backendBlackhole,
			backendNarrow, backendNear2),
		testPool(t, bucketsOf(7), 2, backendNear, backendFar, backendNear2),
	}
	withPast, err := pools[0].Next([]pool.Backend{
		{ID: backendNear, Weight: 1}, {ID: backendFar, Weight: 1},
		{ID: backendUnresolved, Weight: 1},
		{ID: backendNarrow, Weight: 1}, {ID: backendNear2, Weight: 1, State: pool.Draining},
	}, 0)
	must(t, err)
	pools[0] = withPast
	pools[3] = shadowPool(t, bucketsOf(3))
	return pools
}

// shadowPool has a previous table.
func shadowPool(t testing.TB, buckets int) *pool.Generation {
	before := []pool.Backend{{ID: backendNear, Weight: 1}, {ID: backendFar, Weight: 1},
		{ID: backendNarrow, Weight: 1}}
	g, err := pool.New(pool.Spec{Buckets: buckets, Seed: 1, Policy: pool.Shadow,
		Method: pool.Modulo}, before, 0)
	must(t, err)
	g, err = g.Next(append(before, pool.Backend{ID: backendBlackhole, Weight: 1}), 0)
	must(t, err)
	return g
}

// twoEdges is the program and its twin, on the same tables.
type twoEdges struct {
	program *Edge
	model   *model.Edge
}

func newTwoEdges(t testing.TB, w *world, config EdgeConfig) twoEdges {
	program, err := OpenEdge(w.dir, config)
	must(t, err)
	t.Cleanup(program.Close)
	pools := edgePools(t)
	twin := &model.Edge{
		Sides: map[uint32]model.Side{uint32(w.near): config.Interfaces[0].Side,
			uint32(w.far): model.Internal},
		Block:          config.Block,
		Locators:       config.Locators,
		Infrastructure: config.Infrastructure,
		Services:       map[model.ServiceKey]uint32{},
		VIPs:           map[netip.Addr]struct{}{},
		Buckets: func(service uint32) uint32 {
			return uint32(bucketsOf(int(service)))
		},
		Secret:   config.Secret,
		FlowHash: config.FlowHash,
		Chains: func(service, bucket uint32) pool.Chain {
			return pools[service].Chain(
				int(bucket))
		},
		Encapsulation: config.Encapsulation,
		Source:        config.Source,
		EdgeOuter:     config.EdgeOuter,
		Shadow:        config.Shadow,
		LastOffer:     config.LastOffer,
		SID:           func(id uint16) netip.Addr { return sidOf(t, config.Block, id) },
		NextHop:       w.modelNextHop,
	}
	if c := config.FlowCache; c.Entries > 0 {
		// nothing rests while the test runs
		memory := model.NewFlowCache(int(c.sets()), func() uint16 { return 0 })
		twin.Learning = &model.Learning{SID: c.SID, Owner: memory.Owner, Remember: memory.Remember}
	}
	twin.QUIC = map[uint32]*model.QUIC{}
	for service, backends := range quicServices {
		must(t, program.SetQUIC(service, packettest.QUICConfigs(), backends))
		twin.QUIC[service] = &model.QUIC{Codecs: quicCodecs(t), Backends: map[uint16]struct{}{}}
		for _, id := range backends {
			twin.QUIC[service].Backends[id] = struct{}{}
		}
	}
	if config.Paths {
		twin.Paths = func(service uint32, backend uint16) [][]uint16 {
			return edgePaths[service][backend]
		}
	}
	if config.Copies {
		twin.Copies = func(service uint32) model.Copies { return model.Copies(edgeCopies[service]) }
	}
	for i, key := range edgeServices {
		must(t, program.SetPaths(uint32(i), edgePaths[uint32(i)]))
		if config.Copies {
			program.SetCopies(uint32(i), edgeCopies[uint32(i)])
		}
		program.limited[uint32(i)] = i == limitedService
		must(t, program.SetService(key, uint32(i), bucketsOf(i)))
		must(t, program.SetChains(uint32(i), pools[i]))
		twin.Services[model.ServiceKey{Addr: key.VIP, Port: key.Port,
			Protocol: key.Protocol}] = uint32(i)
		twin.VIPs[key.VIP] = struct{}{}
	}
	// One service has as many tokens as it gets while the test runs: another comes after a day,
	// which is longer than anybody fuzzes at a stretch.
	tokens := limitedTokens
	must(t, program.maps["new_connections"].Put(uint32(limitedService),
		newConnections{Limit: limit{IntervalNs: 1e14, ToleranceNs: 1e14 * uint64(tokens-1)}}))
	twin.NewConnections = func(service uint32) bool {
		if service != limitedService {
			return true
		}
		tokens--
		return tokens >= 0
	}
	for id := uint16(1); id <= 6; id++ {
		must(t, program.SetSID(id, sidOf(t, config.Block, id)))
	}
	must(t, program.setPorts([]Attachment{{On: "near", Index: w.near, Mode: Native},
		{On: "far", Index: w.far, Mode: Native}}))
	return twoEdges{program: program, model: twin}
}

func sidOf(t testing.TB, block srv6.Block, id uint16) netip.Addr {
	sid, err := block.Carrier(srv6.CSID(id))
	must(t, err)
	return sid
}

func edgeGenerator(t testing.TB, seed uint64, config EdgeConfig) *packetgen.Generator {
	world := packetgen.World{
		ConnectionIDs:  connectionIDs(t),
		Block:          config.Block.Prefix(),
		Locators:       config.Locators,
		Edge:           config.Source,
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::77")},
		Offering:       []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:1::/48")},
		Decapsulating:  []netip.Prefix{netip.PrefixFrom(config.Shadow, 128)},
	}
	if config.FlowCache.Entries > 0 {
		world.Learning = config.FlowCache.SID
		for id := uint16(1); id <= 7; id++ {
			world.Owners = append(world.Owners, sidOf(t, config.Block, id))
		}
	}
	for _, key := range edgeServices {
		world.Services = append(world.Services, packetgen.Service{Addr: key.VIP, Port: key.Port,
			Protocol: key.Protocol})
	}
	return packetgen.New(seed, world)
}

// TestEdgeAgreesWithModel feeds the same generated frames to the program and to its Go model: same
// verdict, same bytes, same reasons, for each encapsulation on each side of the domain.
func TestEdgeAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	variants := 0
	for _, encapsulation := range []Encapsulation{Carrier, SRH, SRHReduced} {
		for _, side := range []Side{External, Internal, Mixed} {
			for _, locators := range [][]netip.Prefix{testLocators, nil} {
				config := edgeConfig(t)
				config.Encapsulation, config.Interfaces[0].Side, config.Locators = encapsulation,
					side, locators
				config.Paths = side != Mixed // else without, although services say they have some
				config.Copies = side == External
				config.FlowHash = flow.Function(variants / 2 % 2)
				if variants++; locators == nil {
					config.EdgeOuter = drawOuter(uint64(variants))
				}
				compareEdges(t, w, config, uint64(variants), *frames/18+1)
			}
		}
	}
}

func drawOuter(seed uint64) config.EdgeOuter {
	return drawByName[config.EdgeOuter]("edge.", seed)
}

// drawByName is any valid value of each setting that a program gets by its name, by its type; role
// is where the node file has them.
func drawByName[T any](role string, seed uint64) (drawn T) {
	random := rand.New(rand.NewPCG(seed, 0))
	fields := reflect.ValueOf(&drawn).Elem()
	for _, s := range config.Settings() {
		key, below := strings.CutPrefix(s.Path, role)
		field := fields.FieldByNameFunc(func(name string) bool {
			return strings.EqualFold(name, key)
		})
		switch {
		case !below || !field.IsValid():
		case s.Bounded:
			field.SetInt(s.Least + random.Int64N(s.Most-s.Least+1))
		default:
			field.SetBool(random.IntN(2) == 0)
		}
	}
	return drawn
}

func compareEdges(t *testing.T, w *world, config EdgeConfig, seed uint64, count int,
	changes ...func(*twoEdges)) {
	name := fmt.Sprintf("encapsulation %d, side %d, %d locators, seed %d", config.Encapsulation,
		config.Interfaces[0].Side, len(config.Locators), seed)
	edges := newTwoEdges(t, w, config)
	for _, change := range changes {
		change(&edges)
	}
	generator := edgeGenerator(t, seed, config)
	run := newRunner(edges.program.programs[config.Interfaces[0].Side], w.near)
	reasons, forwarded, owned, led, copied := tally{}, 0, 0, 0, 0
	for i := range count {
		frame := generator.Next()
		if len(frame) < 14 {
			continue // the kernel's test run refuses frames without an Ethernet header
		}
		want := edges.model.Process(uint32(w.near), frame)
		verdict, after := run.run(t, frame)
		reasons.add(want)
		if want.Verdict == model.Transmit || want.Verdict == model.Redirect {
			forwarded++
			led += min(len(want.Path), 1)
		}
		if want.Copy.IsValid() {
			copied++
		}
		if len(want.Chain) == 1 && quicServices[edges.model.Services[want.Service]] != nil {
			owned++
		}
		if !agree(t, frame, verdict, after, want) {
			t.Fatalf("%s: frame %d", name, i)
		}
	}
	if owned < count/200 {
		t.Errorf("%s: only %d of %d frames went to one backend of a QUIC service: the generator "+
			"misses", name, owned, count)
	}
	if few := copied < count/500; few && config.Copies && config.Encapsulation == Carrier {
		t.Errorf("%s: only %d of %d frames were copied: the generator misses", name, copied, count)
	}
	if led < count/50 && config.Paths {
		t.Errorf("%s: only %d of %d frames were led by a path: the generator misses", name, led,
			count)
	}
	if forwarded < count/5 {
		t.Errorf("%s: only %d of %d frames were forwarded: the generator misses", name, forwarded,
			count)
	}
	drops, err := edges.program.Drops()
	must(t, err)
	reasons.matches(t, drops, nil)
}
