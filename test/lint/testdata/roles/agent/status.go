package agent

import (
	"sextant/agent/edge"
	"sextant/agent/host"
	"sextant/agent/strays"
)

// Nothing but the registry lists all of them.
func (a *Agent) status() (list []string) {
	for _, room := range a.rooms {
		switch room.(type) {
		case *edge.Room:
			list = append(list, "edge")
		case *host.Room:
			list = append(list, "host")
		case *strays.Room:
			list = append(list, "strays")
		}
	}
	return list
}
