package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// The services of the host under test, by acceptance policy, and what is busy there.
var hostServices = []struct {
	key    ServiceKey
	policy acceptance.Policy
	busy   uint32
}{
	{ServiceKey{VIP: hostVIPv6, Port: hostPort, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Dynamic, Threshold: 1, Window: 50, Workers: 32,
			LowPermille: 400, HighPermille: 600}, 3},
	{ServiceKey{VIP: hostVIPv4, Port: hostPort, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Static, Threshold: 4}, 4},
	{ServiceKey{VIP: hostVIPv6, Port: 0, Protocol: 6}, acceptance.Policy{Kind: acceptance.Static,
		Threshold: 4}, 3},
	{ServiceKey{VIP: hostVIPv4, Port: 8080, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Always}, 9},
	{ServiceKey{VIP: hostVIPv6, Port: 8081, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Average, Cores: 2}, 7},
	{ServiceKey{VIP: hostVIPv4, Port: 8082, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Average, Reported: true}, 2},
	{ServiceKey{VIP: hostVIPv6, Port: quicPort, Protocol: 17},
		acceptance.Policy{Kind: acceptance.Static, Threshold: 4}, 3},
	{ServiceKey{VIP: hostVIPv4, Port: 8083, Protocol: 6}, acceptance.Policy{Kind: acceptance.Always,
		Reported: true}, acceptance.Full},
	{ServiceKey{VIP: hostVIPv6, Port: 8084, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Average, Reported: true}, acceptance.Full},
	{ServiceKey{VIP: hostVIPv4, Port: quicPort, Protocol: 17},
		acceptance.Policy{Kind: acceptance.Static, Threshold: 4}, 4},
	{ServiceKey{VIP: hostVIPv6, Port: 8086, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Delay, Cores: 2}, 3},
	{ServiceKey{VIP: hostVIPv4, Port: 8087, Protocol: 6},
		acceptance.Policy{Kind: acceptance.Delay, Cores: 48}, 50},
	// without a server
	{ServiceKey{VIP: hostVIPv6, Port: quicPort + 1, Protocol: 17},
		acceptance.Policy{Kind: acceptance.Always}, 0},
}

// quicPort is where a socket of UDP is bound.
const quicPort = 8443

// twoHosts is the program and its twin, on the same tables and the same kernel sockets.
type twoHosts struct {
	program *Host
	model   *model.Host
	scout   model.Host // knows the SIDs alone, and so the flow of a packet
	ticks   uint64     // of the latest offer whose time is known
}

// tell writes into the outer flow label of every other frame what the candidate before has told, as
// it would.
func (h *twoHosts) tell(number int, near uint32, frame []byte) {
	seen := h.scout.Process(near, 0, frame)
	if number%2 == 0 || !seen.Flow.Src.IsValid() {
		return
	}
	at := 12
	for frame[at] == 0x81 || frame[at] == 0x88 {
		at += 4
	}
	hash := h.scout.FlowHash.Hash(h.scout.Secret, seen.Flow)
	label := flow.Label(hash) ^ uint32(number/2%(int(acceptance.NoteMax)+1))<<8
	if number%16 == 1 { // as that of a health check
		label &= 0xff
	}
	word := binary.BigEndian.Uint32(frame[at+2:])
	binary.BigEndian.PutUint32(frame[at+2:], word&^0xfffff|label)
}

// never is a tick up to which a pace is known that the clock does not reach: time changes nothing.
const never = 1 << 60

// modelKey is a service of the host under test as the model knows it.
func modelKey(k ServiceKey) model.ServiceKey {
	return model.ServiceKey{Addr: k.VIP, Port: k.Port, Protocol: k.Protocol}
}

// clock is when a service of policy delay was last asked, by what the program has noted: what it
// knows of its pace depends on the time.
func (h *twoHosts) clock(t testing.TB) time.Duration {
	t.Helper()
	latest := h.ticks
	for i, s := range hostServices {
		if s.policy.Kind == acceptance.Delay {
			state, err := h.program.AcceptState(uint32(i + 1))
			must(t, err)
			latest = max(latest, state.Pace.At)
		}
	}
	h.ticks = latest
	return time.Duration(latest << 10)
}

// learn gives program and model the same pace for each service of policy delay, as no connection
// begins or ends there: of a server that worked up to a while ago, or up to a time that never
// comes, so that the clock does not matter.
func (h *twoHosts) learn(t testing.TB, random *rand.Rand, timed bool) {
	t.Helper()
	for i, s := range hostServices {
		if s.policy.Kind != acceptance.Delay {
			continue
		}
		twin := h.model.Services[modelKey(s.key)]
		at := uint64(never)
		if timed {
			at = h.ticks - min(h.ticks, random.Uint64N(1<<random.IntN(34)))
		}
		twin.State.Pace = acceptance.Pace{At: at,
			Work: random.Uint64N(1 << random.IntN(34)), Done: random.Uint64N(1 << random.IntN(36))}
		if random.IntN(4) == 0 {
			twin.State.Usual, twin.State.Levels = 0, [acceptance.MaxLevels]acceptance.Level{}
		}
		must(t, h.program.setAcceptState(uint32(i+1), twin.State))
	}
}

