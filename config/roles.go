package config

import (
	"iter"
	"reflect"
	"slices"
)

// Roles are fields of Node, as are the objects that serve some of them. What is true of each role
// is said of it by tags and methods of its own, so that no other list names all.

// section is an object of a node of its own: a role, or what serves roles. Check finds faults
// between its values.
type section interface{ check(c *checker) }

// sections are those that the node has, in the order of the file.
func (n *Node) sections() iter.Seq2[*setting, section] {
	return func(yield func(*setting, section) bool) {
		for _, s := range objectOf(reflect.TypeFor[Node](), "", "").settings {
			if s.object == nil || !s.pointer {
				continue
			}
			v := s.value(reflect.ValueOf(n).Elem())
			if !v.IsNil() && !yield(s, v.Interface().(section)) {
				return
			}
		}
	}
}

// Roles lists the node's roles in the order of the file, then router, which is one of routing with
// VRFs of the kernel.
func (n *Node) Roles() []string {
	roles := n.AgentRoles()
	if len(n.Routing.KernelVRFs()) > 0 {
		roles = append(roles, "router")
	}
	return roles
}

// AgentRoles lists the roles that have a folder in agent/.
func (n *Node) AgentRoles() []string { return n.rolesBy("programs", "agent") }

// ProgramRoles lists the roles that eBPF programs carry out.
func (n *Node) ProgramRoles() []string { return n.rolesBy("programs") }

func (n *Node) rolesBy(what ...string) (names []string) {
	for s := range n.sections() {
		if slices.Contains(what, s.tag.Get("role")) {
			names = append(names, s.key)
		}
	}
	return names
}

// knownRoles lists all roles that a node can have.
func knownRoles() []string { return rolesWith("role") }

// ExplainedRoles lists the roles whose programs explain what they do to packets, and says them.
func ExplainedRoles() (names []string, text string) {
	names = rolesWith("packets")
	return names, alternatives(names)
}

func rolesWith(tag string) (names []string) {
	for _, s := range objectOf(reflect.TypeFor[Node](), "", "").settings {
		if s.tag.Get(tag) != "" {
			names = append(names, s.key)
		}
	}
	return names
}

// InterfaceNames are the network interfaces at which the node's roles work, each once.
func (n *Node) InterfaceNames() (names []string) {
	for s, role := range n.sections() {
		if s.tag.Get("role") != "" {
			names = s.object.places(reflect.ValueOf(role).Elem(), names)
		}
	}
	return names
}

// places adds the values of the object's settings that have the tag is:"place".
func (o *object) places(v reflect.Value, names []string) []string {
	for _, s := range o.settings {
		values := []reflect.Value{s.value(v)}
		if s.list {
			list := values[0]
			values = nil
			for i := range list.Len() {
				values = append(values, list.Index(i))
			}
		}
		for _, one := range values {
			switch {
			case s.object != nil && s.pointer && one.IsNil():
			case s.object != nil:
				names = s.object.places(reflect.Indirect(one), names)
			case s.tag.Get("is") == "place" && !slices.Contains(names, one.String()):
				names = append(names, one.String())
			}
		}
	}
	return names
}
