package api_test

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/agent/api"
	"sextant/config"
)

// manyServices is nodeFile with services s0, s1 and so on at the edge, and every third of them at
// the host.
func manyServices(n int) string {
	var edge, host strings.Builder
	for i := range n {
		service := fmt.Sprintf("    - {name: s%d, vip: 192.0.2.80, port: %d", i, 1000+i)
		fmt.Fprintf(&edge, "%s, backends: [{name: b%d, sid: \"fcbb:bb00:1::\"}]}\n", service, i)
		if i%3 == 0 {
			fmt.Fprintf(&host, "%s}\n", service)
		}
	}
	before, _, _ := strings.Cut(nodeFile, "    - {name: web")
	return before + edge.String() + `host:
  interfaces: [{name: eth1}]
  sids: [{prefix: "fcbb:bb00:9::/48", behavior: End.OFFER}]
  services:
` + host.String()
}

// A client that wants all services gets each of them once, however many pages they take.
func TestAllServicesByPages(t *testing.T) {
	const services = 2400 // three pages
	client, m, _ := start(t, manyServices(services))
	for role, want := range map[api.Role]int{"": services + services/3, api.Edge: services,
		api.Host: services / 3} {
		list, err := client.Services(t.Context(), "", role)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, s := range list {
			got[string(s.Role)+" "+s.Name]++
		}
		if len(list) != want || len(got) != want {
			t.Errorf("role %q: %d services, %d different ones, not %d", role, len(list), len(got),
				want)
		}
		if !slices.IsSortedFunc(list, func(a, b api.Service) int {
			return cmp.Compare(a.Name, b.Name)
		}) {
			t.Errorf("role %q: they are not in the order of their names", role)
		}
	}
	backends, err := client.Backends(t.Context(), "")
	if err != nil || len(backends) != services {
		t.Errorf("%d backends, %v", len(backends), err)
	}
	m.node.Edge.Services, m.node.Host = nil, nil
	if list, err := client.Services(t.Context(), "", ""); err != nil || len(list) != 0 {
		t.Errorf("of none: %d services, %v", len(list), err)
	}
}

// Names are those of all services, in the order in which pages have them.
func TestNamesOfServices(t *testing.T) {
	client, m, _ := start(t, manyServices(1500))
	for range 2 {
		services, err := client.Services(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		want := []api.ServiceName{}
		for _, s := range services {
			want = append(want, api.ServiceName{Name: s.Name, Role: s.Role,
				Endpoint: s.Endpoint().String()})
		}
		got, err := client.ServiceNames(t.Context())
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d names are not those of %d services: %v", len(got), len(want), err)
		}
		m.node.Edge, m.node.Host = nil, nil
	}
}

// What is there all the while is on one page, whatever else comes and goes between two of them.
func TestPagesOfServicesThatChange(t *testing.T) {
	client, m, _ := start(t, manyServices(40))
	all := m.node.Edge.Services
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) []config.Service {
			var some []config.Service
			for _, s := range all {
				if rapid.Bool().Draw(t, label) {
					some = append(some, s)
				}
			}
			return rapid.Permutation(some).Draw(t, label)
		}
		stays, seen := map[string]bool{}, map[string]int{}
		for _, s := range all {
			stays[s.Name] = true
		}
		limit := rapid.IntRange(1, 50).Draw(t, "limit")
		query := url.Values{"limit": {strconv.Itoa(limit)}, "role": {"edge"}}
		for {
			m.node.Edge.Services = draw("services")
			there := map[string]bool{}
			for _, s := range m.node.Edge.Services {
				there[s.Name] = true
			}
			maps.DeleteFunc(stays, func(name string, _ bool) bool { return !there[name] })
			page, err := api.Ask[api.ServiceList](t.Context(), client, http.MethodGet,
				"/v1/services", query, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Items) > limit || len(page.Items) < limit && page.Continue != "" {
				t.Fatalf("a page of %d, limit %d, continues at %q", len(page.Items), limit,
					page.Continue)
			}
			for _, s := range page.Items {
				if seen[s.Name]++; seen[s.Name] > 1 || !there[s.Name] {
					t.Fatalf("%s: %d times, there: %t", s.Name, seen[s.Name], there[s.Name])
				}
			}
			if page.Continue == "" {
				break
			}
			query.Set("continue", page.Continue)
		}
		for name := range stays {
			if seen[name] != 1 {
				t.Errorf("%s was there all the while, and came %d times", name, seen[name])
			}
		}
	})
}

func TestWrongPagesOfServices(t *testing.T) {
	client, _, _ := start(t, nodeFile)
	for _, query := range []string{"limit=", "limit=0", "limit=-1", "limit=1001", "limit=x",
		"limit=1&name=web", "name=web&continue=a", "continue=&limit=1e3"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		list, err := api.Ask[api.ServiceList](t.Context(), client, http.MethodGet, "/v1/services",
			values, nil)
		if codeOf(err) != api.Invalid {
			t.Errorf("%s: %d services, %v", query, len(list.Items), err)
		}
	}
}
