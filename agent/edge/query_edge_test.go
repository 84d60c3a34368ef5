package edge

import (
	"fmt"
	"slices"
	"testing"
)

// Services are found by their names, in the order of the configuration; names that are not there
// are left out.
func TestPlacesOfNames(t *testing.T) {
	e := &Role{Services: make([]Service, 300)}
	for i := range e.Services {
		e.Services[i].Name = fmt.Sprintf("s%d", 7*i%300)
	}
	names := map[string]bool{"s7": true, "s0": true, "s293": true, "s300": true, "": true}
	want := []int{0, 1, 299}
	if got := e.placesOf(names); !slices.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
	for i := range e.Services {
		names[e.Services[i].Name] = true
	}
	for i, place := range e.placesOf(names) {
		if place != i {
			t.Fatalf("of all services place %d comes as number %d", place, i)
		}
	}
	if got := e.placesOf(nil); len(got) > 0 {
		t.Errorf("without names there are places %v", got)
	}
}
