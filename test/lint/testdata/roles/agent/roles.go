package agent

// The registry names all roles.
func kinds() []kind {
	return []kind{
		kindOf("edge", func(a *Agent) **edgeRole { return &a.edge }),
		kindOf("host", func(a *Agent) **hostRole { return &a.host }).late(),
		kindOf("strays", func(a *Agent) **straysRole { return &a.strayRole }),
	}
}
