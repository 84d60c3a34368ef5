package loadgen

import (
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Distribution describes a set of times in milliseconds. Mean, minimum and
// maximum are exact, percentiles to three digits.
type Distribution struct {
	Count  uint64  `json:"count"`
	MeanMs float64 `json:"meanMs"`
	MinMs  float64 `json:"minMs"`
	P50Ms  float64 `json:"p50Ms"`
	P90Ms  float64 `json:"p90Ms"`
	P99Ms  float64 `json:"p99Ms"`
	P999Ms float64 `json:"p999Ms"`
	MaxMs  float64 `json:"maxMs"`
}

// Server is what one server, by its X-Server header, has answered.
type Server struct {
	Name   string  `json:"name"`
	Count  uint64  `json:"count"`
	MeanMs float64 `json:"meanMs"`
}

// sample collects times.
type sample struct {
	histogram *hdrhistogram.Histogram // in microseconds
	sum       time.Duration
	min, max  time.Duration
}

func newSample() *sample {
	return &sample{histogram: hdrhistogram.New(1, time.Hour.Microseconds(), 3)}
}

func (s *sample) add(d time.Duration) {
	if s.histogram.TotalCount() == 0 {
		s.min = d
	}
	s.min, s.max = min(s.min, d), max(s.max, d)
	s.sum += d
	// Within the bounds no value can be refused.
	_ = s.histogram.RecordValue(min(max(d.Microseconds(), 0), time.Hour.Microseconds()))
}

func (s *sample) mean() float64 {
	return mean(s.sum, uint64(s.histogram.TotalCount()))
}

func (s *sample) distribution() Distribution {
	at := func(percentile float64) float64 { // the histogram knows the end of a range of values
		value := float64(s.histogram.ValueAtPercentile(percentile)) / 1000
		return min(max(value, milliseconds(s.min)), milliseconds(s.max))
	}
	return Distribution{
		Count:  uint64(s.histogram.TotalCount()),
		MeanMs: s.mean(),
		MinMs:  milliseconds(s.min),
		P50Ms:  at(50),
		P90Ms:  at(90),
		P99Ms:  at(99),
		P999Ms: at(99.9),
		MaxMs:  milliseconds(s.max),
	}
}

// tally collects the answers to requests.
type tally struct {
	latency  *sample
	failures Failures
	examples map[string]string // the first error of each kind
	servers  map[string]*serverTally
}

type serverTally struct {
	count uint64
	sum   time.Duration
}

func newTally() *tally {
	return &tally{latency: newSample(), examples: make(map[string]string),
		servers: make(map[string]*serverTally)}
}

func (t *tally) fail(err error) (kind string) {
	kind = t.failures.count(err)
	if _, known := t.examples[kind]; !known {
		t.examples[kind] = err.Error()
	}
	return kind
}

func (t *tally) succeed(server string, latency time.Duration) {
	t.latency.add(latency)
	if server == "" {
		return
	}
	s := t.servers[server]
	if s == nil {
		s = new(serverTally)
		t.servers[server] = s
	}
	s.count++
	s.sum += latency
}

// done returns how many requests had a right answer.
func (t *tally) done() uint64 {
	return uint64(t.latency.histogram.TotalCount())
}

// byServer returns the servers by name.
func (t *tally) byServer() []Server {
	servers := make([]Server, 0, len(t.servers))
	for name, s := range t.servers {
		servers = append(servers, Server{Name: name, Count: s.count, MeanMs: mean(s.sum, s.count)})
	}
	slices.SortFunc(servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return servers
}

func mean(sum time.Duration, count uint64) float64 {
	if count == 0 {
		return 0
	}
	return milliseconds(sum) / float64(count)
}

func milliseconds(d time.Duration) float64 {
	return float64(d) / float64(time.Millisecond)
}
