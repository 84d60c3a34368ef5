package datapath

import (
	"bytes"
	"testing"

	"sextant/datapath/model"
)

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

// FuzzLead gives what leads to a VRF frames without a note, which are none of its own.
func FuzzLead(f *testing.F) { fuzzUntouched(f, "stray_lead") }

// FuzzVRF gives the question at a VRF what stray_lead has not led there.
func FuzzVRF(f *testing.F) { fuzzUntouched(f, "vrf_ask") }

func fuzzUntouched(f *testing.F, program string) {
	w := newStrayWorld(f, 12)
	home := mainNamespace(f)
	z := &fuzzer{home: home, world: w.netns}
	seed(f, 0, w.next)
	f.Fuzz(func(t *testing.T, _ uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		before, err := w.program.Traffic(0)
		must(t, err)
		verdict, after, err := w.program.programs[program].Test(frame)
		if err != nil {
			return // the kernel makes no socket buffer of it: an IP header that is not whole
		}
		if verdict != tcUnspec || !bytes.Equal(after, frame) {
			t.Errorf("verdict %d\n%x became\n%x", verdict, frame, after)
		}
		counted, err := w.program.Traffic(0)
		must(t, err)
		if counted != before {
			t.Errorf("counted %+v after %+v\nframe %x", counted, before, frame)
		}
	})
}
