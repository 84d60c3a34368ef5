package packet

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/te/topology/generate"
)

// A run is the same whenever the slab of events moves in memory: no part of an event's handling
// writes to where it was before.
func TestSlabMoves(t *testing.T) {
	g, err := generate.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Rate: 1e9, Delay: Microsecond,
		Queue: Queue{Bytes: 12 * 1500, Mark: 4 * 1500}})
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range packetSchemes {
		run := func(moves bool) (Totals, []Completed) {
			var done []Completed
			s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: 3,
				Paths: Paths{Scheme: scheme, FlowletGap: 20 * Microsecond,
					Convergence: Millisecond, Probe: 5 * Millisecond, Cutoff: 15 * Microsecond,
					Resume: 40 * Microsecond,
					Controller: &Controller{Settings: prompt(), Sample: 0.5,
						Pause: 50 * Microsecond, Prompt: true, ReportDelay: 20 * Microsecond,
						ControlDelay: 50 * Microsecond}},
				Done: func(c Completed) { done = append(done, c) }})
			if moves {
				events := 0
				s.observe = func(int32) {
					// Now and then the next event that another needs has to be made, elsewhere.
					if events++; events%7 == 0 {
						s.calendar.free = none
						s.calendar.slab = slices.Clip(s.calendar.slab)
						s.packets.free = none
						s.packets.slab = slices.Clip(s.packets.slab)
					}
				}
			}
			r := rand.New(rand.NewPCG(2, 9))
			for range 30 {
				add(t, s, Flow{Src: r.IntN(8), Dst: 8 + r.IntN(8), Bytes: 1 + r.Int64N(60_000),
					Start: Time(r.Int64N(int64(Millisecond)))})
			}
			s.Run(5 * Second)
			return s.totals, done
		}
		totals, done := run(false)
		moved, also := run(true)
		if totals != moved || !slices.Equal(done, also) {
			t.Errorf("scheme %d: %+v, and with a slab that moves %+v", scheme, totals, moved)
		}
		if len(done) != 30 {
			t.Errorf("scheme %d: %d of 30 flows ended", scheme, len(done))
		}
	}
}
