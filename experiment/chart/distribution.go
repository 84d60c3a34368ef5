package chart

import "slices"

// AtMost is the share, from 0 to 100, of values that are at most X, at each value that occurs: a
// cumulative distribution, for a Series with Step.
func AtMost(values []float64) []Point {
	sorted := slices.Sorted(slices.Values(values))
	var points []Point
	for i, v := range sorted {
		share := 100 * float64(i+1) / float64(len(sorted))
		if n := len(points); n > 0 && points[n-1].X == v {
			points[n-1].Y = share
			continue
		}
		points = append(points, Point{v, share})
	}
	return points
}
