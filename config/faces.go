package config

import "sextant/packet/lists"

// Face is an interface of a node, with what one of its roles expects of it.
type Face struct {
	Name    string
	Role    string // its key
	Mode    Mode
	Domain  bool // it leads to the SR domain
	Clients bool // packets come from clients, or for policies of a head-end
	Plain   bool // no XDP program of the role runs on it
	Sends   bool // programs send frames by it
}

// Faces are the interfaces of which roles expect something, each once per role: what the method
// faces of the role's type lists.
func (n *Node) Faces() (list []Face) {
	for s, role := range n.sections() {
		facing, expects := role.(interface{ faces() []Face })
		if !expects || s.tag.Get("role") == "" {
			continue
		}
		for _, at := range facing.faces() {
			at.Role = s.key
			list = append(list, at)
		}
	}
	return list
}

// facesOf are interfaces of the node file that are like one, but for name, mode and side.
func facesOf(list []XDPInterface, like Face) []Face {
	return lists.Map(list, func(i XDPInterface) Face {
		at := like
		at.Name, at.Mode = i.Name, i.Mode
		if i.Side != "" {
			at.Domain, at.Clients = i.Side != External, i.Side != Internal
		}
		return at
	})
}

// plainFaces are interfaces without an XDP program, like one but for their names.
func plainFaces(names []string, like Face) []Face {
	return lists.Map(names, func(name string) Face {
		at := like
		at.Name, at.Plain = name, true
		return at
	})
}
