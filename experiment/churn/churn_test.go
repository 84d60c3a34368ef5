package churn

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/lab/loadgen"
)

// Each change is of one server, and one is always up.
func TestToggle(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	up := all(4)
	left, returned := 0, 0
	for range 1000 {
		before := slices.Clone(up)
		toggle(random, up)
		changed, now := 0, 0
		for i := range up {
			if up[i] {
				now++
			}
			if up[i] != before[i] {
				changed++
				if up[i] {
					returned++
				} else {
					left++
				}
			}
		}
		if changed != 1 || now < 1 {
			t.Fatalf("%v became %v, want one change and a server up", before, up)
		}
	}
	if left == 0 || returned == 0 {
		t.Errorf("%d left, %d returned, want both", left, returned)
	}
}

func TestTimetable(t *testing.T) {
	steps, end := timetable(20 * time.Second)
	want := []step{{0, 4}, {20 * time.Second, 3}, {40 * time.Second, 2}, {60 * time.Second, 3},
		{80 * time.Second, 4}}
	if !slices.Equal(steps, want) || end != 100*time.Second {
		t.Errorf("timetable %v until %v, want the paper's %v until 100s", steps, end, want)
	}
	if got := firstUp(2); !slices.Equal(got, []bool{true, true, false, false, false, false, false,
		false}) {
		t.Errorf("firstUp(2) = %v", got)
	}
}

func TestTraffic(t *testing.T) {
	before, after := traffic{10, 100, 1, 2}, traffic{30, 180, 4, 7}
	passed := after.minus(before)
	if passed != (traffic{20, 80, 3, 5}) || passed.share() != 0.2 {
		t.Errorf("between %v and %v: %v, share %g, want a fifth sent on", before, after, passed,
			passed.share())
	}
	if share := (traffic{}).share(); share != 0 {
		t.Errorf("share of nothing is %g", share)
	}
}

func TestSampleSince(t *testing.T) {
	first, second := sample{[]uint64{0, 1_000_000}, 5}, sample{[]uint64{500_000, 1_000_000}, 25}
	want := reading{Second: 7, Mbps: []float64{2, 0}, Strays: 10}
	if diff := cmp.Diff(want, second.since(first, 7, 2)); diff != "" {
		t.Errorf("reading of two seconds (-want +got):\n%s", diff)
	}
}

func TestSum(t *testing.T) {
	whole := sum([]outcome{
		{Requests: 100, Failed: 10, Changes: 5, Resets: 7, Redirected: 0.1, Mbps: 50},
		{Requests: 300, Failed: 30, Changes: 5, Resets: 1, Redirected: 0.3, Mbps: 150},
	})
	want := outcome{Requests: 400, Failed: 40, Changes: 10, Resets: 8, Redirected: 0.2, Mbps: 100}
	if diff := cmp.Diff(want, whole); diff != "" || whole.rate() != 0.1 {
		t.Errorf("rate %g, sum (-want +got):\n%s", whole.rate(), diff)
	}
}

func TestMoments(t *testing.T) {
	mean, deviation := moments([]float64{1, 2, 3, 4})
	if mean != 2.5 || math.Abs(deviation-math.Sqrt(5.0/3)) > 1e-12 {
		t.Errorf("mean %g, deviation %g, want 2.5 and the root of 5/3", mean, deviation)
	}
	if mean, deviation := moments([]float64{7}); mean != 7 || deviation != 0 {
		t.Errorf("of one value: mean %g, deviation %g", mean, deviation)
	}
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for share, want := range map[float64]float64{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := quantile(hundred, share); got != want {
			t.Errorf("quantile %g is %g, want %g", share, got, want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %g", got)
	}
}

// A loss explains itself: its kind is counted, its time and error kept, and an example of each
// kind.
func TestOutcomeTakes(t *testing.T) {
	var o outcome
	o.take(loadgen.Fetch{Ms: 700}, time.Second)
	for i := range 60 {
		o.take(loadgen.Fetch{Ms: 30_000, Failure: "timeout", Error: strconv.Itoa(i)}, 2*time.Second)
	}
	o.take(loadgen.Fetch{Ms: 5, Failure: "reset", Error: "by peer"}, 3*time.Second)
	if o.Requests != 62 || o.Failed != 61 || len(o.Ms) != 1 ||
		o.Failures.String() != "reset 1, timeout 60" {
		t.Errorf("%d of %d failed (%v), %d good ones", o.Failed, o.Requests, o.Failures, len(o.Ms))
	}
	if len(o.Losses) != lossesKept || o.Losses[1].Error != "1" || o.Losses[1].Second != 2 ||
		o.Example["reset"] != "by peer" || o.Example["timeout"] != "0" {
		t.Errorf("losses %+v, examples %v", o.Losses, o.Example)
	}
	if whole := sum([]outcome{o, o}); whole.Failures.String() != "reset 2, timeout 120" ||
		len(whole.Losses) != 2*lossesKept {
		t.Errorf("sum of two: %v, %d losses", whole.Failures, len(whole.Losses))
	}
}

// What an outcome is said to mean is what it means.
func TestSays(t *testing.T) {
	for _, test := range []struct {
		policy  policy
		outcome outcome
		want    string
	}{
		{offer, outcome{Requests: 9}, "no connection broken, no reset sent"},
		{offer, outcome{Requests: 9, Failed: 1}, "connections were broken that should not be"},
		{offer, outcome{Requests: 9, Resets: 1}, "connections were broken that should not be"},
		{ecmp, outcome{Requests: 9, Failed: 7}, "each change breaks connections"},
		{shadow, outcome{Requests: 9, Failed: 2}, "two changes within a download can break it"},
		{circling, outcome{Requests: 9},
			"a connection pauses until its server is one of the last two again"},
	} {
		if got := says(test.policy, test.outcome); got != test.want {
			t.Errorf("%s with %+v: %q, want %q", test.policy.name, test.outcome, got, test.want)
		}
	}
}

func TestFetched(t *testing.T) {
	var told []loadgen.Fetch
	each := func(f loadgen.Fetch) { told = append(told, f) }
	text := `{"fetch":{"ms":12.5}}` + "\n" + `{"fetch":{"ms":3,"failure":"reset"}}` + "\n"
	err := fetched(strings.NewReader(text+`{"result":{"done":1,"failed":1}}`), each)
	if want := []loadgen.Fetch{{Ms: 12.5}, {Ms: 3, Failure: "reset"}}; err != nil ||
		!slices.Equal(told, want) {
		t.Errorf("told of %v, error %v, want %v", told, err, want)
	}
	for _, cut := range []string{"", text, text + "nonsense"} {
		if err := fetched(strings.NewReader(cut), each); err == nil {
			t.Errorf("%q ends without a result, and nobody says so", cut)
		}
	}
}
