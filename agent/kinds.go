package agent

import (
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

// kinds lists all roles by their keys in the node file, in the order of the file, in which they are
// shown.
func kinds() []role.Kind {
	return []role.Kind{
		role.KindOf("edge", edge.New).CleanedBy(edge.CleanEdge),
		role.KindOf("host", host.New),
		role.KindOf("headend", headend.New).CommittedLate(),
		role.KindOf("merge", merge.New),
		role.KindOf("strays", strays.New).CommittedLate(),
		role.KindOf("cflb", cflb.New),
		role.KindOf("pathSource", pathsource.New),
		role.KindOf("subflows", subflows.NewRoom).CleanedBy(subflows.Clean),
		role.KindOf("flowlets", flowlets.New),
		role.KindOf("telemetry", telemetry.New),
	}
}
