package packet

import (
	"math"
	"math/rand/v2"
	"slices"
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

// filled finds max-min rates by filling: again and again, the link that gives its flows least
// settles them.
func filled(capacity []float64, paths map[int32][]int32) map[int32]float64 {
	left, open := append([]float64(nil), capacity...), make([]int, len(capacity))
	for _, path := range paths {
		for _, l := range path {
			open[l]++
		}
	}
	rates := map[int32]float64{}
	for len(rates) < len(paths) {
		least, at := math.Inf(1), int32(0)
		for l := range capacity {
			if open[l] > 0 && left[l]/float64(open[l]) < least {
				least, at = left[l]/float64(open[l]), int32(l)
			}
		}
		for number, path := range paths {
			if _, settled := rates[number]; settled || !slices.Contains(path, at) {
				continue
			}
			rates[number] = least
			for _, l := range path {
				left[l] -= least
				open[l]--
			}
		}
	}
	return rates
}

// Thousands of changes of a network with many flows, among them some with links and rates that are
// equal: the rates stay those that are computed from nothing.
func TestFluidAgainstFilling(t *testing.T) {
	for seed, equal := range []bool{true, false} {
		r := rand.New(rand.NewPCG(uint64(seed), 8))
		capacity := make([]float64, 48)
		for l := range capacity {
			capacity[l] = 10e9
			if !equal {
				capacity[l] = 1e9 * (1 + 20*r.Float64())
			}
		}
		f, paths := NewFluid(capacity), map[int32][]int32{}
		var numbers []int32
		path := func() (p []int32) {
			for _, l := range r.Perm(len(capacity))[:1+r.IntN(5)] {
				p = append(p, int32(l))
			}
			return p
		}
		for step := range 4000 {
			i := 0
			if len(numbers) > 0 {
				i = r.IntN(len(numbers))
			}
			switch k := r.IntN(3); {
			case k == 0 && len(numbers) > 100:
				f.Remove(numbers[i])
				delete(paths, numbers[i])
				numbers = append(numbers[:i], numbers[i+1:]...)
			case k == 1 && len(numbers) > 0 || len(numbers) > 200:
				paths[numbers[i]] = path()
				f.Move(numbers[i], paths[numbers[i]])
			default:
				p := path()
				number := f.Add(p)
				paths[number] = p
				numbers = append(numbers, number)
			}
			if step%10 != 0 {
				continue
			}
			for number, want := range filled(capacity, paths) {
				if got := f.Rate(number); math.Abs(got/want-1) > 1e-6 {
					t.Fatalf("seed %d, step %d, %d flows: flow %d has %g, want %g", seed, step,
						len(numbers), number, got, want)
				}
			}
		}
	}
}
