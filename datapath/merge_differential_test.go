package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/datapath/packettest"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

// twoMerges is the program and its twin, with the same instances.
type twoMerges struct {
	program *Merge
	model   *model.Merge
}

var mergeSID2 = netip.MustParsePrefix("fcbb:bb00:1:0:17::/80")

// mergeInstances are one of each form.
var mergeInstances = []Instance{
	{SID: mergeSID1, Flows: []uint32{1, 2, 3}, Rules: frer.Settings{HistoryLog2: 10,
		Bits: frer.BitsTLV, Reset: time.Hour}},
	{SID: mergeSID2, Flows: []uint32{1, 0xfffff},
		Rules: frer.Settings{HistoryLog2: 11, Bits: frer.BitsSID, Reset: time.Hour}},
}

func newTwoMerges(t testing.TB, w *world) twoMerges {
	t.Helper()
	infrastructure := []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")}
	program, err := OpenMerge(w.dir, MergeConfig{
		Domain: Domain{
			Block:          block(t),
			Locators:       testLocators,
			Infrastructure: infrastructure,
		},
		SIDs:       []MergeSID{{Prefix: mergeSID1}, {Prefix: mergeSID2}},
		Interfaces: []MergeInterface{{Name: "near"}},
	})
	must(t, err)
	t.Cleanup(program.Close)
	twin := &model.Merge{
		Interfaces: map[uint32]struct{}{uint32(w.near): {}},
		SIDs:       []netip.Prefix{mergeSID1, mergeSID2}, Block: block(t), Locators: testLocators,
		Infrastructure: infrastructure,
		Members:        map[model.Member]*frer.Recovery{},
	}
	for i, instance := range mergeInstances {
		must(t, program.SetInstance(uint32(i), instance))
		recovery := frer.NewRecovery(instance.Rules)
		for _, flow := range instance.Flows {
			twin.Members[model.Member{SID: instance.SID, Flow: flow}] = recovery
		}
	}
	return twoMerges{program: program, model: twin}
}

// sender makes what arrives of a numbered flow: copies over some paths, each with a skew and a loss
// of its own, of which both change now and then; numbers that go over the end of their range; and
// restarts.
type sender struct {
	random  *rand.Rand
	form    srpolicy.Redundancy
	headers []srpolicy.Header
	inners  [][]byte
	tick    uint32
	skew    []uint32
	loss    []int // percent
	epoch   uint8
	bits    int
}

func newSender(t testing.TB, random *rand.Rand, form srpolicy.Redundancy,
	instance Instance) *sender {
	t.Helper()
	s := &sender{random: random, form: form, bits: instance.Rules.Bits,
		tick: 1<<instance.Rules.Bits - 3000}
	via := netip.MustParseAddr("fcbb:bb00:1:e::")
	for _, flow := range instance.Flows {
		list := srpolicy.List{Segments: []netip.Addr{via, instance.SID.Addr()}, Redundancy: form,
			Flow: flow}
		policy := srpolicy.Policy{Name: "p",
			Paths: []srpolicy.CandidatePath{{Action: srpolicy.Path, Lists: []srpolicy.List{list}}}}
		table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "p"}}, []srpolicy.Policy{policy},
			srpolicy.Source{Addr: netip.MustParseAddr("fd00:5e::1"), HopLimit: 9}, nil)
		must(t, err)
		s.headers = append(s.headers, table[0].Lists[0])
		s.skew, s.loss = append(s.skew, 0), append(s.loss, 0)
	}
	for _, p := range packettest.Kinds(packettest.Web4("A"), packettest.Web6("A")) {
		s.inners = append(s.inners, p.Bytes(t))
	}
	slices.SortFunc(s.inners, slices.Compare) // a map has no order
	return s
}

// next returns a frame that arrives, nil for a copy that is lost.
func (s *sender) next() []byte {
	path := s.random.IntN(len(s.headers))
	if path == 0 {
		s.tick++
	}
	switch s.random.IntN(4000) {
	case 0, 1, 2:
		s.skew[path] = uint32(s.random.IntN(3000))
	case 3, 4:
		s.loss[path] = s.random.IntN(60)
	case 5:
		if s.form == srpolicy.TLV {
			s.epoch += uint8(s.random.IntN(130)) // mostly newer, now and then by too much
			s.tick = s.random.Uint32N(100)
		}
	case 6:
		s.tick += 900 // within the history, or just not
	}
	if s.random.IntN(100) < s.loss[path] {
		return nil
	}
	number := (s.tick - s.skew[path] - uint32(s.random.IntN(4))) << (32 - s.bits) >> (32 - s.bits)
	h := s.headers[path]
	octets, inner := slices.Clone(h.Octets), s.inners[s.random.IntN(len(s.inners))]
	protocol := uint8(4)
	if inner[0]>>4 == 6 {
		protocol = 41
	}
	h.Fill(octets, len(inner), protocol, uint8(s.random.IntN(256)), 1, number, 0)
	octets[40+3] = 0 // segments left: it has visited all
	copy(octets[24:40], octets[48:64])
	if s.form == srpolicy.TLV {
		octets[h.NumberAt[0]-5] = s.epoch
	}
	return slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, octets, inner)
}

