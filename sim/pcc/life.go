package pcc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
)

// Life is the distribution of how long flows live.
type Life struct {
	median time.Duration // of a log-normal distribution; fixed if sigma is 0
	sigma  float64       // of its logarithm
	max    time.Duration // longer ones end here
}

// The completion times of figure 10 in Nakamura et al., "Exploiting SRv6": of 10,000 downloads of 5
// MB, 8 % took longer than 2 s and the longest 11.8 s. A log-normal distribution through both
// points has this median and sigma, and its mean of 0.9 s is that of 64 downloads at a time from
// four servers of 1 Gbit/s. 10 MB take twice as long.
const (
	medianOf5MB = 680 * time.Millisecond
	sigmaOf5MB  = 0.767
	longestLife = 20 * time.Second
)

// ParseLife reads "5MB" or "10MB", the downloads of the VRF-Shadowing paper, none longer than 20 s,
// or a duration that all flows last.
func ParseLife(text string) (Life, error) {
	switch strings.ToUpper(text) {
	case "5MB":
		return Life{medianOf5MB, sigmaOf5MB, longestLife}, nil
	case "10MB":
		return Life{2 * medianOf5MB, sigmaOf5MB, longestLife}, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return Life{}, fmt.Errorf("life of flows %q: write 5MB, 10MB, or a duration as in 20s",
			text)
	}
	return Life{median: d, max: d}, nil
}

func (l Life) draw(random *rand.Rand) time.Duration {
	if l.sigma == 0 {
		return l.median
	}
	return min(l.max, time.Duration(float64(l.median)*math.Exp(l.sigma*random.NormFloat64())))
}
