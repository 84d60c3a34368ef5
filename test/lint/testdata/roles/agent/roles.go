package agent

// The registry names all roles.
func kinds() []kind {
	return []kind{
		kindOf("edge", newEdgeRoom),
		kindOf("host", newHostRoom).late(),
		kindOf("strays", newStraysRoom),
	}
}
