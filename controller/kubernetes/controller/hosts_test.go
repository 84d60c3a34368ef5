package controller

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
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

// Why a pod takes no packets of a service is told to those who look, and is news for its Service;
// what it takes is not lost by what it does not.
func TestHostProblem(t *testing.T) {
	h := newHosts()
	pod, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	at := func(vip string) config.Endpoint {
		return config.Endpoint{VIP: netip.MustParseAddr(vip), Protocol: config.TCP, Port: 80}
	}
	old, young := at("192.0.2.1"), at("192.0.2.2")
	status := &v1alpha1.HostStatus{
		Endpoints: []v1alpha1.HostEndpoint{{Address: pod.String(), SID: "fd00:c0de::1",
			Serves: []string{old.String()}}},
		Problems: []v1alpha1.HostProblem{
			{Address: pod.String(), Services: []string{old.String(), young.String()},
				Why: "no room"},
			{Address: other.String(), Services: []string{old.String()}, Why: "no link"}}}
	changed := h.set("n", status)
	if !changed[old.String()] || !changed[young.String()] || len(changed) != 2 {
		t.Errorf("news for %v", changed)
	}
	for _, c := range []struct {
		pod netip.Addr
		at  config.Endpoint
		why string
	}{{pod, old, ""}, {pod, young, "node n: no room"}, {other, old, "node n: no link"},
		{other, young, "node n does not take packets of this service for it yet"}} {
		place, why := h.where("n", c.pod, c.at)
		if why != c.why || place.SID.IsValid() != (why == "") {
			t.Errorf("%s of %s: %v, %q, want %q", c.at, c.pod, place, why, c.why)
		}
	}
	if changed := h.set("n", status); len(changed) > 0 {
		t.Errorf("the same again is news for %v", changed)
	}
	status.Problems[1].Why = "another"
	if changed := h.set("n", status); !changed[old.String()] || len(changed) != 1 {
		t.Errorf("another reason is news for %v", changed)
	}
}
