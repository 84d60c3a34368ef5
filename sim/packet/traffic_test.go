package packet

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Flows so rare that the first is beyond all times end the stream; they began at once, for ever.
func TestRareFlows(t *testing.T) {
	for _, gap := range []float64{1e7, 1e30, math.Inf(1)} {
		p := &Poisson{Hosts: 2, Gap: gap, Sizes: FixedSize(1), Until: Second}
		if f, more := p.Next(rand.New(rand.NewPCG(1, 2))); more {
			t.Errorf("gap %g s: %+v", gap, f)
		}
	}
}

// Distributions are refused that say something else, or from which no flow can be drawn.
func TestSizesRefused(t *testing.T) {
	for text, complaint := range map[string]string{
		"":                        "there are no points",
		"0 1":                     "no flow has a byte",
		"0 0\nNaN 1":              "line 2",
		"0 0\n1e300 1":            "line 2",
		"0 0\nInf 1":              "line 2",
		"0 0\n9 NaN":              "line 2",
		"0 0\n9 101":              "line 2",
		"9 0\n8 1":                "below the line before",
		"6 1 0\n13 1 0.2\n20 1 1": "not two numbers", // ns-2's, with a column of ones
		"1000":                    "not two numbers",
	} {
		if d, err := ParseSizes(text); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%q: %+v, %v; want it to say %q", text, d, err, complaint)
		}
	}
}

// What a link had not sent when it failed is no part of what it carried.
func TestCarriedByFailedLink(t *testing.T) {
	const rate = 1e9
	n := dumbbell(t, 1, rate, Microsecond, Queue{Bytes: 1000 * 1500})
	s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: 1})
	if _, err := s.AddSource(Source{Src: 0, Dst: 1, Next: ConstantRate(4*rate, 1500)}); err != nil {
		t.Fatal(err)
	}
	carried := func() float64 { return float64(s.Link(0).Bytes) - s.Waiting(0) }
	up := Time(0)
	for _, c := range []Change{{At: Millisecond}, {At: 2 * Millisecond, Up: true},
		{At: 3 * Millisecond}} {
		if err := s.Schedule(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ at, up Time }{{Millisecond / 2, Millisecond / 2},
		{Millisecond + 1, Millisecond}, {2 * Millisecond, Millisecond},
		{3 * Millisecond, 2 * Millisecond}, {9 * Millisecond, 2 * Millisecond}} {
		s.Run(c.at)
		up = c.up
		// The link was busy whenever it was up, but for the first packet's way to it.
		if got, want := carried(), up.Seconds()*rate/8; math.Abs(got-want) > 1600 {
			t.Errorf("at %g ms: %.0f bytes were carried, want %.0f", c.at.Seconds()*1000, got,
				want)
		}
	}
}
