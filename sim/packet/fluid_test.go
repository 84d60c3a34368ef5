package packet

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// most maximizes the sum of what the given flows get beyond their floors, by linear programming.
func most(t *testing.T, capacity []float64, paths [][]int32, floor []float64, of []int,
	equal bool) float64 {
	t.Helper()
	flows := len(paths)
	variables := flows
	if equal {
		variables = 1 // all of them rise together
	}
	a := mat.NewDense(len(capacity), variables+len(capacity), nil)
	b := append([]float64(nil), capacity...)
	for f, path := range paths {
		for _, l := range path {
			b[l] -= floor[f]
			if !equal {
				a.Set(int(l), f, 1)
			}
		}
	}
	objective := make([]float64, variables+len(capacity))
	for _, f := range of {
		if equal {
			for _, l := range paths[f] {
				a.Set(int(l), 0, a.At(int(l), 0)+1)
			}
			objective[0] = -1
			continue
		}
		objective[f] = -1
	}
	for l := range capacity {
		a.Set(l, variables+l, 1)
		b[l] = max(b[l], 0)
	}
	value, _, err := lp.Simplex(objective, a, b, 1e-10, nil)
	if err != nil {
		t.Fatalf("simplex: %v", err)
	}
	return -value
}

// fairByLP finds max-min rates by definition: all rates rise together as far as they can; then
// those that cannot rise alone are settled, and the rest goes on.
func fairByLP(t *testing.T, capacity []float64, paths [][]int32) []float64 {
	rate := make([]float64, len(paths))
	var open []int
	for f := range paths {
		open = append(open, f)
	}
	for len(open) > 0 {
		rise := most(t, capacity, paths, rate, open, true)
		for _, f := range open {
			rate[f] += rise
		}
		var still []int
		for _, f := range open {
			if most(t, capacity, paths, rate, []int{f}, false) > 1e-7 {
				still = append(still, f)
			}
		}
		if len(still) == len(open) {
			t.Fatal("no flow is settled")
		}
		open = still
	}
	return rate
}

// A thousand small networks: after each change the rates are those that linear programming finds,
// and each is the largest on a full link.
func TestFluidAgainstLinearProgram(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 4))
	for c := range 1000 {
		capacity := make([]float64, 2+r.IntN(5))
		for l := range capacity {
			capacity[l] = float64(1 + r.IntN(20))
		}
		f := NewFluid(capacity)
		path := func() (p []int32) {
			for _, l := range r.Perm(len(capacity))[:1+r.IntN(min(3, len(capacity)))] {
				p = append(p, int32(l))
			}
			return p
		}
		var numbers []int32
		var paths [][]int32
		for range 3 + r.IntN(6) {
			switch k := r.IntN(5); {
			case k == 0 && len(numbers) > 1:
				i := r.IntN(len(numbers))
				f.Remove(numbers[i])
				numbers = append(numbers[:i], numbers[i+1:]...)
				paths = append(paths[:i], paths[i+1:]...)
			case k == 1 && len(numbers) > 0:
				i := r.IntN(len(numbers))
				paths[i] = path()
				f.Move(numbers[i], paths[i])
			default:
				paths = append(paths, path())
				numbers = append(numbers, f.Add(paths[len(paths)-1]))
			}
		}
		for i, want := range fairByLP(t, capacity, paths) {
			if got := f.Rate(numbers[i]); math.Abs(got-want) > 1e-6 {
				t.Fatalf("case %d: capacities %v, paths %v: flow %d has %g, want %g", c, capacity,
					paths, i, got, want)
			}
		}
	}
}