func newTwoHosts(t testing.TB, w *world, sockets map[flow.Tuple]model.Socket,
	changes ...func(*HostConfig)) twoHosts {
	config := hostConfig(t)
	config.Refusal = time.Hour // nothing is forgotten, however slow the machine is
	config.Source = netip.MustParseAddr("fd00:5e::51")
	// the one that sends SYNs
	config.Learners = []netip.Prefix{netip.MustParsePrefix("fd00:5e::e0/124")}
	backup := netip.MustParseAddr("fcbb:bb00:2::")
	config.SIDs = append(config.SIDs,
		LocalSID{Prefix: netip.MustParsePrefix("fcbb:bb00:1:d400::/64"), Behavior: srv6.EndDT4},
		LocalSID{Prefix: netip.MustParsePrefix("fcbb:bb00:1:d600::/64"), Behavior: srv6.EndDT6},
		LocalSID{Prefix: netip.MustParsePrefix("2001:db8:51d::1/128"), Behavior: srv6.EndOFFER},
		LocalSID{Prefix: netip.MustParsePrefix("fcbb:bb00:c4::/48"), Behavior: srv6.EndDT4COND,
			Backup: backup},
		LocalSID{Prefix: netip.MustParsePrefix("fcbb:bb00:c6::/48"), Behavior: srv6.EndDT6COND,
			Backup: backup},
		LocalSID{Prefix: netip.MustParsePrefix("fcbb:bb00:c46::/48"), Behavior: srv6.EndDT46COND,
			Backup: backup})
	for _, change := range changes {
		change(&config)
	}
	program, err := OpenHost(w.dir, config)
	must(t, err)
	t.Cleanup(program.Close)
	must(t, program.setPorts([]Attachment{{On: "near", Index: w.near, Mode: Native},
		{On: "far", Index: w.far, Mode: Native}}))
	twin := &model.Host{
		Interfaces:     map[uint32]struct{}{uint32(w.near): {}, uint32(w.far): {}},
		Block:          config.Block,
		Locators:       config.Locators,
		Infrastructure: config.Infrastructure,
		Secret:         config.Secret,
		FlowHash:       config.FlowHash,
		Source:         config.Source,
		Refusal:        config.Refusal,
		Learners:       config.Learners,
		Routed:         func(edge netip.Addr) bool { return edge == learningEdge },
		Services:       map[model.ServiceKey]*model.HostService{},
		Sockets:        func(tuple flow.Tuple) model.Socket { return sockets[tuple] },
		NextHop:        w.modelNextHop,
	}
	for _, s := range config.SIDs {
		twin.SIDs = append(twin.SIDs, model.LocalSID(s))
	}
	busy := map[model.ServiceKey]uint32{}
	for i, s := range hostServices {
		index := uint32(i + 1)
		program.SetQUIC(s.key, s.key.Protocol == 17)
		must(t, program.SetService(s.key, index, s.policy))
		if s.policy.Reported {
			must(t, program.Report(index, int(s.busy)))
		} else {
			must(t, program.maps["busy"].Put(index, int32(s.busy)))
		}
		key := modelKey(s.key)
		mss := config.TunnelMTU - tcpHeadersIPv6
		if s.key.VIP.Is4() {
			mss = config.TunnelMTU - tcpHeadersIPv4
		}
		state := s.policy.Initial()
		if s.policy.Kind == acceptance.Delay {
			state.Pace.At = never
			must(t, program.setAcceptState(index, state))
		}
		twin.Services[key] = &model.HostService{Policy: s.policy, State: state, MSS: uint16(mss),
			QUIC: key.Protocol == 17}
		busy[key] = s.busy
	}
	server, err := net.ListenUDP("udp", &net.UDPAddr{Port: quicPort})
	must(t, err)
	t.Cleanup(func() { server.Close() })
	twin.HasServer = func(tuple flow.Tuple) bool { return tuple.DstPort == quicPort }
	twin.Busy = func(key model.ServiceKey) uint32 { return busy[key] }
	scout := *twin
	scout.Services = nil
	return twoHosts{program: program, model: twin, scout: scout}
}

// hostOthers are the SIDs of chains; the last two are the host itself.
var hostOthers = []string{"fcbb:bb00:2::", "fcbb:bb00:3::", "fcbb:bb00:4::", "fcbb:bb00:5::",
	"fcbb:bb00:6::", "fcbb:bb00:1::", "2001:db8:51d::1"}

