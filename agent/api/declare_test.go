package api_test

import (
	"slices"
	"strings"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

// What an edge's services are declared as, declared again, changes nothing; one declaration sets
// and removes.
func TestDeclare(t *testing.T) {
	const untidy = "drainTime: 1001ms, slowStart: 4.35s, name: web, " // numbers that no float is
	client, agent, _ := start(t, strings.Replace(nodeFile, "{name: web, ", "{"+untidy, 1))
	const path = "/v1/edge/services"
	declare := func(d api.Declaration) (api.DeclarationMade, error) {
		return api.Ask[api.DeclarationMade](t.Context(), client, "PATCH", path, nil, d)
	}
	list, err := api.Ask[api.DeclaredList](t.Context(), client, "GET", path, nil, nil)
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("%d services are declared, want 2: %v", len(list.Items), err)
	}
	made, err := declare(api.Declaration{Set: list.Items})
	if err != nil || made.Changes != 0 || made.Fingerprint != list.Fingerprint {
		t.Errorf("declaring what is there: %+v, %v; want no change of %s", made, err,
			list.Fingerprint)
	}
	web := list.Items[0]
	web.Name, web.Backends = "web2", web.Backends[:1]
	port := uint16(81)
	web.Port = &port
	made, err = declare(api.Declaration{Set: []api.Declared{web}, Remove: []string{"dns", "gone"}})
	if err != nil || made.Changes == 0 {
		t.Errorf("%+v, %v; want changes", made, err)
	}
	if is, err := config.Fingerprint(agent.node); err != nil || is != made.Fingerprint {
		t.Errorf("the answer has fingerprint %s, what runs %s, %v", made.Fingerprint, is, err)
	}
	var names []string
	for _, s := range agent.node.Edge.Services {
		names = append(names, s.Name)
	}
	if want := []string{"web", "web2"}; !slices.Equal(names, want) {
		t.Errorf("the edge has services %q, want %q", names, want)
	}
	if got := len(agent.node.Edge.Services[1].Backends); got != 1 {
		t.Errorf("web2 has %d backends, want 1", got)
	}
}
