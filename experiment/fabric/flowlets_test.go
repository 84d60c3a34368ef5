package fabric

import (
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
	"sextant/sim/packet"
)

// The tail of all passes is compared with that of the other choices, beside what was published.
func TestReportOfFlowlets(t *testing.T) {
	cell := func(choice int, tail float64) flowletCell {
		times := make([]float64, 100)
		for i := range times {
			times[i] = tail * float64(i+1) / 100
		}
		return flowletCell{Choice: flowletChoices[choice].name, Times: [][]float64{times, times}}
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportFlowlets(r, []flowletCell{cell(0, 990), cell(1, 495), cell(2, 440)})
	})
	experimenttest.Has(t, text,
		"| 99th percentile, beside a path by hash of the flow (ECMP) | -33 % | "+
			"435.6 and 980.1 ms, -55.6 % (95 %: -55.6 to -55.6) | reached |",
		"| 99th percentile, beside a path at random for each flowlet | -15 % | "+
			"435.6 and 490.1 ms, -11.1 % (95 %: -11.1 to -11.1) | not reached |",
		"| of least cost for each flowlet | 2 | 222.2 | 220.0 | 396.0 | 435.6 |",
		"![times](times.svg)")
}

// Flows go from one rack to the other, at the load that is asked for, the same ones each time.
func TestFlowsOfFlowlets(t *testing.T) {
	const hosts, count = 8, 4000
	const rate = 1e7 // octets a second between the racks
	flows, err := flowletSchedule(hosts, rate, count, 0)
	if err != nil {
		t.Fatal(err)
	}
	octets, there := int64(0), 0
	for _, f := range flows {
		if f.Src/(hosts/2) == f.Dst/(hosts/2) {
			t.Fatalf("a flow from host %d to %d stays in a rack", f.Src, f.Dst)
		}
		octets += f.Bytes
		if f.Dst >= hosts/2 {
			there++
		}
	}
	seconds := float64(flows[count-1].Start) / float64(packet.Second)
	if load := float64(octets) / seconds / (2 * rate); load < 0.5 || load > 0.7 {
		t.Errorf("load %.2f of both directions, want 0.6", load)
	}
	if there < count*45/100 || there > count*55/100 {
		t.Errorf("%d of %d flows go one way", there, count)
	}
	again, err := flowletSchedule(hosts, rate, count, 0)
	if err != nil || again[count-1] != flows[count-1] {
		t.Errorf("other flows the second time: %v", err)
	}
	other, err := flowletSchedule(hosts, rate, count, 1)
	if err != nil || other[count-1] == flows[count-1] {
		t.Errorf("the same flows in another pass: %v", err)
	}
}

// The interval of the tails is as wide as passes differ, and flows that are slow in one pass for
// both choices leave it narrow.
func TestTailsBeside(t *testing.T) {
	pass := func(tail float64) []float64 { return []float64{1, 2, tail} }
	slow := [][]float64{pass(100), pass(200), pass(400), pass(800)}
	half := [][]float64{pass(50), pass(100), pass(200), pass(400)}
	if differ, low, high := tailsBeside(half, slow); differ > -49 || low < -51 || high > -49 {
		t.Errorf("half of each: %.1f %%, from %.1f to %.1f", differ, low, high)
	}
	mixed := [][]float64{pass(50), pass(100), pass(800), pass(800)}
	if _, low, high := tailsBeside(mixed, slow); low > -20 || high < 20 {
		t.Errorf("half of some, double of others: from %.1f to %.1f", low, high)
	}
}
