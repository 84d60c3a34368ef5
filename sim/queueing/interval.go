package queueing

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Replicate is one of several independent observations of the same quantity:
// the mean over Count requests. Requests within a replicate may depend on each
// other, as response times of one server do; replicates must not, as servers
// fed by independent Poisson streams don't.
type Replicate struct {
	Count uint64
	Mean  float64
}

// Interval is a confidence interval of a mean.
type Interval struct {
	Mean      float64 `json:"mean"`
	HalfWidth float64 `json:"halfWidth"`
}

// Contains reports whether x lies within the interval, ends included.
func (i Interval) Contains(x float64) bool {
	return math.Abs(x-i.Mean) <= i.HalfWidth
}

// MeanInterval returns the mean over all requests of all replicates, and its
// confidence interval at level (0.95, say) by Student's t distribution.
//
// The mean is the ratio of two sums, total time by total count, so that a busy
// replicate weighs what it should; its variance is that of a ratio estimator
// (Cochran, Sampling Techniques, section 2.11). With equal counts this is the
// usual interval of a mean. Two replicates with requests are the least.
func MeanInterval(level float64, replicates []Replicate) (Interval, error) {
	if !(level > 0 && level < 1) {
		return Interval{}, fmt.Errorf("queueing: confidence level %g must be between 0 and 1",
			level)
	}
	var sum, count, used float64
	for _, r := range replicates {
		if r.Count == 0 {
			continue
		}
		sum += r.Mean * float64(r.Count)
		count += float64(r.Count)
		used++
	}
	if used < 2 {
		return Interval{}, fmt.Errorf("queueing: confidence interval of %d replicates with "+
			"requests: at least 2 are needed", int(used))
	}
	mean := sum / count
	var squares float64
	for _, r := range replicates {
		deviation := (r.Mean - mean) * float64(r.Count)
		squares += deviation * deviation
	}
	deviation := math.Sqrt(used/(used-1)*squares) / count
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: used - 1}.Quantile(0.5 + level/2)
	return Interval{Mean: mean, HalfWidth: t * deviation}, nil
}
