package datapath

import (
	"math"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/packet/telemetry"
	"sextant/te/srpolicy"
)

const (
	shareBatches = 100
	shareBatch   = 20000 // packets of a batch
	// A sound source leaves these bounds once in a million tests: 4.9 standard deviations, of
	// counts and, by Wilson and Hilferty, of the sum of squares.
	shareDeviations = 4.9
)

// chosenOf gives so many packets to the source and returns how many it chose. They have the size
// of the MTU, so that each leaves as it came, and the next is like it.
func (w *telemetryWorld) chosenOf(t *testing.T, frame []byte, packets int) uint64 {
	t.Helper()
	before := w.outcome(t, model.TelemetryMTU)
	release := holdPreemption(t)
	_, err := w.program.programs["telemetry_source"].Run(&ebpf.RunOptions{Data: frame,
		Context: w.context, Repeat: uint32(packets)})
	release()
	must(t, err)
	return w.outcome(t, model.TelemetryMTU) - before
}

// outcome is how many packets had one.
func (w *telemetryWorld) outcome(t *testing.T, outcome model.TelemetryOutcome) uint64 {
	t.Helper()
	outcomes, err := w.program.Outcomes()
	must(t, err)
	return outcomes[outcome].Packets
}

// binomial fails unless the counts of equal batches look like those of independent choices of one
// packet in oneIn: their sum by the normal law, and their spread by that of chi-square.
func binomial(t *testing.T, chosen []uint64, batch, oneIn int) {
	t.Helper()
	p, n := 1/float64(oneIn), float64(batch)
	sum, squares, batches := 0.0, 0.0, float64(len(chosen))
	for _, k := range chosen {
		sum += float64(k)
		squares += (float64(k) - n*p) * (float64(k) - n*p)
	}
	if oneIn == 1 {
		if sum != n*batches {
			t.Errorf("%v of %v packets, want all", sum, n*batches)
		}
		return
	}
	variance := n * p * (1 - p)
	if off := (sum - batches*n*p) / math.Sqrt(batches*variance); math.Abs(off) > shareDeviations {
		t.Errorf("%v of %v packets: %.1f standard deviations from one in %d", sum, batches*n,
			off, oneIn)
	}
	// A batch of one in 10,000 chooses two packets: the tail is heavier than the normal law's.
	excess := 1 / (variance * batches)
	spread := math.Sqrt(2/batches + excess)
	if off := (squares/variance/batches - 1) / spread; math.Abs(off) > shareDeviations {
		t.Errorf("one in %d: counts of batches spread %.2f times as independent ones, %.1f off",
			oneIn, squares/variance/batches, off)
	}
}

// TestTelemetryShares counts packets that the source chooses by chance, against the binomial
// distribution, and in turn, exactly; also when the share changes between packets.
func TestTelemetryShares(t *testing.T) {
	w := newTelemetryWorld(t, model.EncodingINT)
	oneCPU(t)
	path := telemetryPaths(t)[0]
	outer := len(path.build(t, 41, nil))
	frame := benchLink.Frame(t, sized(path.build(t, 41, make([]byte, 1500-outer))))
	class := TelemetryClass{Hops: 8, Instructions: telemetry.NodeID | telemetry.Queue}
	for _, oneIn := range []int{1, 2, 3, 7, 50, 100, 1000, 4096, 10000} {
		class.OneIn, class.InTurn = uint32(oneIn), false
		chosen := make([]uint64, shareBatches)
		for i := range chosen {
			w.setClasses(t, class) // a change to the same share loses nothing either
			chosen[i] = w.chosenOf(t, frame, shareBatch)
		}
		binomial(t, chosen, shareBatch, oneIn)
		class.InTurn = true
		w.setClasses(t, class)
		w.untilChosen(t, frame, oneIn)
		for range 10 {
			if got := w.chosenOf(t, frame, 3*oneIn); got != 3 {
				t.Errorf("in turn: %d of %d packets, want 3", got, 3*oneIn)
			}
		}
	}
}

// TestTelemetrySharesOfClasses counts what is chosen of one class beside others: the packet is of
// the second of three, whatever is chosen of the first and the third.
func TestTelemetrySharesOfClasses(t *testing.T) {
	w := newTelemetryWorld(t, model.EncodingINT)
	oneCPU(t)
	path := telemetryPaths(t)[0]
	inner := packettest.Packet{Src: netip.MustParseAddr("2001:db8::1"), SrcPort: 7, DstPort: 80,
		Dst: netip.MustParseAddr("2001:db8::2"), Flags: "A", Payload: make([]byte, 1300)}.Bytes(t)
	frame := benchLink.Frame(t, sized(path.build(t, 41, append(inner, make([]byte, 1500-
		len(inner)-len(path.build(t, 41, nil)))...))))
	port := func(first uint16) srpolicy.Match {
		return srpolicy.Match{Protocol: unix.IPPROTO_TCP,
			DestinationPorts: srpolicy.Ports{First: first, Last: first}}
	}
	class := TelemetryClass{Hops: 8, Instructions: telemetry.NodeID | telemetry.Queue}
	for _, oneIn := range [][3]uint32{{2, 50, 1}, {1000, 7, 5000}, {1, 1000, 1}, {9000, 3, 9000}} {
		for _, first := range []TelemetryClass{{OneIn: oneIn[0]}, {OneIn: oneIn[0], InTurn: true},
			{}} {
			classes := []TelemetryClass{class, class, class}
			classes[0].OneIn, classes[0].InTurn = max(1, first.OneIn), first.InTurn
			if first.OneIn == 0 {
				classes[0].Instructions = 0
			}
			classes[1].OneIn, classes[2].OneIn = oneIn[1], oneIn[2]
			classes[0].Match, classes[1].Match = port(81), port(80)
			w.setClasses(t, classes...)
			chosen := make([]uint64, shareBatches)
			for i := range chosen {
				chosen[i] = w.chosenOf(t, frame, shareBatch/4)
			}
			binomial(t, chosen, shareBatch/4, int(oneIn[1]))
		}
	}
}

// untilChosen gives packets one at a time until the source chooses one, so that the next turn
// begins.
func (w *telemetryWorld) untilChosen(t *testing.T, frame []byte, oneIn int) {
	t.Helper()
	for range oneIn {
		if w.chosenOf(t, frame, 1) == 1 {
			return
		}
	}
	t.Fatalf("none of %d packets in turn", oneIn)
}
