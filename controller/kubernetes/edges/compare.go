package edges

import (
	"reflect"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/config"
)

// grown keeps a table that is larger than a declaration needs: a smaller one would have to look for
// connections in the former one, and change again with the next pod.
func grown(d api.Declared, size int) api.Declared {
	if size > 0 && (d.MaxBackends == nil || *d.MaxBackends < size) {
		d.MaxBackends = &size
	}
	return d
}

// covers reports whether an agent that has a service as it is would change nothing if it were told
// what is wanted.
func covers(has, want *api.Declared) bool {
	return fits(reflect.ValueOf(has.ServiceSpec), reflect.ValueOf(want.ServiceSpec)) &&
		(want.MaxBackends == nil ||
			has.MaxBackends != nil && *has.MaxBackends == *want.MaxBackends) &&
		slices.EqualFunc(sorted(has.Backends), sorted(want.Backends), sameBackend)
}

// fits reports whether each pointer that is not nil has the value that it has in the other struct.
func fits(has, want reflect.Value) bool {
	for i := range want.NumField() {
		h, w := has.Field(i), want.Field(i)
		switch {
		case w.Kind() == reflect.Struct:
			if !fits(h, w) {
				return false
			}
		case w.IsNil():
		case h.IsNil() || !reflect.DeepEqual(h.Elem().Interface(), w.Elem().Interface()):
			return false
		}
	}
	return true
}

func sorted(list []api.DeclaredBackend) []api.DeclaredBackend {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b api.DeclaredBackend) int {
		return strings.Compare(a.Name, b.Name)
	})
	return list
}

func sameBackend(a, b api.DeclaredBackend) bool {
	weight := func(d api.DeclaredBackend) int {
		if d.Weight == nil {
			return 1
		}
		return *d.Weight
	}
	state := func(d api.DeclaredBackend) config.BackendState {
		if d.State == nil {
			return config.Up
		}
		return *d.State
	}
	return a.Name == b.Name && a.SID != nil && b.SID != nil && *a.SID == *b.SID &&
		weight(a) == weight(b) && state(a) == state(b)
}
