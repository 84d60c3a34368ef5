package bgp

import (
	"testing"

	"github.com/osrg/gobgp/v4/pkg/apiutil"

	"sextant/config"
	"sextant/lb/discovery"
)

// LimitPrefixes bounds how many routes of a family a neighbor may tell of. Sessions come after it.
func (s *Speaker) LimitPrefixes(n uint64) { s.maxPrefixes = n }

// Encode writes a route as a speaker with these settings does.
func Encode(t testing.TB, b *config.BGP, a Announcement) *apiutil.Path {
	t.Helper()
	s, err := newSpeech(b)
	if err != nil {
		t.Fatal(err)
	}
	path, err := s.path(a)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Decode reads a route as a speaker with these settings does.
func Decode(t testing.TB, b *config.BGP,
	p *apiutil.Path) (discovery.Route, discovery.Reason, bool) {
	t.Helper()
	s, err := newSpeech(b)
	if err != nil {
		t.Fatal(err)
	}
	return s.decode(p)
}
