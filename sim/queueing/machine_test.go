package queueing_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/sim/queueing"
)

// job is a line of a test's workload.
type job struct {
	name   string
	at     time.Duration
	demand time.Duration
}

// play runs the jobs, in order of arrival, until the machine is idle.
func play(t testing.TB, cores, workers int, jobs []job) []queueing.Finished[string] {
	t.Helper()
	machine, err := queueing.NewMachine[string](cores, workers)
	if err != nil {
		t.Fatal(err)
	}
	var finished []queueing.Finished[string]
	for _, j := range jobs {
		finished = append(finished, machine.Advance(j.at)...)
		machine.Add(j.name, j.demand)
	}
	for {
		next, busy := machine.Next()
		if !busy {
			return finished
		}
		finished = append(finished, machine.Advance(next)...)
	}
}

func TestMachine(t *testing.T) {
	type ends = []queueing.Finished[string]
	tests := []struct {
		name           string
		cores, workers int
		jobs           []job
		want           ends
	}{
		{"no more jobs than cores: full speed", 2, 9,
			[]job{{"a", 0, 10}, {"b", 4, 10}},
			ends{{"a", 10}, {"b", 14}}},
		{"one job does not use two cores", 2, 9,
			[]job{{"a", 0, 10}},
			ends{{"a", 10}}},
		{"two jobs share one core", 1, 9,
			[]job{{"a", 0, 10}, {"b", 0, 20}},
			ends{{"a", 20}, {"b", 30}}},
		{"a later short job overtakes a long one", 1, 9,
			[]job{{"long", 0, 100}, {"short", 50, 10}},
			ends{{"short", 70}, {"long", 110}}},
		{"three jobs on two cores get two thirds each", 2, 9,
			[]job{{"a", 0, 20}, {"b", 0, 20}, {"c", 0, 20}},
			ends{{"a", 30}, {"b", 30}, {"c", 30}}},
		{"jobs without a worker wait in order of arrival", 2, 1,
			[]job{{"a", 0, 10}, {"b", 1, 30}, {"c", 2, 5}},
			ends{{"a", 10}, {"b", 40}, {"c", 45}}},
		{"as many workers as cores: first come, first served", 2, 2,
			[]job{{"a", 0, 10}, {"b", 0, 20}, {"c", 0, 5}, {"d", 0, 1}},
			ends{{"a", 10}, {"c", 15}, {"d", 16}, {"b", 20}}},
		{"a job without demand ends at once", 1, 9,
			[]job{{"a", 0, 10}, {"b", 5, 0}, {"c", 6, -3}},
			ends{{"b", 5}, {"c", 6}, {"a", 10}}},
		{"an idle time between jobs changes nothing", 1, 9,
			[]job{{"a", 0, 10}, {"b", 1000, 10}},
			ends{{"a", 10}, {"b", 1010}}},
		{"ends fall on the next nanosecond", 2, 9,
			[]job{{"a", 0, 1}, {"b", 0, 1}, {"c", 0, 1}},
			ends{{"a", 2}, {"b", 2}, {"c", 2}}},
		{"an end beyond all time", 1, 9,
			[]job{{"a", 1, math.MaxInt64}, {"b", 1, math.MaxInt64}},
			ends{{"a", math.MaxInt64}, {"b", math.MaxInt64}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := play(t, test.cores, test.workers, test.jobs)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMachineTimeDoesNotGoBack(t *testing.T) {
	machine, err := queueing.NewMachine[string](1, 1)
	if err != nil {
		t.Fatal(err)
	}
	machine.Advance(100)
	machine.Add("a", 10)
	if finished := machine.Advance(50); len(finished) > 0 {
		t.Errorf("Advance(50) after Advance(100) ended %v", finished)
	}
	if next, busy := machine.Next(); next != 110 || !busy {
		t.Errorf("Next() = %v, %v, want 110ns, true", next, busy)
	}
}

func TestNewMachineRefuses(t *testing.T) {
	for _, size := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {1, -1}} {
		if _, err := queueing.NewMachine[int](size[0], size[1]); err == nil {
			t.Errorf("NewMachine(%d, %d) gives no error", size[0], size[1])
		}
	}
}

// TestMachineAgainstStepwise compares Machine with the definition: every job's
// remaining demand is counted down from event to event.
func TestMachineAgainstStepwise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.IntRange(1, 4).Draw(t, "cores")
		workers := rapid.IntRange(1, 6).Draw(t, "workers")
		n := rapid.IntRange(1, 40).Draw(t, "jobs")
		machine, err := queueing.NewMachine[int](cores, workers)
		if err != nil {
			t.Fatal(err)
		}
		reference := &stepwise{cores: float64(cores), workers: workers}
		got := make([]float64, n)
		take := func(finished []queueing.Finished[int]) {
			for _, f := range finished {
				got[f.Job] = float64(f.At)
			}
		}
		var at time.Duration
		for i := range n {
			at += time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "gap"))
			demand := time.Duration(rapid.Int64Range(0, 2e7).Draw(t, "demand"))
			take(machine.Advance(at))
			machine.Add(i, demand)
			reference.add(float64(at), float64(demand))
		}
		take(machine.Advance(math.MaxInt64))
		reference.moveTo(math.Inf(1))
		// Each end is rounded up by less than a nanosecond, and may pass that
		// on to the start of the next job in line.
		tolerance := float64(n) + 1
		for i := range n {
			if math.Abs(got[i]-reference.ends[i]) > tolerance {
				t.Errorf("job %d ends at %.0f ns, want %.0f", i, got[i], reference.ends[i])
			}
		}
	})
}

