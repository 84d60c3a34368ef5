package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Each object of a node that is there by itself checks itself, each role is named as one, and the
// interfaces at which it works are known.
func TestEachRoleIsWhole(t *testing.T) {
	known := 0
	for _, s := range objectOf(reflect.TypeFor[Node](), "", "").settings {
		if s.object == nil || !s.pointer {
			continue
		}
		t.Run(s.key, func(t *testing.T) {
			n := &Node{}
			role := s.value(reflect.ValueOf(n).Elem())
			role.Set(reflect.New(s.typ))
			s.object.fillAll(t, role.Elem())
			if _, checks := role.Interface().(section); !checks {
				t.Fatalf("%s has no method check", s.typ)
			}
			isRole := s.tag.Get("role") != ""
			if named := slices.Contains(n.AgentRoles(), s.key); named != isRole {
				t.Errorf("named as a role: %v", named)
			}
			if isRole {
				known++
			}
			if s.object.find("interfaces") != nil && isRole && len(n.InterfaceNames()) == 0 {
				t.Error(`no setting has is:"place"`)
			}
		})
	}
	if known != len(knownRoles()) || known < 10 {
		t.Errorf("%d roles of %d", known, len(knownRoles()))
	}
}

// The interfaces of a node are those of all its roles, each once.
func TestInterfaceNames(t *testing.T) {
	n := &Node{
		Edge:     &Edge{Interfaces: []EdgeInterface{{Name: "e0"}, {Name: "e1"}}},
		Host:     &Host{Interfaces: []HostInterface{{Name: "e0"}}},
		Headend:  &Headend{Local: []string{"l0"}, Uplinks: []string{"u0"}},
		Flowlets: &Flowlets{Interfaces: []string{"f0"}},
		Telemetry: &Telemetry{Transit: []string{"t2"},
			Source: &TelemetrySource{Interfaces: []string{"t1", "t0"}}},
		BGP: &BGP{},
	}
	if got := strings.Join(n.InterfaceNames(), " "); got != "e0 e1 l0 f0 t1 t0 t2" {
		t.Errorf("interfaces %q", got)
	}
	if got := (&Node{}).InterfaceNames(); got != nil {
		t.Errorf("a node without roles has %q", got)
	}
}
