package datapath

import (
	"bytes"
	"testing"
)

// FuzzCFLB gives mutated frames to the router's program and to its model, under each of the
// parameters of the differential test.
func FuzzCFLB(f *testing.F) {
	w := newWorld(f)
	z := &fuzzer{home: mainNamespace(f), world: w.netns}
	var generators []*cflbGenerator
	var runners []*runner
	for i, network := range cflbNetworks {
		g := newCFLBGenerator(f, w, uint64(i), network.ipv4, network.ipv6)
		r := openCFLB(f, w, g.model, false)
		must(f, r.SetTable(g.table()))
		generators = append(generators, g)
		runners = append(runners, newRunner(r.programs["cflb"], w.near))
		for range fuzzSeeds / len(cflbNetworks) {
			f.Add(uint8(i), g.frame())
		}
	}
	f.Fuzz(func(t *testing.T, network uint8, frame []byte) {
		if !isFrame(frame) {
			return
		}
		defer z.enter(t)()
		i := int(network) % len(generators)
		want, verdict := generators[i].model.Forward(bytes.Clone(frame)), uint32(xdpPass)
		switch {
		case want.Forwarded && want.Interface == uint32(w.near):
			verdict = xdpTransmit
		case want.Forwarded:
			verdict = xdpRedirect
		}
		if got, after := runners[i].run(t, frame); got != verdict || !bytes.Equal(after,
			want.Frame) {
			t.Errorf("program %d, model %d: %+v\nframe   %x\nprogram %x\nmodel   %x",
				got, verdict, want, frame, after, want.Frame)
		}
	})
}
