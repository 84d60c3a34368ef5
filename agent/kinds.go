package agent

import (
	"sextant/agent/api"
	"sextant/agent/cflb"
	"sextant/agent/edge"
	"sextant/agent/flowlets"
	"sextant/agent/headend"
	"sextant/agent/host"
	"sextant/agent/merge"
	"sextant/agent/pathsource"
	"sextant/agent/role"
	"sextant/agent/strays"
	"sextant/agent/subflows"
	"sextant/agent/telemetry"
)

// kinds lists all roles, in the order in which they are shown. It is the one place that does.
func kinds() []role.Kind {
	return []role.Kind{
		role.KindOf(api.Edge, edge.New).CleanedBy(edge.CleanEdge),
		role.KindOf(api.Host, host.New),
		role.KindOf(api.Headend, headend.New).CommittedLate(),
		role.KindOf(api.Merge, merge.New),
		role.KindOf(api.Strays, strays.New).CommittedLate(),
		role.KindOf(api.CFLB, cflb.New),
		role.KindOf(api.PathSource, pathsource.New),
		role.KindOf(api.Subflows, subflows.NewRoom).CleanedBy(subflows.Clean),
		role.KindOf(api.Flowlets, flowlets.New),
		role.KindOf(api.Telemetry, telemetry.New),
	}
}
