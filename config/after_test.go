package config_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
)

// serviceChanges are what may be wrong, or not, about a service after a change.
var serviceChanges = []func(s *config.Service, other config.Service){
	func(s *config.Service, other config.Service) { s.Name = other.Name },
	func(s *config.Service, other config.Service) { s.Endpoint = other.Endpoint },
	func(s *config.Service, _ config.Service) { s.Port += 100 },
	func(s *config.Service, _ config.Service) { s.Candidates = 7 },
	func(s *config.Service, _ config.Service) { s.Depth = 3 },
	func(s *config.Service, _ config.Service) { s.Policy = "none" },
	func(s *config.Service, _ config.Service) { s.Name = "no name" },
	func(s *config.Service, _ config.Service) {
		for i := range 4 { // with a long chain it takes two carriers
			s.Path = append(s.Path, netip.AddrFrom16([16]byte{0xfc, 0xbb, 0xbb, 0, 7, byte(i)}))
		}
	},
	func(s *config.Service, _ config.Service) {
		s.Backends = slices.Clone(s.Backends)
		s.Backends[0].Weight = -1
	},
	func(s *config.Service, other config.Service) { *s = other },
}

// TestValidateAfter: of a node that was made from a valid one, the same is found wrong as of any
// other, whatever changed, came, went, or stands elsewhere.
func TestValidateAfter(t *testing.T) {
	valid, err := config.Parse("n.yaml", []byte(fileOf(6, rand.New(rand.NewPCG(1, 2)))))
	if err != nil {
		t.Fatal(err)
	}
	faulty := 0
	rapid.Check(t, func(t *rapid.T) {
		n, edge := *valid, *valid.Edge
		n.Edge, edge.Services = &edge, slices.Clone(edge.Services)
		place := func(name string) int {
			return rapid.IntRange(0, len(edge.Services)-1).Draw(t, name)
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			change := rapid.SampledFrom(serviceChanges).Draw(t, "change")
			change(&edge.Services[place("of")], edge.Services[place("other")])
		}
		switch i := place("at"); rapid.IntRange(0, 3).Draw(t, "order") {
		case 0:
			slices.Reverse(edge.Services)
		case 1:
			edge.Services = slices.Delete(edge.Services, i, i+1)
		case 2:
			edge.Services = append(edge.Services, edge.Services[i])
		}
		want, got := config.Validate(&n), config.ValidateAfter(&n, valid)
		if len(got)+len(want) > 0 && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("found %v, want %v", got, want)
		}
		faulty += min(len(want), 1)
	})
	if faulty == 0 {
		t.Error("nothing was wrong")
	}
}
