package config

import (
	"fmt"
	"math"
)

// A service's table has as many buckets as it needs, for ever: which backends there are at
// the moment does not count, since edges that disagree on the number, or change it, send packets
// to backends that do not have the connection.
//
// With n backends of equal weight on b buckets, the share of one is a binomial with a relative
// standard deviation of sqrt((n-1)/b): at most 10 % with bucketsPerBackend. Table exact gives each
// its share to within one bucket, n/b: 1 %.
const (
	// DefaultBuckets is what a service has that does not say: enough for 64 backends.
	DefaultBuckets = 6421
	// FormerBuckets was the default before services were sized by need.
	FormerBuckets = 65537

	bucketsPerBackend = 100
	mostMaxBackends   = 10000
	minBuckets        = 1021
)

// bucketsFor is the smallest prime that gives bucketsPerBackend to each.
func bucketsFor(backends int) int {
	buckets := max(minBuckets, bucketsPerBackend*backends)
	for !isPrime(buckets) {
		buckets++
	}
	return buckets
}

func isPrime(n int) bool {
	for divisor := 2; divisor*divisor <= n; divisor++ {
		if n%divisor == 0 {
			return false
		}
	}
	return true
}

// shareWarnings are about services whose file names too many backends for their buckets.
func (e *Edge) shareWarnings() (list []string) {
	for i := range e.Services {
		s := &e.Services[i]
		buckets, _ := e.BucketsOf(s)
		if text := s.ShareWarning(len(s.Backends), buckets); text != "" {
			list = append(list, text)
		}
	}
	return list
}

// BucketsOf returns how many buckets a service of the edge has. Declared says that the node file
// wants this number; without, a service that has another one keeps it.
func (e *Edge) BucketsOf(s *Service) (buckets int, declared bool) {
	switch {
	case s.MaxBackends > 0:
		return bucketsFor(s.MaxBackends), true
	case e.Buckets > 0:
		return e.Buckets, true
	}
	return DefaultBuckets, false
}

// ShareError is the relative standard deviation of one backend's share of new connections, if so
// many of equal weight have so many buckets (table rendezvous): in tables of 100,000 or more, whose
// backends prefer buckets each in its own order, at most.
func ShareError(backends, buckets int) float64 {
	if backends < 2 {
		return 0
	}
	return math.Sqrt(float64(backends-1) / float64(buckets))
}

// roughShare is above which error of shares ShareWarning says something.
const roughShare = 0.15

// ShareWarning says that the service has too many backends for its buckets; "": it has not.
func (s *Service) ShareWarning(backends, buckets int) string {
	e := ShareError(backends, buckets)
	if s.Table != Rendezvous || e <= roughShare {
		return ""
	}
	return fmt.Sprintf("service %s: shares of %d backends on %d buckets are off by %.0f %% "+
		"(standard deviation); write maxBackends: %d on all edges, or table: exact",
		s.Name, backends, buckets, 100*e, min(backends, mostMaxBackends))
}
