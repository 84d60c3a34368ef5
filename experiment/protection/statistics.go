package protection

import (
	"math"
	"slices"
)

// statistics are what the paper tells of request times.
type statistics struct{ least, mean, deviation, median, p90, p99, most float64 }

func statisticsOf(ms []float64) statistics {
	if len(ms) == 0 {
		return statistics{}
	}
	sorted := slices.Sorted(slices.Values(ms))
	s := statistics{least: sorted[0], most: sorted[len(sorted)-1]}
	for _, x := range sorted {
		s.mean += x / float64(len(sorted))
	}
	for _, x := range sorted {
		s.deviation += (x - s.mean) * (x - s.mean) / float64(len(sorted))
	}
	s.deviation = math.Sqrt(s.deviation)
	s.median, s.p90, s.p99 = quantile(sorted, 0.5), quantile(sorted, 0.9), quantile(sorted, 0.99)
	return s
}

// quantile is the least value that at least this share of all does not exceed.
func quantile(sorted []float64, share float64) float64 {
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
