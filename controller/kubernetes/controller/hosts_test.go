package controller

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"sextant/controller/kubernetes/v1alpha1"
)

// What a node says anew makes a difference for an endpoint if other pods serve it, or the same at
// other SIDs.
func TestHostsDiffer(t *testing.T) {
	draw := func(t *rapid.T) (s v1alpha1.HostStatus, serving map[string]map[string]bool) {
		serving = map[string]map[string]bool{}
		for i := range rapid.IntRange(0, 4).Draw(t, "pods") {
			e := v1alpha1.HostEndpoint{Address: fmt.Sprintf("fd00:10::%d", i+1),
				SID: fmt.Sprintf("fd00:c0de::%d", rapid.IntRange(1, 2).Draw(t, "sid"))}
			e.Serves = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3,
				rapid.ID).Draw(t, "serves")
			for _, at := range e.Serves {
				if serving[at] == nil {
					serving[at] = map[string]bool{}
				}
				serving[at][e.Address+" "+e.SID] = true
			}
			s.Endpoints = append(s.Endpoints, e)
		}
		return s, serving
	}
	rapid.Check(t, func(t *rapid.T) {
		h := newHosts()
		first, before := draw(t)
		h.set("n", &first)
		second, after := draw(t)
		got := h.set("n", &second)
		for _, e := range []string{"a", "b", "c"} {
			if want := !maps.Equal(before[e], after[e]); got[e] != want {
				t.Fatalf("%s changes: %v, want %v; before %v, after %v", e, got[e], want, before[e],
					after[e])
			}
		}
	})
}