// TestMergeAgreesWithModel feeds the same frames to the program and to its Go model: numbered
// streams of both forms with loss, skew, wrap-around and restarts, and generated frames, valid and
// broken, to both SIDs.
func TestMergeAgreesWithModel(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	random := rand.New(rand.NewPCG(5, 5))
	senders := []*sender{newSender(t, random, srpolicy.TLV, mergeInstances[0]),
		newSender(t, random, srpolicy.SID, mergeInstances[1])}
	generator := packetgen.New(5, packetgen.World{
		Block: netip.MustParsePrefix("fcbb::/16"), Locators: testLocators,
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::77")},
		Decapsulating: []netip.Prefix{netip.PrefixFrom(mergeSID1.Addr(), 128),
			netip.PrefixFrom(mergeSID2.Addr(), 128)},
	})
	run := newRunner(merges.program.programs["merge"], w.near)
	reasons := tally{}
	for i := range *frames {
		var frame []byte
		switch which := random.IntN(10); {
		case which == 0:
			frame = generator.NextHost()
		case which == 1 && i%4 == 0:
			frame = generator.Next() // for nobody here
		default:
			frame = senders[which%2].next()
		}
		if len(frame) < ethernetHeader {
			continue
		}
		if len(frame) > ethernetHeader+ipv6Header+60 &&
			random.IntN(50) == 0 { // number, flow, epoch or type of a TLV
			frame = slices.Clone(frame)
			frame[ethernetHeader+ipv6Header+random.IntN(60)] ^= 1 << random.IntN(8)
		}
		want := merges.model.Process(uint32(w.near), 0, frame)
		verdict, after := run.run(t, frame)
		reasons.add(want)
		if !agree(t, frame, verdict, after, want) {
			t.Fatalf("frame %d", i)
		}
	}
	for _, reason := range []model.Reason{model.ReasonDuplicate, model.ReasonRogue,
		model.ReasonOldEpoch, model.ReasonUnknownFlow, model.ReasonECN} {
		if reasons[reason.String()] == 0 && *frames >= 50_000 { // some are rare
			t.Errorf("no frame was dropped as %s: the generator misses", reason)
		}
	}
	drops, err := merges.program.Drops()
	must(t, err)
	reasons.matches(t, drops, nil)
	for i, instance := range mergeInstances {
		stats, err := merges.program.Stats(uint32(i), len(instance.Flows))
		must(t, err)
		recovery := merges.model.Members[model.Member{SID: instance.SID, Flow: instance.Flows[0]}]
		if stats.Counters != recovery.Counters() || stats.Contended != 0 {
			t.Errorf("instance %d counts %+v, the model %+v", i, stats, recovery.Counters())
		}
	}
}

// TestMergeResetsAfterSilence: when nothing was accepted for the reset time, the next packet is,
// whatever its number.
func TestMergeResetsAfterSilence(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	instance := mergeInstances[0]
	instance.Rules.Reset = longReset
	must(t, merges.program.SetInstance(0, instance))
	s := newSender(t, rand.New(rand.NewPCG(1, 1)), srpolicy.TLV, instance)
	run := newRunner(merges.program.programs["merge"], w.near)
	frame := func(number uint32) []byte {
		f := s.next()
		binary.BigEndian.PutUint32(f[ethernetHeader+s.headers[0].NumberAt[0]:], number)
		return f
	}
	for _, step := range []struct {
		number uint32
		silent time.Duration
		want   uint32
	}{
		{1000, 0, xdpPass}, {1_000_000, 0, xdpDrop}, {1_000_000, longReset / 2, xdpDrop},
		{1_000_000, longReset + time.Second, xdpPass}, {1000, 0, xdpDrop}, {1_000_001, 0, xdpPass},
	} {
		if step.silent > 0 {
			merges.program.pause(t, 0, step.silent)
		}
		if verdict, _ := run.run(t, frame(step.number)); verdict != step.want {
			t.Errorf("number %d after %s: verdict %d, want %d", step.number, step.silent, verdict,
				step.want)
		}
	}
}
