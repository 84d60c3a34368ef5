package datapath

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
)

var _ = fuzzes(FuzzStray, "stray")

// FuzzStray compares what is taken away beside a router.
func FuzzStray(f *testing.F) {
	w := newStrayWorld(f, 11)
	z := &fuzzer{runner: newRunner(w.program.programs["stray"], w.near), world: w.netns}
	z.home = mainNamespace(f)
	pristine := *w.model
	seed(f, 0, w.next)
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		w.keep(t)
		if z.seen++; z.seen%fuzzForget == 0 {
			w.program.forget(t, "fragments")
			*w.model = pristine
		}
		want := w.model.Process(uint32(w.near), frame)
		wanted := frame
		switch {
		case want.Offer == model.OfferStray:
			wanted = append([]byte{0, 0, 1, 0}, want.Frame...)
		case want.Taken:
			wanted = append([]byte{1, 0, 0, 0}, want.Frame...)
		}
		verdict, after := z.run(t, frame)
		if verdict != xdpPass || !bytes.Equal(after, wanted) {
			t.Errorf("verdict %d, became\n%x, want\n%x\nframe %x", verdict, after, wanted, frame)
		}
		z.note(t, frame)
	})
}

var _ = fuzzes(FuzzLead, "stray_lead")

// FuzzLead gives what leads to a VRF frames without a note, which are none of its own, and with any
// note that stray could write: it must lead to the interface that the note means, and write nothing
// but the destination.
func FuzzLead(f *testing.F) {
	w := newStrayWorld(f, 12)
	z := &fuzzer{home: mainNamespace(f), world: w.netns}
	spec, err := w.program.spec()
	must(f, err)
	noted, err := w.program.load(onlyNoted(f, spec, "stray_lead"))
	must(f, err)
	stray := newRunner(w.program.programs["stray"], w.near)
	seed(f, 0, func() []byte {
		_, after := stray.run(f, w.next())
		if len(after) < 4+minFrame || after[1] != 0 || after[3] != 0 {
			return w.next()
		}
		return append(slices.Clone(after[:4]), after[8:]...) // over the destination's first bytes
	})
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		if !isUntouched(t, w, "stray_lead", frame) {
			return
		}
		verdict, after, err := noted["stray_lead"].Test(frame)
		must(t, err)
		wanted, want := uint32(tcShot), frame
		var vrf strayVRF
		number := uint32(binary.NativeEndian.Uint16(frame))
		if w.program.maps["stray_vrfs"].Lookup(number, &vrf) == nil && vrf.Backup != 0 {
			to := vrf.Address
			if binary.NativeEndian.Uint16(frame[2:]) != 0 {
				to = vrf.BackupAddress
			}
			wanted, want = tcRedirect, append(to[:], frame[len(to):]...)
		}
		if verdict != wanted || !bytes.Equal(after, want) {
			t.Errorf("verdict %d, want %d, became\n%x, want\n%x\nframe %x", verdict, wanted, after,
				want, frame)
		}
	})
}

var _ = fuzzes(FuzzVRF, "vrf_ask")

// FuzzVRF gives the question at a VRF what stray_lead has not led there, which it must leave alone;
// and it compares what is asked about frames that it has.
func FuzzVRF(f *testing.F) {
	w := newStrayWorld(f, 13)
	x, err := w.program.Explainer()
	must(f, err)
	f.Cleanup(x.Close)
	z := &fuzzer{home: mainNamespace(f), world: w.netns}
	pristine := *w.model
	seed(f, 0, w.next)
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		w.keep(t)
		isUntouched(t, w, "vrf_ask", frame)
		if z.seen++; z.seen%fuzzForget == 0 {
			x.forget(t, "fragments")
			*w.model = pristine
		}
		before, err := x.continued()
		must(t, err)
		got, err := x.Explainer.Run(w.near, frame)
		must(t, err)
		want, decided := w.decides(frame)
		asked := want.Taken && want.Offer != model.OfferStray
		if (len(got.note) == 4 && got.note[2] == 0) != asked {
			t.Fatalf("note %x, to be asked: %v\nframe %x", got.note, asked, frame)
		}
		if asked {
			askedAlike(t, w, x, slices.Clone(got.Frame), decided)
		}
		continuedAlike(t, x, before, decided.Offer)
		z.note(t, frame)
	})
}

// askedAlike compares what vrf_ask does with a decapsulated frame: a stray goes to the backup with
// few hops, all else stays as it is.
func askedAlike(t *testing.T, w *strayWorld, x *StrayExplainer, inner []byte, want model.Result) {
	t.Helper()
	inner = shortened(inner)
	context := make([]byte, skbSize)
	binary.NativeEndian.PutUint32(context[skbMark:], 2) // VRF 1
	binary.NativeEndian.PutUint32(context[skbInterface:], uint32(w.far))
	options := ebpf.RunOptions{Data: inner, DataOut: make([]byte, 2*shortenedLength),
		Context: context}
	verdict, err := x.ask.Run(&options)
	must(t, err)
	wanted, after := uint32(tcUnspec), inner
	if want.Offer == model.OfferStray {
		wanted, after = tcRedirect, slices.Concat(farRouterMAC, want.Frame[len(farRouterMAC):])
	}
	whole := len(inner) == len(want.Frame) || want.Offer != model.OfferStray
	if verdict != wanted || whole && !bytes.Equal(options.DataOut, after) {
		t.Errorf("%v: verdict %d, want %d, became\n%x, want\n%x\ninner %x", want.Offer, verdict,
			wanted, options.DataOut, after, inner)
	}
}

// continuedAlike compares what has been counted for one frame.
func continuedAlike(t *testing.T, x *StrayExplainer, before StrayTraffic, offer model.Offer) {
	t.Helper()
	after, err := x.continued()
	must(t, err)
	got := [3]uint64{after.Here - before.Here, after.Strays - before.Strays,
		after.Returned - before.Returned}
	want := map[model.Offer][3]uint64{model.OfferHere: {1}, model.OfferStray: {0, 1},
		model.OfferReturned: {0, 0, 1}}[offer]
	if got != want {
		t.Errorf("%v: counted here, stray, returned as %v, want %v", offer, got, want)
	}
}

// isUntouched gives a program a frame that is none of its own; it reports whether the kernel makes
// a socket buffer of it, which one of a part of an IP header is not.
func isUntouched(t *testing.T, w *strayWorld, program string, frame []byte) bool {
	t.Helper()
	before, err := w.program.Traffic(0)
	must(t, err)
	verdict, after, err := w.program.programs[program].Test(frame)
	if err != nil {
		return false
	}
	if verdict != tcUnspec || !bytes.Equal(after, frame) {
		t.Errorf("verdict %d\n%x became\n%x", verdict, frame, after)
	}
	counted, err := w.program.Traffic(0)
	must(t, err)
	if counted != before {
		t.Errorf("counted %+v after %+v\nframe %x", counted, before, frame)
	}
	return true
}
