package subflows

import (
	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
)

// Count is role.Switchable.
func (r *Role) Count(c *api.Counters) error {
	n := &r.Program.counted
	c.Subflows = &api.SubflowCounters{
		Watched: int(n.watched.Load()), Managed: int(n.managed.Load()), Left: int(n.left.Load()),
		Open: int(n.here.Load()), Opened: n.opened.Load(), Failed: n.failed.Load(),
		Stalled: n.stalled.Load(), Surplus: n.surplus.Load(), Moved: n.moved.Load()}
	return nil
}

var (
	connectionCount = metrics.Description("subflows_connections",
		"MPTCP connections that this host has opened: they have subflows by their rule (managed), "+
			"have not carried enough (watched), or are another path manager's or no rule's (left).",
		"state")
	openCount = metrics.Description("subflows_open",
		"Subflows that were opened beside the first ones of their connections.")
	subflowCount = metrics.Description("subflows_total",
		"Subflows by what became of them: opened, not opened by the kernel (failed), and ended "+
			"here as they got no answers (stalled), no rule wanted them any more (surplus), or "+
			"the controller gave them another path (moved).",
		"outcome")
)

// Collect adds what became of subflows.
func (r *Room) Collect(out chan<- prometheus.Metric) {
	c := r.Counters(out).Subflows
	if c == nil {
		return
	}
	metrics.Gauge(out, connectionCount, float64(c.Watched), "watched")
	metrics.Gauge(out, connectionCount, float64(c.Managed), "managed")
	metrics.Gauge(out, connectionCount, float64(c.Left), "left")
	metrics.Gauge(out, openCount, float64(c.Open))
	metrics.Counter(out, subflowCount, c.Opened, "opened")
	metrics.Counter(out, subflowCount, c.Failed, "failed")
	metrics.Counter(out, subflowCount, c.Stalled, "stalled")
	metrics.Counter(out, subflowCount, c.Surplus, "surplus")
	metrics.Counter(out, subflowCount, c.Moved, "moved")
}
