package datapath

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
)

// xdpDrop is XDP_DROP. The product takes all that is no other verdict for it.
const xdpDrop = 1

// runner runs one program on frames that arrive on an interface.
type runner struct {
	program *ebpf.Program
	ingress int
	out     []byte
}

func newRunner(program *ebpf.Program, ingress int) *runner {
	return &runner{program: program, ingress: ingress, out: make([]byte, 1<<17)}
}

// run returns the program's verdict and the frame that it left behind, valid until the next run.
func (r *runner) run(t testing.TB, frame []byte) (uint32, []byte) {
	t.Helper()
	opts := ebpf.RunOptions{
		Data:    frame,
		DataOut: r.out,
		Context: xdpContext{DataEnd: uint32(len(frame)), Ingress: uint32(r.ingress)},
	}
	verdict, err := r.program.Run(&opts)
	if err != nil {
		t.Fatalf("run program on %d bytes: %v\n%x", len(frame), err, frame)
	}
	return verdict, opts.DataOut
}

// agree compares what the program did with what the model says, byte for byte.
func agree(t testing.TB, frame []byte, verdict uint32, after []byte, want model.Result) bool {
	t.Helper()
	expected := map[model.Verdict]uint32{
		model.Pass: xdpPass, model.HandToKernel: xdpPass, model.Drop: xdpDrop,
		model.Transmit: xdpTransmit, model.Redirect: xdpRedirect,
	}[want.Verdict]
	if verdict != expected {
		t.Errorf("program returned %d, the model says %s (%s)\nframe %x\nprogram %x\nmodel   %x",
			verdict, want.Verdict, want.Reason, frame, after, want.Frame)
		return false
	}
	if want.Copy.IsValid() && verdict != xdpDrop { // in front of the frame, for the kernel's door
		want.Frame = append(want.Copy.AsSlice(), want.Frame...)
	}
	if verdict != xdpDrop && !bytes.Equal(after, want.Frame) {
		t.Errorf("%s: packets differ\nframe   %x\nprogram %x\nmodel   %x", want.Verdict, frame,
			after, want.Frame)
		return false
	}
	return true
}

// tally counts the model's reasons, to be compared with the program's counters.
type tally map[string]uint64

func (c tally) add(r model.Result) {
	if r.Reason != model.ReasonNone {
		c[r.Reason.String()]++
	}
}

// matches compares the counters with the tally, and both must name all reasons alike.
func (c tally) matches(t testing.TB, drops []Counter, before map[string]uint64) {
	t.Helper()
	for _, d := range drops {
		if got := d.Packets - before[d.Name]; got != c[d.Name] {
			t.Errorf("dropped as %s: program %d, model %d", d.Name, got, c[d.Name])
		}
		delete(c, d.Name)
	}
	for name, n := range c {
		t.Errorf("the model drops %d as %s, which the program does not know", n, name)
	}
}
