package workload_test

import (
	"math"
	"testing"
	"time"

	"sextant/sim/workload"
)

// counts are how many requests come in each of so many windows.
func counts(t *testing.T, arrivals string, rate float64, service, window time.Duration,
	windows int) []float64 {
	t.Helper()
	a, err := workload.ParseArrivals(arrivals)
	if err != nil {
		t.Fatal(err)
	}
	stream := workload.NewPoisson(rate, service, 3)
	stream.Arrivals = a
	counted := make([]float64, windows)
	for {
		r, _ := stream.Next()
		if i := int(r.At / window); i < windows {
			counted[i]++
			continue
		}
		return counted
	}
}

func meanAndVariance(of []float64) (mean, variance float64) {
	for _, x := range of {
		mean += x / float64(len(of))
	}
	for _, x := range of {
		variance += (x - mean) * (x - mean) / float64(len(of))
	}
	return mean, variance
}

// Bursts change neither the mean rate nor what theory says of counts in long windows: variance by
// mean of a Poisson process that a chain of two states modulates (Fischer and Meier-Hellstern,
// 1993): 1 + 2 a b (h - l)² / ((a + b)² (h b + l a)), where the states of rates h and l are left at
// rates a and b.
func TestBursts(t *testing.T) {
	const rate, window = 1000., 2 * time.Second
	const h, l, a, b = 2 * rate, 0.75 * rate, 1 / 0.02, 1 / 0.08 // bursts of 20 times 1 ms
	want := 1 + 2*a*b*(h-l)*(h-l)/((a+b)*(a+b)*(h*b+l*a))
	mean, variance := meanAndVariance(counts(t, "bursty", rate, time.Millisecond, window, 10_000))
	if math.Abs(mean/2000-1) > 0.005 || math.Abs(variance/mean/want-1) > 0.06 {
		t.Errorf("mean %.1f, want 2000; variance by mean %.2f, want %.2f", mean, variance/mean,
			want)
	}
	mean, variance = meanAndVariance(counts(t, "poisson", rate, time.Millisecond, window, 10_000))
	if math.Abs(mean/2000-1) > 0.005 || math.Abs(variance/mean-1) > 0.06 {
		t.Errorf("poisson: mean %.1f, variance by mean %.2f", mean, variance/mean)
	}
}

// A quarter of a day has the integral of its rate.
func TestDays(t *testing.T) {
	const rate, day = 1000., 10 * time.Second
	quarters := counts(t, "diurnal", rate, 10*time.Millisecond, day/4, 400)
	var sums [4]float64
	for i, n := range quarters {
		sums[i%4] += n / 100
	}
	for i, sign := range [4]float64{1, 1, -1, -1} {
		if want := 2500 * (1 + sign*0.5*2/math.Pi); math.Abs(sums[i]/want-1) > 0.01 {
			t.Errorf("quarter %d: %.0f requests, want %.0f", i+1, sums[i], want)
		}
	}
}
