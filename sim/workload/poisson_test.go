package workload_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/sim/workload"
)

func take(schedule *workload.Poisson, n int) []workload.Request {
	arrivals := make([]workload.Request, n)
	for i := range arrivals {
		arrivals[i], _ = schedule.Next()
	}
	return arrivals
}

func TestPoissonIsDeterminedByItsSeed(t *testing.T) {
	a := take(workload.NewPoisson(2112, 10*time.Millisecond, 42), 1000)
	b := take(workload.NewPoisson(2112, 10*time.Millisecond, 42), 1000)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("same seed, other schedule (-first +second):\n%s", diff)
	}
	other := take(workload.NewPoisson(2112, 10*time.Millisecond, 43), 1000)
	if cmp.Equal(a, other) {
		t.Error("another seed gives the same schedule")
	}
}

// The generator is part of the interface: a seed in a published result must
// mean the same load next year.
func TestPoissonStaysTheSame(t *testing.T) {
	want := []workload.Request{
		{At: 882035, Service: 5931317},
		{At: 1024080, Service: 680034},
		{At: 2149590, Service: 364969},
	}
	if diff := cmp.Diff(want, take(workload.NewPoisson(1000, 10*time.Millisecond, 1),
		len(want))); diff != "" {
		t.Errorf("first arrivals of seed 1 (-want +got):\n%s", diff)
	}
}

func TestPoissonArrivalsDoNotDependOnServiceTimes(t *testing.T) {
	a := take(workload.NewPoisson(100, time.Millisecond, 1), 1000)
	b := take(workload.NewPoisson(100, time.Second, 1), 1000)
	for i := range a {
		if a[i].At != b[i].At {
			t.Fatalf("request %d at %v or %v, as the mean service time is", i, a[i].At, b[i].At)
		}
	}
}

// The gaps must have the mean of the rate and, as an exponential distribution,
// a deviation equal to the mean; so must the service times.
func TestPoissonMoments(t *testing.T) {
	const n = 200_000
	arrivals := take(workload.NewPoisson(2000, 10*time.Millisecond, 1), n)
	var gaps, services []float64
	last := time.Duration(0)
	for _, a := range arrivals {
		if a.At < last {
			t.Fatalf("arrival at %v after one at %v", a.At, last)
		}
		gaps = append(gaps, float64(a.At-last))
		services = append(services, float64(a.Service))
		last = a.At
	}
	for name, test := range map[string]struct {
		values []float64
		mean   time.Duration
	}{
		"gap":          {gaps, 500 * time.Microsecond},
		"service time": {services, 10 * time.Millisecond},
	} {
		mean, deviation := moments(test.values)
		want := float64(test.mean)
		if math.Abs(mean/want-1) > 0.01 || math.Abs(deviation/want-1) > 0.01 {
			t.Errorf("%s: mean %v, deviation %v, want both %v within 1 %%",
				name, time.Duration(mean), time.Duration(deviation), test.mean)
		}
	}
}

func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}
