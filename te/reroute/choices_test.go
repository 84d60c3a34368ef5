package reroute

import (
	"fmt"
	"math"
	"testing"

	"sextant/te/topology"
)

// Balls into bins: n flows choose among n spines, each the lightest of d random paths, where the
// weight of a path is the number of flows on it. For d choices the part of spines with at least k
// flows follows Mitzenmacher's differential equation ("The power of two choices in randomized load
// balancing", 2001), and the fullest one has log log n / log d + O(1), for one choice log n / log
// log n (1 + o(1)).
func TestPowerOfChoices(t *testing.T) {
	const n = 20000
	var links []string
	for i := range n {
		links = append(links, fmt.Sprintf("a-s%d", i), fmt.Sprintf("s%d-b", i))
	}
	g := network(t, links...)
	a, _ := g.Lookup("a")
	b, _ := g.Lookup("b")
	for choices := 1; choices <= 3; choices++ {
		s := Defaults(Smoothie)
		s.Choices, s.BackoffMost, s.BackoffLeast = choices, 0, 0
		d := decider(t, g, s, uint64(choices))
		flows := map[topology.Edge]int{}
		fullest := 0
		for i := range n {
			r := Report{Flow: tuple(0), From: a, To: b, Pause: true}
			r.Flow.SrcPort, r.Flow.DstPort = uint16(i), uint16(i>>16)
			decision := d.Report(&r)
			if decision.Verdict != Moved {
				t.Fatalf("flow %d: %v", i, decision.Verdict)
			}
			e := decision.Path[0]
			flows[e]++
			fullest = max(fullest, flows[e])
			d.weights.Observe(e, float64(flows[e])/n, 0)
		}
		checkBins(t, n, choices, flows, fullest)
	}
}

func checkBins(t *testing.T, n, choices int, flows map[topology.Edge]int, fullest int) {
	t.Helper()
	expected := atLeast(choices, 12)
	for k := 1; k < len(expected); k++ {
		got := 0
		for _, m := range flows {
			if m >= k {
				got++
			}
		}
		want := float64(n) * expected[k]
		if math.Abs(float64(got)-want) > 5*math.Sqrt(want)+1 {
			t.Errorf("%d choices: %d spines have %d flows or more, the theory says %.1f", choices,
				got, k, want)
		}
	}
	logLog := math.Log(math.Log(float64(n)))
	bound := logLog/math.Log(float64(choices)) + 2
	if choices == 1 {
		bound = 3 * math.Log(float64(n)) / logLog
	}
	if float64(fullest) > bound {
		t.Errorf("%d choices: the fullest spine has %d flows, more than %.1f", choices, fullest,
			bound)
	}
}

// atLeast is the part of bins with at least k balls after one ball a bin: ds_k/dt = s_{k-1}^d -
// s_k^d, by small steps.
func atLeast(choices, most int) []float64 {
	s := make([]float64, most)
	s[0] = 1
	const steps = 100000
	for range steps {
		for k := most - 1; k > 0; k-- {
			s[k] += (math.Pow(s[k-1], float64(choices)) - math.Pow(s[k], float64(choices))) / steps
		}
	}
	return s
}
