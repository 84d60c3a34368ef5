package experiment

import (
	"math"
	"os"
	"strings"
	"testing"

	"sextant/lab/loadgen"
	"sextant/sim/queueing"
)

// result is what one policy made of a load: requests, then mean, median and 99th percentile of the
// response time in ms.
func result(policy string, candidates int, second float64, requests uint64, mean, p50,
	p99 float64) PolicyResult {
	return PolicyResult{
		Policy: policy, Candidates: candidates, SecondChoice: second,
		Load: &loadgen.Result{
			Done:    requests,
			Latency: loadgen.Distribution{Count: requests, MeanMs: mean, P50Ms: p50, P99Ms: p99},
			Servers: []loadgen.Server{{Name: "web1", Count: requests / 2, MeanMs: mean - 1},
				{Name: "web2", Count: requests / 2, MeanMs: mean + 1}},
		},
	}
}

// The outcome that README.md shows, as Write prints it.
func TestReadmeShowsWhatIsPrinted(t *testing.T) {
	h, err := judge([]PolicyResult{
		result(random, 1, 0, 33829, 45.1, 22.3, 320.0),
		result(hunting, 2, 0.63, 12637, 20.4, 12.5, 115.4),
		result(hunting, 3, 0.60, 12637, 17.1, 11.1, 91.6),
	})
	if err != nil {
		t.Fatal(err)
	}
	h.RandomMs, h.Agrees = queueing.Interval{Mean: 45.1, HalfWidth: 9.5}, true
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := written(t, h)
	for line := range strings.Lines(text) {
		if !strings.Contains(string(readme), strings.TrimSpace(line)) {
			t.Errorf("README.md lacks the line %q of\n%s", line, text)
		}
	}
}

func written(t *testing.T, h *Hunting) string {
	t.Helper()
	var text strings.Builder
	if err := h.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestLateGeneratorIsTold(t *testing.T) {
	punctual, late := result(random, 1, 0, 1000, 47, 23, 329), result(hunting, 2, 0.5, 1000, 20, 12,
		109)
	punctual.Load.Lateness = loadgen.Distribution{MeanMs: 0.9, MaxMs: 90}
	late.Load.Lateness = loadgen.Distribution{MeanMs: 1.1, MaxMs: 110}
	h, err := judge([]PolicyResult{punctual, late})
	if err != nil {
		t.Fatal(err)
	}
	text := written(t, h)
	const want = "hunting with 2 candidate(s): requests were sent 1.1 ms late in the mean, " +
		"the latest 110ms"
	if strings.Count(text, "Warning: ") != 1 || !strings.Contains(text, want) {
		t.Errorf("want one warning, of the second policy:\n%s", text)
	}
}

// M/M/2 at 0.88: 10 ms / (1 - 0.88^2) = 44.3 ms.
func TestJudge(t *testing.T) {
	for mean, agrees := range map[float64]bool{44.3: true, 440: false} {
		h, err := judge([]PolicyResult{result(random, 1, 0, 1000, mean, 0, 0),
			result(hunting, 2, 0.5, 1000, 20, 0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if h.Agrees != agrees || math.Abs(h.TheoryMs-44.326) > 0.001 ||
			h.Policies[1].Improvement != mean/20 {
			t.Errorf("random choice takes %g ms: %+v, want that it agrees with 44.326 ms is %v",
				mean, h, agrees)
		}
	}
	if _, err := judge([]PolicyResult{{Load: &loadgen.Result{}}}); err == nil {
		t.Error("no server has answered, and there is no error")
	}
}

func TestSecondChoice(t *testing.T) {
	for _, test := range []struct {
		decisions  decisions
		candidates int
		want       float64
	}{
		{decisions{}, 2, 0},
		{decisions{forced: 100}, 1, 0}, // random choice: whoever is asked must take it
		{decisions{accepted: 40, refused: 60, forced: 60}, 2, 0.6},
		// The first refuses 60 of 100, the second 20 of these.
		{decisions{accepted: 80, refused: 80, forced: 20}, 3, 0.6},
	} {
		if got := test.decisions.secondChoice(test.candidates); got != test.want {
			t.Errorf("%+v of %d candidates: share %g, want %g", test.decisions, test.candidates,
				got, test.want)
		}
	}
}
