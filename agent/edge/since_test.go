package edge

import (
	"slices"
	"testing"

	"sextant/config"
)

// What a change did not touch is left out only between the two roles that it lies between, in both
// directions; all others may differ everywhere.
func TestPlacesSince(t *testing.T) {
	of := func(ports ...uint16) *Role {
		r := &Role{}
		for _, port := range ports {
			r.Services = append(r.Services, Service{Service: config.Service{
				Endpoint: config.Endpoint{Protocol: config.TCP, Port: port}}})
		}
		return r
	}
	runs, next, other := of(1, 2, 3), of(1, 2, 3), of(1, 2, 3)
	next.since = &since{runs: runs, changed: []int{1}}
	for _, test := range []struct {
		name       string
		role, from *Role
		want       []int
	}{
		{"switch", next, runs, []int{1}},
		{"roll back", runs, next, []int{1}},
		{"empty tables", next, nil, []int{0, 1, 2}},
		{"another role", next, other, []int{0, 1, 2}},
		{"a role of before", other, runs, []int{0, 1, 2}},
	} {
		if got := test.role.placesSince(test.from); !slices.Equal(got, test.want) {
			t.Errorf("%s: places %v, want %v", test.name, got, test.want)
		}
	}
	for _, test := range []struct {
		name  string
		ports []uint16
		want  bool
	}{{"same", []uint16{1, 2, 3}, true}, {"order", []uint16{1, 3, 2}, false},
		{"one more", []uint16{1, 2, 3, 4}, false}, {"one less", []uint16{1, 2}, false}} {
		var services []config.Service
		for _, s := range of(test.ports...).Services {
			services = append(services, s.Service)
		}
		if got := runs.isOf(services); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
