package doctor

import (
	"net/netip"
	"slices"

	"sextant/config"
	"sextant/linux/facts"
)

// face is an interface of the node file, with what its role expects of it.
type face struct {
	name    string
	role    string
	mode    config.Mode
	domain  bool // it leads to the SR domain
	clients bool // packets come from clients, or for policies of a head-end
	plain   bool // no XDP program of the role runs on it
	sends   bool // programs send frames by it
}

// faces are the interfaces of the node file, each once per role.
func faces(n *config.Node) []face {
	var list []face
	if n.Edge != nil {
		for _, i := range n.Edge.Interfaces {
			list = append(list, face{
				name: i.Name, role: "edge", mode: i.Mode, sends: true,
				domain: i.Side != config.External, clients: i.Side != config.Internal,
			})
		}
	}
	if n.Host != nil {
		for _, i := range n.Host.Interfaces {
			list = append(list, face{name: i.Name, role: "host", mode: i.Mode, domain: true,
				sends: true})
		}
	}
	if n.Headend != nil {
		list = append(list, headendFaces(n.Headend)...)
	}
	if n.Merge != nil {
		for _, i := range n.Merge.Interfaces {
			list = append(list, face{name: i.Name, role: "merge", mode: i.Mode, domain: true})
		}
	}
	if n.Strays != nil {
		for _, i := range n.Strays.Interfaces {
			list = append(list, face{name: i.Name, role: "strays", mode: i.Mode, domain: true})
		}
	}
	if n.CFLB != nil {
		for _, i := range n.CFLB.Interfaces {
			list = append(list, face{name: i.Name, role: "cflb", mode: i.Mode,
				plain: n.CFLB.Forwarding == config.ByKernel, sends: true})
		}
	}
	if n.Telemetry != nil {
		for _, name := range n.Telemetry.Interfaces() {
			list = append(list, face{name: name, role: "telemetry", plain: true})
		}
	}
	return list
}

func headendFaces(h *config.Headend) (list []face) {
	for _, i := range h.Interfaces {
		list = append(list, face{
			name: i.Name, role: "headend", mode: i.Mode, domain: i.Side != config.External,
			clients: i.Side != config.Internal, sends: true,
		})
	}
	for _, name := range h.Uplinks {
		list = append(list, face{name: name, role: "headend", domain: true, plain: true,
			sends: true})
	}
	for _, name := range h.Local {
		list = append(list, face{name: name, role: "headend", plain: true})
	}
	return list
}

// Interfaces lists the names of the interfaces about which facts are wanted.
func Interfaces(n *config.Node) (names []string) {
	for _, at := range faces(n) {
		if !slices.Contains(names, at.name) {
			names = append(names, at.name)
		}
	}
	return names
}

// Destinations lists the SIDs to which facts about the way are wanted: those of an edge's backends,
// and where the segment lists of a head-end lead first.
func Destinations(n *config.Node) (sids []netip.Addr) {
	for _, to := range destinations(n) {
		sids = append(sids, to.sid)
	}
	return sids
}

// eachInterface visits those of the node file that exist.
func eachInterface(n *config.Node, f *facts.Facts,
	visit func(face, facts.Interface) []Finding) []Finding {
	var list []Finding
	for _, at := range faces(n) {
		if i, exists := f.Interfaces[at.name]; exists {
			list = append(list, visit(at, i)...)
		}
	}
	return list
}
