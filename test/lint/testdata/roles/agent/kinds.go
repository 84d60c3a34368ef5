package agent

import (
	"sextant/agent/edge"
	"sextant/agent/host"
	"sextant/agent/role"
	"sextant/agent/strays"
)

// The registry names all roles.
func kinds() []role.Kind {
	return []role.Kind{
		role.KindOf("edge", edge.New),
		role.KindOf("host", host.New).Late(),
		role.KindOf("strays", strays.New),
	}
}
