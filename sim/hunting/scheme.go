package hunting

import (
	"fmt"
	"strconv"
	"strings"

	"sextant/lb/acceptance"
	"sextant/lb/pool"
)

// Scheme is a way of choosing servers.
type Scheme struct {
	Choice     Choice
	Candidates int
	Policy     acceptance.Policy
	// Cold is the share of servers, by requests in flight, that ByProbes tells apart by their
	// response times only.
	Cold float64
}

// Random gives a request to a random server.
var Random = Scheme{Candidates: 1}

// defaultCandidates is how many candidates a scheme has that does not say: as in the paper.
const defaultCandidates = 2

// ParseScheme reads "random", "static=C", "dynamic", "dynamic=WINDOW", "dynamic=WINDOW:LOW-HIGH"
// with the share of accepted offers in percent, "average" and "delay" (package acceptance), "jsq"
// (the least loaded of all), "jsq/D" (the least loaded of D candidates), "charon" or "charon/D"
// (likewise, by what servers told last), "prequal", or "prequal=SHARE" (of servers that count as
// cold; 0: requests in flight alone decide). Behind a policy, /D is the number of candidates, 2 if
// it is not said: "average/3".
func ParseScheme(text string) (Scheme, error) {
	name, number, numbered := strings.Cut(text, "/")
	s := Scheme{Candidates: defaultCandidates}
	if numbered {
		var err error
		if s.Candidates, err = strconv.Atoi(number); err != nil || s.Candidates < 2 ||
			s.Candidates > pool.MaxChain {
			return s, fmt.Errorf("policy %q: behind / goes a number of candidates from 2 to %d",
				text, pool.MaxChain)
		}
	}
	name, parameter, given := strings.Cut(name, "=")
	if name != "dynamic" && name != "prequal" && given != (name == "static") {
		return s, fmt.Errorf("policy %q: static needs a threshold, as in static=4, and no other "+
			"has one", text)
	}
	switch name {
	case "random":
		s = Random
	case "jsq":
		s.Choice = LeastOfCandidates
		if !numbered {
			s = Scheme{Choice: LeastOfAll, Candidates: 1}
		}
	case "charon":
		s.Choice = LeastReported
	case "prequal":
		s = Scheme{Choice: ByProbes, Candidates: 1, Cold: paperCold}
		if given {
			var err error
			if s.Cold, err = strconv.ParseFloat(parameter, 64); err != nil ||
				!(s.Cold >= 0 && s.Cold <= 1) {
				return s, fmt.Errorf("policy %q: write a share from 0 to 1, as in "+
					"prequal=0.84", text)
			}
		}
	case "static":
		c, err := strconv.ParseUint(parameter, 10, 16)
		if err != nil {
			return s, fmt.Errorf("policy %q: the threshold must be a number from 0 to 65535", text)
		}
		s.Policy = acceptance.Policy{Kind: acceptance.Static, Threshold: uint32(c)}
	case "dynamic":
		s.Policy = paperDynamic
		if given && !readDynamic(parameter, &s.Policy) {
			return s, fmt.Errorf("policy %q: write a window of 1 to 65535 offers, and percents: "+
				"dynamic=500 or dynamic=500:30-50", text)
		}
	case "average":
		s.Policy = acceptance.Policy{Kind: acceptance.Average}
	case "delay":
		s.Policy = acceptance.Policy{Kind: acceptance.Delay}
	default:
		return s, fmt.Errorf("unknown policy %q; use random, static=C, dynamic, average, delay, "+
			"jsq, jsq/D, charon, prequal, with /D for D candidates", text)
	}
	if numbered && (name == "random" || name == "prequal") {
		return s, fmt.Errorf("policy %q: random and prequal have one candidate", text)
	}
	return s, nil
}

// paperCold is Prequal's share of cold servers.
const paperCold = 0.84

// paperDynamic is SR_dyn with the paper's parameters (Algorithm 2).
var paperDynamic = acceptance.Policy{Kind: acceptance.Dynamic, Threshold: 1, Window: 50,
	LowPermille: 400, HighPermille: 600}

// readDynamic reads WINDOW or WINDOW:LOW-HIGH.
func readDynamic(text string, p *acceptance.Policy) bool {
	text, band, given := strings.Cut(text, ":")
	window, err := strconv.ParseUint(text, 10, 16)
	if err != nil || window == 0 {
		return false
	}
	p.Window = uint32(window)
	if !given {
		return true
	}
	least, most, _ := strings.Cut(band, "-")
	low, err1 := strconv.ParseUint(least, 10, 7)
	high, err2 := strconv.ParseUint(most, 10, 7)
	p.LowPermille, p.HighPermille = uint32(10*low), uint32(10*high)
	return err1 == nil && err2 == nil && low < high && high <= 100
}