// stepwise is processor sharing straight from its definition.
type stepwise struct {
	cores   float64
	workers int
	now     float64
	left    []float64 // demand of each job
	ends    []float64
}

func (s *stepwise) add(at, demand float64) {
	s.moveTo(at)
	s.left = append(s.left, demand)
	s.ends = append(s.ends, math.NaN())
}

func (s *stepwise) moveTo(at float64) {
	for {
		// The first unfinished jobs run: a worker is given in order of arrival.
		var running []int
		first := math.Inf(1)
		for i := range s.left {
			if math.IsNaN(s.ends[i]) && len(running) < s.workers {
				running = append(running, i)
				first = min(first, s.left[i])
			}
		}
		rate := min(1, s.cores/float64(len(running)))
		if len(running) == 0 || s.now+first/rate > at {
			s.run(running, (at-s.now)*rate)
			s.now = at
			return
		}
		s.now += first / rate
		s.run(running, first)
	}
}

func (s *stepwise) run(running []int, cpu float64) {
	for _, i := range running {
		s.left[i] -= cpu
		if s.left[i] <= 1e-6 {
			s.ends[i] = s.now
		}
	}
}

// simulate feeds a machine with a Poisson stream and returns the mean response
// time of requests arriving after a tenth of them, in units of the mean demand.
func simulate(t *testing.T, cores, workers, requests int, rho float64,
	demand func(*rand.Rand) float64) float64 {
	t.Helper()
	const mean = float64(10 * time.Millisecond)
	machine, err := queueing.NewMachine[time.Duration](cores, workers)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, uint64(cores)))
	var at, sum, count float64
	warm := time.Duration(float64(requests) / 10 * mean / (rho * float64(cores)))
	take := func(finished []queueing.Finished[time.Duration]) {
		for _, f := range finished {
			if f.Job >= warm {
				sum += float64(f.At - f.Job)
				count++
			}
		}
	}
	for range requests {
		at += random.ExpFloat64() * mean / (rho * float64(cores))
		take(machine.Advance(time.Duration(at)))
		machine.Add(time.Duration(at), time.Duration(demand(random)*mean))
	}
	take(machine.Advance(math.MaxInt64))
	return sum / count / mean
}

func TestMachineAgreesWithTheory(t *testing.T) {
	exponential := func(r *rand.Rand) float64 { return r.ExpFloat64() }
	constant := func(*rand.Rand) float64 { return 1 }
	// Nine in ten need a third of the mean, one in ten needs seven times as much.
	bimodal := func(r *rand.Rand) float64 {
		if r.Float64() < 0.1 {
			return 7
		}
		return 1.0 / 3
	}
	const unlimited = math.MaxInt
	tests := []struct {
		name      string
		cores     int
		workers   int
		rho       float64
		demand    func(*rand.Rand) float64
		tolerance float64 // relative
	}{
		{"M/M/1", 1, unlimited, 0.7, exponential, 0.02},
		{"M/M/2", 2, unlimited, 0.61, exponential, 0.02},
		{"M/M/2 at high load", 2, unlimited, 0.88, exponential, 0.04},
		{"M/M/2 with few workers", 2, 4, 0.88, exponential, 0.04},
		{"M/M/4", 4, unlimited, 0.8, exponential, 0.02},
		{"constant demands, insensitive", 2, unlimited, 0.8, constant, 0.02},
		{"bimodal demands, insensitive", 2, unlimited, 0.8, bimodal, 0.04},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := simulate(t, test.cores, test.workers, 400_000, test.rho, test.demand)
			response, err := queueing.MeanResponse(test.cores, test.rho, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			want := response.Seconds()
			if math.Abs(got/want-1) > test.tolerance {
				t.Errorf("mean response %.3f mean demands, theory says %.3f (tolerance %g)", got,
					want, test.tolerance)
			}
		})
	}
}

// BenchmarkMachine measures one arrival and one end at a steady number of running jobs.
func BenchmarkMachine(b *testing.B) {
	for _, running := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("running=%d", running), func(b *testing.B) {
			machine, err := queueing.NewMachine[int](2, math.MaxInt)
			if err != nil {
				b.Fatal(err)
			}
			random := rand.New(rand.NewPCG(1, 1))
			add := func(i int) { machine.Add(i, time.Duration(random.ExpFloat64()*1e9)) }
			for i := range running {
				add(i)
			}
			b.ResetTimer()
			for i := range b.N {
				next, _ := machine.Next()
				machine.Advance(next)
				add(i)
			}
		})
	}
}
