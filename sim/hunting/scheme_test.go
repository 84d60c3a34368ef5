package hunting_test

import (
	"strings"
	"testing"

	"sextant/lb/acceptance"
	"sextant/sim/hunting"
)

func TestParseScheme(t *testing.T) {
	for text, want := range map[string]hunting.Scheme{
		"random": {Candidates: 1},
		"static=4": {Candidates: 2, Policy: acceptance.Policy{Kind: acceptance.Static,
			Threshold: 4}},
		"static=0/6": {Candidates: 6, Policy: acceptance.Policy{Kind: acceptance.Static}},
		"dynamic":    {Candidates: 2, Policy: dynamic},
		"dynamic=500/3": {Candidates: 3, Policy: acceptance.Policy{Kind: acceptance.Dynamic,
			Threshold: 1, Window: 500, LowPermille: 400,
			HighPermille: 600}},
		"dynamic=9:30-50": {Candidates: 2, Policy: acceptance.Policy{Kind: acceptance.Dynamic,
			Threshold: 1, Window: 9, LowPermille: 300,
			HighPermille: 500}},
		"charon/3":  {Choice: hunting.LeastReported, Candidates: 3},
		"prequal=0": {Choice: hunting.ByProbes, Candidates: 1},
		"average/3": {Candidates: 3, Policy: acceptance.Policy{Kind: acceptance.Average}},
		"jsq":       {Choice: hunting.LeastOfAll, Candidates: 1},
		"jsq/2":     {Choice: hunting.LeastOfCandidates, Candidates: 2},
	} {
		if got, err := hunting.ParseScheme(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                 "unknown policy",
		"always":           "unknown policy",
		"static":           "needs a threshold",
		"static=x":         "from 0 to 65535",
		"average=3":        "needs a threshold",
		"average/1":        "from 2 to 6",
		"average/7":        "from 2 to 6",
		"random/2":         "one candidate",
		"prequal/2":        "one candidate",
		"prequal=2":        "a share from 0 to 1",
		"charon=2":         "needs a threshold",
		"dynamic/ 2":       "from 2 to 6",
		"dynamic=0":        "a window of 1",
		"dynamic=x":        "a window of 1",
		"dynamic=50:60-40": "and percents",
		"dynamic=50:60":    "and percents",
		"dynamic=50:0-101": "and percents",
	} {
		if _, err := hunting.ParseScheme(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

var dynamic = acceptance.Policy{Kind: acceptance.Dynamic, Threshold: 1, Window: 50,
	LowPermille: 400, HighPermille: 600}
