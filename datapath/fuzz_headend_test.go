package datapath

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"sextant/datapath/packetgen"
	"sextant/te/srpolicy"
)

// steerGenerator makes frames that meet the rules of the tests.
func steerGenerator(seed uint64) *packetgen.Generator {
	world := packetgen.World{
		Block: netip.MustParsePrefix("fcbb:bb00::/32"), Locators: testLocators,
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::77")},
	}
	for _, key := range edgeServices {
		world.Services = append(world.Services, packetgen.Service{Addr: key.VIP, Port: key.Port,
			Protocol: key.Protocol})
	}
	return packetgen.New(seed, world)
}

var _ = fuzzes(FuzzHeadend, "headend")

// FuzzHeadend compares what head-ends on all sides of the domain do, copies included.
func FuzzHeadend(f *testing.F) {
	w := newWorld(f)
	routeBackends(f)
	type variant struct {
		twoHeadends
		*fuzzer
		loop *runner
	}
	var variants []variant
	for _, side := range []Side{External, Internal, Mixed} {
		ends := newTwoHeadends(f, w, side)
		z := newFuzzer(f, w, newRunner(ends.program.programs[side], w.near),
			ends.program.collection)
		variants = append(variants, variant{ends, z, newRunner(ends.program.programs[Internal],
			ends.program.loop.inner)})
	}
	seed(f, len(variants), steerGenerator(3).Next)
	f.Fuzz(func(t *testing.T, kind uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		v := variants[int(kind)%len(variants)]
		defer v.enter(t)()
		want := v.model.Process(uint32(w.near), 0, frame)
		verdict, after := v.give(t, frame)
		steeredAlike(t, frame, verdict, after, want, v.model, v.loop)
		v.counted = v.total(t) // with the copies
		v.note(t, frame)
	})
}

// outerMax is how many bytes of outer headers a head-end puts in front of a packet at most.
const outerMax = 192

// FuzzLoop gives a head-end what comes out of its loop: it must count it once, and drop or send it,
// whatever the note in front says.
func FuzzLoop(f *testing.F) {
	w := newWorld(f)
	routeBackends(f)
	ends := newTwoHeadends(f, w, Internal)
	arrival, generator := newRunner(ends.program.programs[Internal], w.near), steerGenerator(4)
	for copies := 0; copies < fuzzSeeds/10; {
		frame := generator.Next()
		if !isFrame(frame) {
			continue
		}
		want := ends.model.Process(uint32(w.near), 0, frame)
		if want.Entry < 0 || ends.model.Table[want.Entry].Action != srpolicy.Mirror ||
			want.Lists == nil {
			continue
		}
		_, inside := arrival.run(f, frame)
		f.Add(bytes.Clone(inside))
		copies++
	}
	z := newFuzzer(f, w, newRunner(ends.program.programs[Internal], ends.program.loop.inner),
		ends.program.collection)
	f.Fuzz(func(t *testing.T, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		verdict, after := z.give(t, frame)
		if verdict == 0 || verdict > xdpRedirect || verdict != xdpDrop &&
			len(after) > len(frame)+outerMax {
			t.Errorf("verdict %d, %d bytes became %d\nframe %x\nafter %x", verdict, len(frame),
				len(after), frame, after)
		}
	})
}

var _ = fuzzes(FuzzMerge, "merge")

// FuzzMerge compares what an egress does with numbered packets.
func FuzzMerge(f *testing.F) {
	w := newWorld(f)
	merges := newTwoMerges(f, w)
	z := newFuzzer(f, w, newRunner(merges.program.programs["merge"], w.near),
		merges.program.collection)
	random := rand.New(rand.NewPCG(5, 5))
	senders := []*sender{newSender(f, random, srpolicy.TLV, mergeInstances[0]),
		newSender(f, random, srpolicy.SID, mergeInstances[1])}
	at := 0
	seed(f, 0, func() []byte { at++; return senders[at%len(senders)].next() })
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		want := merges.model.Process(uint32(w.near), 0, frame)
		verdict, after := z.give(t, frame)
		agree(t, frame, verdict, after, want)
		z.note(t, frame)
	})
}
