package datapath

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
)

var _ = fuzzes(FuzzCFLB, "cflb")

// FuzzCFLB compares how a router with controllable load balancing forwards.
func FuzzCFLB(f *testing.F) {
	fuzzCFLB(f, "cflb", func(m *model.CFLB, near uint32, frame []byte) (uint32, model.CFLBResult) {
		want := m.Forward(frame)
		switch {
		case !want.Forwarded:
			return xdpPass, want
		case want.Interface == near:
			return xdpTransmit, want
		}
		return xdpRedirect, want
	})
}

var _ = fuzzes(FuzzCFLBHash, "cflb_hash")

// FuzzCFLBHash compares for which frames the kernel is told a next hop, which changes none.
func FuzzCFLBHash(f *testing.F) {
	fuzzCFLB(f, "cflb_hash", func(m *model.CFLB, _ uint32,
		frame []byte) (uint32, model.CFLBResult) {
		want := m.Choose(frame)
		want.Forwarded = want.Chosen
		return tcUnspec, want
	})
}

func fuzzCFLB(f *testing.F, name string,
	process func(m *model.CFLB, near uint32, frame []byte) (uint32, model.CFLBResult)) {
	w := newWorld(f)
	type variant struct {
		*fuzzer
		model   *model.CFLB
		program *CFLB
	}
	var variants []variant
	var next []func() []byte
	for i, network := range cflbNetworks {
		g := newCFLBGenerator(f, w, uint64(i), network.ipv4, network.ipv6)
		r := openCFLB(f, w, g.model, true)
		must(f, r.SetTable(g.table()))
		z := &fuzzer{home: mainNamespace(f), world: w.netns,
			runner: newRunner(r.programs[name], w.near)}
		variants, next = append(variants, variant{z, g.model, r}), append(next, g.frame)
	}
	at := -1
	seed(f, len(variants), func() []byte { at++; return next[at%len(next)]() })
	f.Fuzz(func(t *testing.T, kind uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		v := variants[int(kind)%len(variants)]
		defer v.enter(t)()
		choices, err := v.program.Choices()
		must(t, err)
		verdict, after, ok := v.runEither(t, frame)
		if !ok {
			return
		}
		wanted, want := process(v.model, uint32(w.near), frame)
		if verdict != wanted || !bytes.Equal(after, want.Frame) {
			t.Errorf("verdict %d, want %d: %+v\nframe   %x\nprogram %x\nmodel   %x", verdict,
				wanted, want, frame, after, want.Frame)
		}
		if want.Forwarded {
			choices[want.Choice]++
		}
		counted, err := v.program.Choices()
		must(t, err)
		for choice, n := range counted {
			if n != choices[choice] {
				t.Errorf("choice %v: counted %d, want %d\nframe %x", choice, n, choices[choice],
					frame)
			}
		}
		v.note(t, frame)
	})
}

// runEither runs an XDP program, or a TC program, which gets no frame with a part of an IP header.
func (z *fuzzer) runEither(t *testing.T, frame []byte) (verdict uint32, after []byte, ok bool) {
	t.Helper()
	if z.program.Type() == ebpf.XDP {
		verdict, after = z.run(t, frame)
		return verdict, after, true
	}
	verdict, after, err := z.program.Test(frame)
	return verdict, after, err == nil
}
