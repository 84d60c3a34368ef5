package plan_test

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
	"sextant/controller/kubernetes/plan"
)

// Whatever endpoints and hints there are, an edge gives new connections to those of its zone, or to
// all that are ready if there are none; those that terminate and serve, only if none is ready.
func TestZones(t *testing.T) {
	zone := rapid.SampledFrom([]string{"", "a", "b"})
	rapid.Check(t, func(t *rapid.T) {
		f := plan.Frontend{Name: "k8s.a", Options: plan.Options{
			NearZones: rapid.Bool().Draw(t, "near")}, Endpoint: config.Endpoint{
			VIP: netip.MustParseAddr("2001:db8:80::80"), Protocol: config.TCP, Port: 80}}
		var g plan.Group
		up, last := map[string]plan.Endpoint{}, map[string]plan.Endpoint{}
		for i := range rapid.IntRange(0, 6).Draw(t, "endpoints") {
			a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i + 1)})
			e := plan.Endpoint{Name: a.String(), Address: a, Weight: 1, State: config.Draining,
				Zone: zone.Draw(t, "zone")}
			if rapid.Bool().Draw(t, "hinted") {
				e.ForZones = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b"}), 1, 2,
					rapid.ID).Draw(t, "hints")
			}
			switch rapid.IntRange(0, 3).Draw(t, "state") {
			case 0, 1:
				e.State, up[e.Name] = config.Up, e
			case 2:
				e.LastResort, last[e.Name] = true, e
			}
			g.Endpoints = append(g.Endpoints, e)
		}
		if len(up) == 0 {
			up = last
		}
		f.Groups = []plan.Group{g}
		r := f.Build(where)
		for _, z := range []string{"", "a", "b", "c"} {
			want := maps.Clone(up)
			maps.DeleteFunc(want, func(_ string, e plan.Endpoint) bool {
				if len(e.ForZones) > 0 {
					return !slices.Contains(e.ForZones, z)
				}
				return e.Zone != z
			})
			if !f.NearZones || z == "" || len(want) == 0 {
				want = up
			}
			got := map[string]bool{}
			for _, b := range r.For(z).Backends {
				if *b.State == config.Up {
					got[b.Name] = true
				}
			}
			wanted := slices.Sorted(maps.Keys(want))
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, wanted) {
				t.Fatalf("an edge of zone %q gives new connections to %v, want %v", z, names,
					wanted)
			}
		}
	})
}

// A frontend of several groups that is to begin together gives nobody new connections while a group
// has endpoints that are ready and none that takes packets; groups that have no share, or nobody
// ready, keep none waiting.
func TestTogether(t *testing.T) {
	endpoint := func(n byte, state config.BackendState) plan.Endpoint {
		a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: n})
		return plan.Endpoint{Name: a.String(), Address: a, Weight: 1, State: state}
	}
	for _, c := range []struct {
		together bool
		second   plan.Group
		waits    bool
	}{
		{true, plan.Group{Weight: 1, Endpoints: []plan.Endpoint{endpoint(2, config.Up)}}, true},
		{false, plan.Group{Weight: 1, Endpoints: []plan.Endpoint{endpoint(2, config.Up)}}, false},
		{true, plan.Group{Weight: 0, Endpoints: []plan.Endpoint{endpoint(2, config.Up)}}, false},
		{true, plan.Group{Weight: 1, Endpoints: []plan.Endpoint{endpoint(2, config.Down)}}, false},
		{true, plan.Group{Weight: 1, Endpoints: []plan.Endpoint{endpoint(3, config.Up),
			endpoint(2, config.Up)}}, false},
	} {
		f := plan.Frontend{Name: "k8s.a", Options: plan.Options{Together: c.together},
			Endpoint: config.Endpoint{VIP: netip.MustParseAddr("2001:db8:80::80"),
				Protocol: config.TCP, Port: 80},
			Groups: []plan.Group{{Weight: 1, Endpoints: []plan.Endpoint{endpoint(1, config.Up)}},
				c.second}}
		r := f.Build(func(node string, pod netip.Addr, e config.Endpoint) (plan.Place, string) {
			if pod.As16()[15] == 2 {
				return plan.Place{}, "not yet"
			}
			return where(node, pod, e)
		})
		if r.Waits != c.waits || (r.Serving == 0) != c.waits {
			t.Errorf("%+v: waits %t, %d serve", c, r.Waits, r.Serving)
		}
	}
}

// A table has room for its backends, takes a step that is no larger than needed, and what the
// object says comes first.
func TestTables(t *testing.T) {
	steps := []int{64, 256, 1024, 4096, 10000}
	for _, said := range []int{0, 1, 500, 10000, 20000} {
		for _, backends := range []int{0, 1, 64, 65, 256, 257, 1024, 1025, 4096, 4097, 10000,
			10001} {
			f := plan.Frontend{Name: "k8s.a", Options: plan.Options{MaxBackends: said},
				Endpoint: config.Endpoint{VIP: netip.MustParseAddr("2001:db8:80::80"),
					Protocol: config.TCP, Port: 80}}
			var g plan.Group
			for i := range backends {
				a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 14: byte(i >> 8), 15: byte(i)})
				g.Endpoints = append(g.Endpoints, plan.Endpoint{Name: a.String(), Address: a,
					State: config.Up, Weight: 1})
			}
			f.Groups = []plan.Group{g}
			got := 64 // the agent's default
			if d := f.Build(where).For(""); d.MaxBackends != nil {
				got = *d.MaxBackends
			}
			want := min(said, 10000)
			if said == 0 {
				want = steps[min(len(steps)-1, slices.IndexFunc(append(steps, 1<<30),
					func(n int) bool { return backends <= n }))]
			}
			if got != want {
				t.Errorf("%d backends, %d said: the table is for %d, want %d", backends, said, got,
					want)
			}
		}
	}
}
