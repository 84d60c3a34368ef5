package agent

type edgeRole struct{}

// A role may work with another one.
func (e *edgeRole) beside(a *Agent) bool { return a.host != nil }
