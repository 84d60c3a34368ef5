package packetgen_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/lb/acceptance"
	"sextant/lb/pool"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

const frames = 200_000

var (
	vip4 = netip.MustParseAddr("192.0.2.80")
	vip6 = netip.MustParseAddr("2001:db8:80::80")
	here = flow.Tuple{
		Src: netip.MustParseAddr("198.51.100.7"), Dst: vip4, SrcPort: 40000, DstPort: 80,
		Protocol: 6,
	}
	infrastructure = netip.MustParsePrefix("fd00:5e::/48")
)

func world() packetgen.World {
	return packetgen.World{
		Services: []packetgen.Service{
			{Addr: vip4, Port: 80, Protocol: 6}, {Addr: vip6, Port: 443, Protocol: 6},
			{Addr: vip6, Protocol: 17},
		},
		Block: netip.MustParsePrefix("fcbb:bb00::/32"),
		Offering: []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:1::/48"),
			netip.MustParsePrefix("fd00:c0de::1/128")},
		Decapsulating: []netip.Prefix{netip.MustParsePrefix("fcbb:bb00:1:d46::/64")},
		Others: []netip.Addr{netip.MustParseAddr("fcbb:bb00:2::"),
			netip.MustParseAddr("fcbb:bb00:3::")},
		Edge:           netip.MustParseAddr("fd00:5e::e1"),
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::e1")},
		Connections:    []packetgen.Connection{{Flow: here, SndISN: 1000, RcvISN: 2000}},
	}
}

// edge returns one that has what the world says.
func edge(t *testing.T) *model.Edge {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return &model.Edge{
		Sides:          map[uint32]model.Side{1: model.External, 2: model.Internal, 3: model.Mixed},
		Block:          block,
		Infrastructure: []netip.Prefix{infrastructure},
		Services: map[model.ServiceKey]uint32{
			{Addr: vip4, Port: 80, Protocol: 6}: 1, {Addr: vip6, Port: 443, Protocol: 6}: 2,
			{Addr: vip6, Protocol: 17}: 3,
		},
		VIPs:    map[netip.Addr]struct{}{vip4: {}, vip6: {}},
		Source:  netip.MustParseAddr("fd00:5e::e1"),
		Buckets: func(uint32) uint32 { return 1021 },
		Chains: func(service, bucket uint32) pool.Chain {
			if bucket%64 == 0 {
				return pool.Chain{}
			}
			return pool.Chain{IDs: [6]uint16{1, 2, 3}, Length: 3, Candidates: 2}
		},
		NextHop: nextHop,
	}
}

// nextHop has a way to most places.
func nextHop(dst netip.Addr, choice uint8) model.NextHop {
	hop := model.NextHop{Interface: 1 + uint32(choice%4), MTU: 1500}
	if dst.As16()[15] == 0x55 || choice == 7 {
		hop.Status = model.NextHopNoRoute
	}
	if choice%2 == 0 {
		hop.MTU = 1300
	}
	return hop
}

