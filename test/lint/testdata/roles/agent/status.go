package agent

// Nothing but the registry lists all of them.
func (a *Agent) status() (list []string) {
	for _, room := range a.rooms {
		switch room.(type) {
		case *edgeRoom:
			list = append(list, "edge")
		case *hostRoom:
			list = append(list, "host")
		case *straysRoom:
			list = append(list, "strays")
		}
	}
	return list
}
