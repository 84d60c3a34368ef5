package pool

import "math"

// Weight is what an offer to a backend costs, as far as that is known: of each pair the backend's
// own and what it is compared with. 0: not known, which counts as the same.
type Weight struct {
	Remote          bool    // it is in another site than the edge
	Path, LeastPath float64 // cost of the way to it, and to the nearest of the service
	Load, MeanLoad  float64 // of its host, and of all hosts of the service
	EmptyPath       float64 // added to both paths: what is small beside it makes no difference
}

const (
	ranksPerSite = 32
	middleRank   = ranksPerSite / 2 // of a backend with the least path and the mean load
	stickyRank   = 0.75             // how far a weight moves before the rank follows
)

// Rank is the place of a weight in an order: two ranks for each doubling of path times load, behind
// all ranks of the edge's own site if the backend is in another one. A rank stays as it was before
// as long as the weight has moved by less than three quarters of a rank; a rank of another site
// stands for nothing.
func (w Weight) Rank(before uint8) uint8 {
	steps := w.steps()
	rank := math.Round(steps)
	if old := float64(before%ranksPerSite) - middleRank; before != 0 &&
		math.Abs(steps-old) < stickyRank {
		rank = old
	}
	site := uint8(0)
	if w.Remote {
		site = ranksPerSite
	}
	return site + uint8(min(max(rank+middleRank, 1), ranksPerSite-1))
}

// steps is how far the weight is from the middle, in ranks.
func (w Weight) steps() (steps float64) {
	if w.Path > 0 || w.LeastPath > 0 {
		steps += doublings(w.Path+w.EmptyPath, w.LeastPath+w.EmptyPath)
	}
	return steps + doublings(w.Load, w.MeanLoad)
}

// doublings is twice the binary logarithm of a ratio, 0 where it says nothing.
func doublings(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return 2 * math.Log2(a/b)
}