// host returns one that has what the world says.
func host() *model.Host {
	service := &model.HostService{Policy: acceptance.Policy{Kind: acceptance.Static, Threshold: 1},
		MSS: 1400}
	busy := uint32(0)
	return &model.Host{
		Interfaces: map[uint32]struct{}{1: {}, 2: {}},
		SIDs: []model.LocalSID{
			{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"), Behavior: srv6.EndOFFER},
			{Prefix: netip.MustParsePrefix("fcbb:bb00:1:d46::/64"), Behavior: srv6.EndDT46},
			{Prefix: netip.MustParsePrefix("fd00:c0de::1/128"), Behavior: srv6.EndOFFER},
		},
		Refusal:        10 * time.Second,
		Infrastructure: []netip.Prefix{infrastructure},
		Services: map[model.ServiceKey]*model.HostService{
			{Addr: vip4, Port: 80, Protocol: 6}:  service,
			{Addr: vip6, Port: 443, Protocol: 6}: service,
		},
		Sockets: func(tuple flow.Tuple) model.Socket {
			if tuple == here {
				return model.Socket{State: model.SocketNewSynRecv, SndISN: 1000, RcvISN: 2000}
			}
			return model.Socket{}
		},
		Busy: func(model.ServiceKey) uint32 {
			busy++
			return busy % 2
		},
		NextHop: nextHop,
	}
}

// edgeReasons and hostReasons are all for which each of them can count a packet.
var (
	commonReasons = []model.Reason{
		model.ReasonNone, model.ReasonTruncated, model.ReasonBadIPHeader, model.ReasonBadLength,
		model.ReasonExtensionChain, model.ReasonRoutingHeader, model.ReasonFragment,
		model.ReasonBadTransport,
		model.ReasonICMPQuote, model.ReasonNoRoute, model.ReasonTinyFragment,
	}
	edgeReasons = append([]model.Reason{
		model.ReasonSRv6FromOutside, model.ReasonSpoofedSource, model.ReasonNoService,
		model.ReasonNoBackend,
		model.ReasonOverlappingFragment, model.ReasonFragmentWithoutFirst, model.ReasonBadChecksum,
		model.ReasonIPOptions, model.ReasonHopLimit, model.ReasonBelowMinMTU,
		model.ReasonUnanswerable,
	}, commonReasons...)
	hostReasons = append([]model.Reason{
		model.ReasonOutsideDomain, model.ReasonBadSRH, model.ReasonSegmentsLeft,
		model.ReasonUpperLayer,
		model.ReasonHopLimit, model.ReasonECN, model.ReasonPacketTooBig,
	}, commonReasons...)
)

// TestEdgeFramesHit: a quarter of the frames and more are forwarded, from whatever side, and
// each reason is met often.
func TestEdgeFramesHit(t *testing.T) {
	edge, generator := edge(t), packetgen.New(1, world())
	for ingress := uint32(1); ingress <= 3; ingress++ {
		reasons, answers, forwarded := map[model.Reason]int{}, map[model.Answer]int{}, 0
		for range frames {
			got := edge.Process(ingress, generator.Next())
			reasons[got.Reason]++
			answers[got.Answer]++
			if got.Verdict != model.Pass && got.Verdict != model.Drop {
				forwarded++
			}
		}
		t.Logf("side %v: %d of %d forwarded; %v; %v", edge.Sides[ingress], forwarded, frames,
			reasons, answers)
		if forwarded < frames/4 {
			t.Errorf("side %v: %d of %d frames forwarded", edge.Sides[ingress], forwarded, frames)
		}
		for answer := model.AnswerEcho; answer <= model.AnswerTranslated; answer++ {
			if answers[answer] < 50 && !(answer == model.AnswerTranslated &&
				edge.Sides[ingress] == model.External) {
				t.Errorf("side %v: %d frames are answered as %v", edge.Sides[ingress],
					answers[answer], answer)
			}
		}
		for _, reason := range edgeReasons {
			guards := reason == model.ReasonSRv6FromOutside || reason == model.ReasonSpoofedSource
			if reasons[reason] < 50 && !(guards && edge.Sides[ingress] == model.Internal) {
				t.Errorf("side %v: %d frames for %v", edge.Sides[ingress], reasons[reason], reason)
			}
		}
	}
}

// TestHostFramesHit: three of ten frames and more are taken or passed on, and each reason
// and each decision is met often.
func TestHostFramesHit(t *testing.T) {
	host, generator := host(), packetgen.New(1, world())
	reasons, offers, forwarded := map[model.Reason]int{}, map[model.Offer]int{}, 0
	for i := range frames {
		got := host.Process(1, time.Duration(i)*time.Millisecond, generator.NextHost())
		reasons[got.Reason]++
		offers[got.Offer]++
		if got.Verdict != model.Pass && got.Verdict != model.Drop {
			forwarded++
		}
	}
	t.Logf("%d of %d forwarded; %v; %v", forwarded, frames, reasons, offers)
	if forwarded < frames/4 {
		t.Errorf("%d of %d frames taken or passed on", forwarded, frames)
	}
	for _, reason := range hostReasons {
		if reasons[reason] < 50 {
			t.Errorf("%d frames for %v", reasons[reason], reason)
		}
	}
	for offer := model.OfferNone; offer <= model.OfferNotTCP; offer++ {
		if offers[offer] < 50 {
			t.Errorf("%d frames for %v", offers[offer], offer)
		}
	}
}

// TestSeed: the frames depend on the seed alone.
func TestSeed(t *testing.T) {
	a, b, c := packetgen.New(7, world()), packetgen.New(7, world()), packetgen.New(8, world())
	same := 0
	for range 10_000 {
		frame := a.Next()
		if !bytes.Equal(frame, b.Next()) {
			t.Fatal("two generators of one seed differ")
		}
		if bytes.Equal(frame, c.Next()) {
			same++
		}
		if !bytes.Equal(a.NextHost(), b.NextHost()) {
			t.Fatal("two generators of one seed differ")
		}
		c.NextHost()
	}
	if same > 100 {
		t.Errorf("%d of 10000 frames are the same for another seed", same)
	}
}

// TestShapes: frames are cut at every length, have no to three VLAN tags, and up to ten
// extension headers; none is longer than a program's test run takes.
func TestShapes(t *testing.T) {
	const page, headroom = 4096, 256 + 320
	generator := packetgen.New(1, world())
	lengths, tags, chains := map[int]int{}, map[int]int{}, map[int]int{}
	for i := range frames {
		frame := generator.Next()
		if i%2 == 0 {
			frame = generator.NextHost()
		}
		if len(frame) > page-headroom {
			t.Fatalf("a frame of %d bytes", len(frame))
		}
		lengths[len(frame)]++
		at := 12
		for at+4 <= len(frame) && frame[at] == 0x81 && frame[at+1] == 0 || at+4 <= len(frame) &&
			frame[at] == 0x88 && frame[at+1] == 0xa8 {
			at += 4
		}
		tags[(at-12)/4]++
		if at+2 <= len(frame) && binary.BigEndian.Uint16(frame[at:]) == 0x86dd {
			chains[chainLength(frame[at+2:])]++
		}
	}
	for length := range 256 {
		if lengths[length] == 0 {
			t.Errorf("no frame of %d bytes", length)
		}
	}
	for count := range 4 {
		if tags[count] < 100 {
			t.Errorf("%d frames with %d tags", tags[count], count)
		}
	}
	for count := range 11 {
		if chains[count] < 100 {
			t.Errorf("%d frames with %d extension headers", chains[count], count)
		}
	}
}

// chainLength counts the extension headers of an IPv6 packet.
func chainLength(ip []byte) (count int) {
	if len(ip) < 40 {
		return 0
	}
	next, rest := ip[6], ip[40:]
	for next == 0 || next == 60 || next == 43 || next == 44 {
		if len(rest) < 8 {
			return count
		}
		size := 8 + 8*int(rest[1])
		if next == 44 {
			size = 8
		}
		if len(rest) < size {
			return count
		}
		next, rest = rest[0], rest[size:]
		count++
	}
	return count
}

// TestEmptyWorld: a world where there is nothing to hit still has frames.
func TestEmptyWorld(t *testing.T) {
	generator := packetgen.New(1, packetgen.World{})
	for range frames {
		generator.Next()
		generator.NextHost()
	}
}

// TestNoAllocation: frames are made in place.
func TestNoAllocation(t *testing.T) {
	generator := packetgen.New(1, world())
	for range 1000 { // until all buffers have their size
		generator.Next()
		generator.NextHost()
	}
	if got := testing.AllocsPerRun(10_000, func() { generator.Next() }); got != 0 {
		t.Errorf("%v allocations for a frame", got)
	}
	if got := testing.AllocsPerRun(10_000, func() { generator.NextHost() }); got != 0 {
		t.Errorf("%v allocations for a host's frame", got)
	}
}

func BenchmarkNext(b *testing.B) {
	generator := packetgen.New(1, world())
	for name, next := range map[string]func() []byte{"edge": generator.Next,
		"host": generator.NextHost} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
		})
	}
}
