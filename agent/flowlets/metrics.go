package flowlets

import (
	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
)

// Count is role.Switchable.
func (r *Role) Count(c *api.Counters) error {
	counted, err := r.Program.Counters()
	if err != nil {
		return err
	}
	c.Flowlets = &api.FlowletCounters{Sent: counted.Sent, TooLong: counted.TooLong,
		Pathless: counted.Pathless, Paths: []api.FlowletPath{}}
	for i := range r.Groups {
		paths, err := r.pathsOf(i)
		if err != nil {
			return err
		}
		c.Flowlets.Paths = append(c.Flowlets.Paths, paths...)
	}
	return nil
}

// pathsOf is what is known of a group's paths.
func (r *Role) pathsOf(group int) (list []api.FlowletPath, err error) {
	for j, p := range r.Groups[group].Paths {
		t, err := r.Program.Traffic(p.SID)
		if err != nil {
			return nil, err
		}
		list = append(list, api.FlowletPath{
			Group: r.config.Groups[group].Name, Name: r.config.Groups[group].Paths[j].Name,
			SID: p.SID, Up: !r.room.lost[p.SID], Packets: t.Packets, Bytes: t.Bytes,
			Moves: t.Moves, Left: t.Left, UnderWayBytes: t.UnderWay,
			RoundTripMs:  float64(t.RoundTrip.Nanoseconds()) / 1e6,
			SilentMs:     float64(t.Silent.Nanoseconds()) / 1e6,
			LostPermille: t.Lost * 1000, Interface: r.room.ways[p.SID].Interface,
		})
	}
	return list, nil
}

var (
	flowletPackets = metrics.Description("flowlets_packets_total",
		"Packets of flows with several paths, by what became of them: sent over one, or by the "+
			"kernel's route as they are too long (too_long) or all paths are down (pathless).",
		"outcome")
	flowletPathPackets = metrics.Description("flowlets_path_packets_total",
		"Packets that were sent over a path.", "group", "path")
	flowletPathBytes = metrics.Description("flowlets_path_bytes_total",
		"Bytes that were sent over a path, without outer headers.", "group", "path")
	flowletMoves = metrics.Description("flowlets_moves_total",
		"Flows that came to a path from another one (came), or left it as nothing was heard "+
			"(left).",
		"group", "path", "move")
	flowletUp = metrics.Description("flowlets_path_up",
		"Whether probes of a path come back; 1 where none are sent.", "group", "path")
	flowletUnderWay = metrics.Description("flowlets_under_way_bytes",
		"Bytes that were sent over a path and not acknowledged.", "group", "path")
	flowletRoundTrip = metrics.Description("flowlets_round_trip_seconds",
		"Smoothed round trip of a path by acknowledgements; 0: not measured.", "group", "path")
	flowletLost = metrics.Description("flowlets_lost_ratio",
		"Smoothed share of segments that were sent again.", "group", "path")
)

// Collect adds what was sent over paths.
func (r *Room) Collect(out chan<- prometheus.Metric) {
	c := r.Counters(out).Flowlets
	if c == nil {
		return
	}
	metrics.Counter(out, flowletPackets, c.Sent, "sent")
	metrics.Counter(out, flowletPackets, c.TooLong, "too_long")
	metrics.Counter(out, flowletPackets, c.Pathless, "pathless")
	for _, p := range c.Paths {
		metrics.Counter(out, flowletPathPackets, p.Packets, p.Group, p.Name)
		metrics.Counter(out, flowletPathBytes, p.Bytes, p.Group, p.Name)
		metrics.Counter(out, flowletMoves, p.Moves, p.Group, p.Name, "came")
		metrics.Counter(out, flowletMoves, p.Left, p.Group, p.Name, "left")
		up := 0.0
		if p.Up {
			up = 1
		}
		metrics.Gauge(out, flowletUp, up, p.Group, p.Name)
		metrics.Gauge(out, flowletUnderWay, float64(p.UnderWayBytes), p.Group, p.Name)
		metrics.Gauge(out, flowletRoundTrip, p.RoundTripMs/1000, p.Group, p.Name)
		metrics.Gauge(out, flowletLost, p.LostPermille/1000, p.Group, p.Name)
	}
}
