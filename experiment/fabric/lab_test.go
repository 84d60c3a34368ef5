package fabric

import (
	"math"
	"testing"

	"sextant/examples"
	"sextant/experiment"
	"sextant/experiment/experimenttest"
	"sextant/lab"
	"sextant/sim/packet"
)

// The simulator's network has the delays, rates and routes of the lab's file: a flow of one segment
// takes three times two links of 4 ms, and what its frames take at 20 Mbit/s; flows to host 2 and 4
// share a link behind host 1, and those to host 2 and 3 do not.
func TestNetworkOfLab(t *testing.T) {
	spec, err := lab.Parse("fabric.yaml", examples.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	n, err := networkOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	time := func(flows ...packet.Flow) float64 { // in the mean
		ms, err := simulated(n, packet.Reno, flows)
		if err != nil || len(ms) != simulatedRuns*len(flows) {
			t.Fatalf("%d times, %v", len(ms), err)
		}
		return mean(ms)
	}
	const bytes, perMs = 1000, 20e6 / 8 / 1000
	const frames = 2*headerBytes + bytes + headerBytes // SYN, its answer, and the segment
	want := 3*2*4 + 2*frames/perMs
	for src := range 4 {
		for dst := range 4 {
			if src == dst {
				continue
			}
			got := time(packet.Flow{Src: src, Dst: dst, Bytes: bytes})
			if math.Abs(got-want) > 0.01 {
				t.Errorf("host %d to %d: %.3f ms, want %.3f", src+1, dst+1, got, want)
			}
		}
	}
	const long = 1_000_000
	one := packet.Flow{Src: 0, Dst: 1, Bytes: long}
	alone := time(one)
	apart := time(one, packet.Flow{Src: 0, Dst: 2, Bytes: long})
	shared := time(one, packet.Flow{Src: 0, Dst: 3, Bytes: long})
	if math.Abs(apart-alone) > 0.001*alone || shared < 1.5*alone {
		t.Errorf("a flow takes %.1f ms alone, %.1f beside one by the other spine, and %.1f beside "+
			"one by the same", alone, apart, shared)
	}
}

// The report says what is within 5 %, and what is not.
func TestReportInLab(t *testing.T) {
	cell := func(control string, lab, sim float64) labCell {
		ms := func(x float64) []float64 { return []float64{x / 2, x, 1.5 * x} }
		rates := func(x float64) []float64 { return []float64{x / 4, x / 4, x / 4, x / 4} }
		return labCell{Control: control, Lab: [][]float64{ms(lab), ms(lab)}, Sim: ms(sim),
			LabLong: [][]float64{rates(40), rates(44)}, SimLong: rates(42)}
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportInLab(r, []labCell{cell("reno", 100, 104), cell("cubic", 100, 90)})
	})
	experimenttest.Has(t, text,
		"| reno: mean time of a flow | lab: 100.0 ± 0.0 ms | simulator: 104.0 ms, +4.0 % | "+
			"within 5 % |",
		"| reno: goodput of four endless flows | lab: 42.0 ± 25.4 Mbit/s | "+
			"simulator: 42.0 Mbit/s, +0.0 % | within 5 % |",
		"| cubic: mean time of a flow | lab: 100.0 ± 0.0 ms | simulator: 90.0 ms, -10.0 % | "+
			"not within 5 % |",
		"| reno | lab, 1 | 100.0 | 100.0 | 150.0 | 150.0 |",
		"| cubic | simulator | 10.50 | 10.50 | 10.50 | 10.50 | 42.00 |",
		"![lab-cubic](lab-cubic.svg)")
	once := cell("reno", 100, 104) // as --quick plays it: there is no interval
	once.Lab, once.LabLong = once.Lab[:1], once.LabLong[:1]
	experimenttest.Has(t, experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportInLab(r, []labCell{once})
	}), "| reno: mean time of a flow | lab: 100.0 ms | simulator: 104.0 ms, +4.0 % | within 5 % |")
}
