package agent

// Nothing but the registry lists all of them.
func (a *Agent) status() (list []string) {
	if a.edge != nil {
		list = append(list, "edge")
	}
	if a.host != nil {
		list = append(list, "host")
	}
	if a.strayRole != nil {
		list = append(list, "strays")
	}
	return list
}
