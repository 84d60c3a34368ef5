package collector

import "math/bits"

// Each power of two is split into 4 buckets, so a quantile is at most 25 % above the value.
const (
	splitBits = 2
	splits    = 1 << splitBits
	buckets   = (32-splitBits)*splits + splits
)

// Histogram counts values of 32 bits. A quantile of it is at most 25 % above the true one.
type Histogram struct {
	Count, Sum uint64
	Last, Max  uint32
	counts     [buckets]uint64

	takenCount, takenSum uint64 // as of the last TakeRecent
	recentMax            uint32 // since then
}

// Extent is a histogram in three numbers.
type Extent struct {
	Count, Sum uint64
	Max        uint32
}

// Mean is the mean, rounded down; 0 if there are no values.
func (e Extent) Mean() uint32 { return uint32(e.Sum / max(e.Count, 1)) }

// Add adds a value.
func (h *Histogram) Add(v uint32) {
	h.Count++
	h.Sum += uint64(v)
	h.Last, h.Max = v, max(h.Max, v)
	h.recentMax = max(h.recentMax, v)
	h.counts[bucketOf(v)]++
}

// TakeRecent returns what came since it was last called.
func (h *Histogram) TakeRecent() Extent {
	e := Extent{Count: h.Count - h.takenCount, Sum: h.Sum - h.takenSum, Max: h.recentMax}
	h.takenCount, h.takenSum, h.recentMax = h.Count, h.Sum, 0
	return e
}

func bucketOf(v uint32) int {
	if v < splits {
		return int(v)
	}
	octave := bits.Len32(v) - 1 - splitBits
	return octave*splits + int(v>>octave)
}

// upper returns the greatest value of a bucket.
func upper(bucket int) uint32 {
	if bucket < splits {
		return uint32(bucket)
	}
	octave := bucket/splits - 1
	return uint32((uint64(bucket%splits+splits)+1)<<octave - 1)
}

// Quantile returns a value that at least the fraction q of the values do not exceed; 0 if there is
// none.
func (h *Histogram) Quantile(q float64) uint32 {
	var below uint64
	for i, n := range h.counts {
		if below += n; n > 0 && float64(below) >= q*float64(h.Count) {
			return min(upper(i), h.Max)
		}
	}
	return 0
}

// Cumulative returns how many values are at most each of 4^0-1, 4^1-1 and so on, as Prometheus
// wants them.
func (h *Histogram) Cumulative() map[float64]uint64 {
	out := make(map[float64]uint64, 16)
	var below uint64
	for i, n := range h.counts {
		below += n
		if u := uint64(upper(i)) + 1; u&(u-1) == 0 && bits.TrailingZeros64(u)%2 == 0 {
			out[float64(u-1)] = below
		}
	}
	return out
}
