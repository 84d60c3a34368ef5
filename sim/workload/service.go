package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// ServiceTimes is a distribution of service times, in multiples of their mean.
type ServiceTimes struct {
	name string
	draw func(r *rand.Rand) float64
}

// Of the distributions: a request in rareOne is rareTimes as long as the others; a heavy tail falls
// by the power tailPower and ends at tailMost times its least value.
const (
	rareOne   = 100
	rareTimes = 100
	tailPower = 1.2
	tailMost  = 10_000
)

// distributions are all, the default first.
var distributions = []ServiceTimes{
	{"exponential", func(r *rand.Rand) float64 { return r.ExpFloat64() }},
	{"constant", func(*rand.Rand) float64 { return 1 }},
	{"bimodal", func(r *rand.Rand) float64 {
		const short = 1 / (1 - 1./rareOne + float64(rareTimes)/rareOne)
		if r.IntN(rareOne) == 0 {
			return rareTimes * short
		}
		return short
	}},
	{"pareto", func(r *rand.Rand) float64 {
		u := r.Float64() * (1 - math.Pow(tailMost, -tailPower))
		return math.Pow(1-u, -1/tailPower) / tailMean
	}},
}

// tailMean is the mean of a bounded Pareto distribution whose least value is 1.
var tailMean = tailPower / (tailPower - 1) * (1 - math.Pow(tailMost, 1-tailPower)) /
	(1 - math.Pow(tailMost, -tailPower))

// ServiceTimesNames are the names of all distributions, the default first.
func ServiceTimesNames() (names []string) {
	for _, d := range distributions {
		names = append(names, d.name)
	}
	return names
}

// ParseServiceTimes reads the name of a distribution: exponential, constant, bimodal (one of 100
// takes 100 times as long as the others) or pareto (heavy-tailed: bounded, shape 1.2, the longest
// 10,000 times the shortest).
func ParseServiceTimes(name string) (ServiceTimes, error) {
	i := slices.IndexFunc(distributions, func(d ServiceTimes) bool { return d.name == name })
	if i < 0 {
		return ServiceTimes{}, fmt.Errorf("unknown service times %q; use %s", name,
			strings.Join(ServiceTimesNames(), ", "))
	}
	return distributions[i], nil
}
