package reroute

import (
	"math"
	"testing"
	"time"

	"sextant/te/topology"
)

// The paper's formula: occupancy over size, over bandwidth over the greatest bandwidth.
func TestWeightIsThePapers(t *testing.T) {
	g := network(t, "a-b:10000", "b-c:2500", "c-d")
	w := NewWeights(g, Defaults(Smoothie))
	for _, c := range []struct {
		link                  string
		occupied, size, want  float64
		bandwidth, ofGreatest float64
	}{
		{"a-b", 16, 64, 0.25, 10, 10},
		{"b-c", 16, 64, 1, 2.5, 10},
		{"c-d", 32, 64, 0.5, 0, 10}, // of unknown bandwidth
	} {
		e := between(t, g, c.link)
		w.Observe(e, c.occupied/c.size, 0)
		if got := w.Of(e, 0).Value; got != c.want {
			t.Errorf("%s with %v of %v: weight %v, not %v", c.link, c.occupied, c.size, got, c.want)
		}
	}
	if got := weightOf(w, route(t, g, "a", "b", "c", "d")); got != 1.75 {
		t.Errorf("the path weighs %v, not the sum 1.75", got)
	}
	last := between(t, g, "a-b")
	w.Observe(last, 0.5, 1)
	if got := w.Of(last, time.Hour); got.Value != 0.5 || got.Variance != 0 {
		t.Errorf("after an hour %v: the last observation stands for ever in the paper", got)
	}
	w.SetUp(last, false)
	if got := weightOf(w, route(t, g, "a", "b", "c")); !math.IsInf(got, 1) {
		t.Errorf("a path over a link that is down weighs %v", got)
	}
	w.SetUp(last, true)
	if got := w.Of(last, 0).Value; got != 0 {
		t.Errorf("a link that came up weighs %v: what was seen of it is out of date", got)
	}
}

// Means and variances of a stationary stream, against those of the stream itself.
func TestWeightsAreSmoothed(t *testing.T) {
	g := network(t, "a-b")
	s := Defaults(Sextant)
	s.Gain, s.Memory = 1.0/16, 0
	w := NewWeights(g, s)
	var sum, squares float64
	const n = 100000
	x := uint64(1)
	for i := range n {
		x = x*6364136223846793005 + 1442695040888963407
		occupancy := float64(x>>40) / (1 << 24) // uniform: mean 1/2, variance 1/12
		w.Observe(0, occupancy, time.Duration(i))
		got := w.Of(0, time.Duration(i))
		if i >= 1000 {
			sum += got.Value
			squares += got.Variance
		}
	}
	// The variance is taken around a mean that moves: (1-g)/(1-g/2) of that of the stream.
	want := 1.0 / 12 * (1 - s.Gain) / (1 - s.Gain/2)
	mean, variance := sum/(n-1000), squares/(n-1000)
	if math.Abs(mean-0.5) > 0.01 || math.Abs(variance-want) > 0.01 {
		t.Errorf("mean %.3f, variance %.4f: the stream has 0.5 and %.4f", mean, variance, want)
	}
}

func TestWeightsExpire(t *testing.T) {
	g := network(t, "a-b")
	s := Defaults(Sextant)
	s.Expiry, s.Unknown = time.Second, 0.1
	w := NewWeights(g, s)
	if got := w.Of(0, 0).Value; got != 0.1 {
		t.Errorf("nothing is known, and the weight is %v", got)
	}
	w.Observe(0, 0.9, time.Second)
	for age, want := range map[time.Duration]float64{0: 0.9, 500 * time.Millisecond: 0.5,
		time.Second: 0.1, time.Hour: 0.1} {
		if got := w.Of(0, time.Second+age).Value; math.Abs(got-want) > 1e-9 {
			t.Errorf("after %v the weight is %v, not %v", age, got, want)
		}
	}
	before := w.Of(0, time.Second).Value
	w.Observe(0, 0.1, 2*time.Second) // much later than Settings.Memory: counts nearly alone
	if got := w.Of(0, 2*time.Second).Value; got > 0.11 || got >= before {
		t.Errorf("an observation after a long silence makes %v", got)
	}
}

// weightOf is the weight of a path at the beginning.
func weightOf(w *Weights, path []topology.Edge) float64 {
	return sumOf(w.Links(nil, path, 0), path, nil).Value
}