func hostGenerator(t testing.TB, seed uint64, connections []packetgen.Connection,
	config HostConfig, others ...string) *packetgen.Generator {
	if others == nil {
		others = hostOthers
	}
	world := packetgen.World{
		Block:          netip.MustParsePrefix("fcbb:bb00::/32"),
		Locators:       config.Locators,
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::e1")},
		Connections:    connections,
		ConnectionIDs:  connectionIDs(t),
	}
	if config.HMAC != HMACNone {
		world.HMACKeys = hmacKeysOnWire(t)
	}
	for _, s := range config.SIDs {
		if s.Behavior == srv6.EndOFFER {
			world.Offering = append(world.Offering, s.Prefix)
		} else {
			world.Decapsulating = append(world.Decapsulating, s.Prefix)
		}
	}
	for _, sid := range others {
		world.Others = append(world.Others, netip.MustParseAddr(sid))
	}
	for _, s := range hostServices {
		world.Services = append(world.Services, packetgen.Service{Addr: s.key.VIP, Port: s.key.Port,
			Protocol: s.key.Protocol})
	}
	return packetgen.New(seed, world)
}

// TestHostAgreesWithModel feeds the same generated frames to the program and to its Go twin, while
// the kernel holds real sockets in each state.
func TestHostAgreesWithModel(t *testing.T) { compareHosts(t, flow.BySipHash, *frames/2, false) }

// TestHostAgreesWithModelByNH is the same by the other flow hash.
func TestHostAgreesWithModelByNH(t *testing.T) { compareHosts(t, flow.ByNH, *frames/2, false) }

// TestHostAgreesWithModelInTime is the same while the clock runs. Chains don't come back to the
// host itself there: it would decide twice, at two times of which the second alone is known.
func TestHostAgreesWithModelInTime(t *testing.T) { compareHosts(t, flow.ByNH, *frames/4, true) }

func compareHosts(t *testing.T, function flow.Function, count int, timed bool) {
	t.Helper()
	w := newWorld(t)
	routeBackends(t)
	sockets, connections, keep := hostSockets(t, w)
	hosts := newTwoHosts(t, w, sockets, func(c *HostConfig) { c.FlowHash = function })
	var others []string
	if timed {
		others = hostOthers[:len(hostOthers)-2]
		var now unix.Timespec
		must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		hosts.ticks = uint64(now.Nano()) >> 10
	}
	generator := hostGenerator(t, uint64(1+function), connections, hosts.program.config, others...)
	run := newRunner(hosts.program.programs["host"], w.near)
	reasons, offers, ofQUIC := tally{}, map[model.Offer]int{}, map[model.Offer]int{}
	random := rand.New(rand.NewPCG(1, uint64(function)))
	for i := range count {
		keep(t)
		frame := generator.NextHost()
		if len(frame) < 14 {
			continue // the kernel's test run refuses frames without an Ethernet header
		}
		hosts.tell(i, uint32(w.near), frame)
		if i%256 == 0 {
			hosts.learn(t, random, timed)
		}
		verdict, after := run.run(t, frame)
		now := time.Duration(0)
		if timed {
			now = hosts.clock(t)
		}
		want := hosts.model.Process(uint32(w.near), now, frame)
		reasons.add(want)
		offers[want.Offer]++
		if want.Service.Protocol == 17 {
			ofQUIC[want.Offer]++
		}
		if !agree(t, frame, verdict, after, want) {
			t.Fatalf("frame %d, offer %s, flow %+v", i, want.Offer, want.Flow)
		}
	}
	for _, offer := range []model.Offer{
		model.OfferLast, model.OfferHere, model.OfferAccepted, model.OfferRefused,
		model.OfferNoService, model.OfferNotHere, model.OfferNotTCP, model.OfferStray,
	} {
		if offers[offer] < count/2000 {
			t.Errorf("only %d of %d frames had the outcome %s: the generator misses", offers[offer],
				count, offer)
		}
	}
	// Refused before is the same SYN once more, which is seldom.
	if n := offers[model.OfferRefusedBefore]; n < count/10000 {
		t.Errorf("only %d of %d frames had the outcome %s: the generator misses", n, count,
			model.OfferRefusedBefore)
	}
	for _, offer := range []model.Offer{
		model.OfferLast, model.OfferHere, model.OfferAccepted, model.OfferRefused,
		model.OfferNoService, model.OfferNotHere,
	} {
		if ofQUIC[offer] < count/10000 {
			t.Errorf("only %d of %d frames were QUIC with the outcome %s: the generator misses",
				ofQUIC[offer], count, offer)
		}
	}
	for i, own := range hostServices {
		if own.policy.Kind < acceptance.Dynamic {
			continue // learns nothing
		}
		learnt, err := hosts.program.AcceptState(uint32(i + 1))
		must(t, err)
		if want := hosts.model.Services[modelKey(own.key)].State; learnt != want {
			t.Errorf("service %d, policy %s, has learnt %+v, the model %+v", i+1, own.policy.Kind,
				learnt, want)
		}
	}
	drops, err := hosts.program.Drops()
	must(t, err)
	reasons.matches(t, drops, nil)
}
