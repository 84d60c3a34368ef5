package workload_test

import (
	"math"
	"testing"
	"time"

	"sextant/sim/workload"
)

// Service times of a mean of 1 s by the name of their distribution.
func serviceTimes(t *testing.T, name string) []float64 {
	t.Helper()
	times, err := workload.ParseServiceTimes(name)
	if err != nil {
		t.Fatal(err)
	}
	stream := workload.NewPoisson(1, time.Second, 7)
	stream.ServiceTimes = times
	drawn := make([]float64, 1_000_000)
	for i := range drawn {
		r, _ := stream.Next()
		drawn[i] = r.Service.Seconds()
	}
	return drawn
}

// Each distribution has the mean that was asked for, and the share of long ones that its definition
// says.
func TestServiceTimes(t *testing.T) {
	const short = 1 / 1.99                            // of bimodal
	least := 0.2 / 1.2 / (1 - math.Pow(10_000, -0.2)) // of pareto, whose mean is 1
	for name, test := range map[string]struct{ above, share float64 }{
		"exponential": {3, math.Exp(-3)},
		"constant":    {0.999, 1},
		"bimodal":     {short * 99, 0.01},
		"pareto":      {least * 50, math.Pow(50, -1.2)},
	} {
		sum, above := 0.0, 0.0
		drawn := serviceTimes(t, name)
		for _, s := range drawn {
			sum += s
			if s > test.above {
				above++
			}
		}
		n := float64(len(drawn))
		if mean := sum / n; math.Abs(mean-1) > 0.03 {
			t.Errorf("%s: mean %.3f, want 1", name, mean)
		}
		if share := above / n; math.Abs(share-test.share) > 0.04*test.share {
			t.Errorf("%s: %.4f are above %.2f, want %.4f", name, share, test.above, test.share)
		}
	}
	if _, err := workload.ParseServiceTimes("normal"); err == nil {
		t.Error("normal is a distribution of service times")
	}
}
