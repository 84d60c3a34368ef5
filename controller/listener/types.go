package listener

import (
	"net/netip"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/controller/collector"
	"sextant/packet/flow"
)

// Link is the way out of a node, and what reports said about it.
type Link struct {
	Node           uint64  `json:"node"`
	Egress         *uint32 `json:"egress"` // null: the node does not tell
	Samples        uint64  `json:"samples"`
	Drops          uint64  `json:"drops"` // packets reported as dropped
	AgeMs          int64   `json:"ageMs"` // since the last report
	QueueBytes     *Values `json:"queueBytes,omitempty"`
	LatencyNs      *Values `json:"latencyNs,omitempty"`
	UtilizationPPM *Values `json:"utilizationPpm,omitempty"`
}

// Values is a histogram in short. Quantiles are at most 25 % above the true ones.
type Values struct {
	Last  uint32 `json:"last"`
	P50   uint32 `json:"p50"`
	P99   uint32 `json:"p99"`
	Max   uint32 `json:"max"`
	Count uint64 `json:"count"`
}

// Exporter is what sends reports.
type Exporter struct {
	Address   netip.Addr `json:"address"`
	Node      uint32     `json:"node"`
	Hardware  uint8      `json:"hardware"`
	AgeMs     int64      `json:"ageMs"`    // since the last datagram
	Received  uint64     `json:"received"` // datagrams
	Lost      uint64     `json:"lost"`
	Late      uint64     `json:"late"` // behind one that was sent after it
	Duplicate uint64     `json:"duplicate"`
	Restarts  uint64     `json:"restarts"` // of the sequence numbers
}

// Path is what the last reported packet of a flow met.
type Path struct {
	Flow    api.Flow  `json:"flow"`
	AgeMs   int64     `json:"ageMs"`
	Packets uint64    `json:"packets"` // that were reported
	Hops    []api.Hop `json:"hops"`
}

// Report is one report, as a line of JSON. Exporter, node and hardware are those of source
// "report".
type Report struct {
	Time      time.Time  `json:"time"`   // when it came
	Source    string     `json:"source"` // report, event of the kernel, or packet
	Exporter  netip.Addr `json:"exporter"`
	Node      uint32     `json:"node"`
	Hardware  uint8      `json:"hardware"`
	Flow      *api.Flow  `json:"flow"`
	Dropped   bool       `json:"dropped"`
	Congested bool       `json:"congested"`
	IdleGapUs *uint32    `json:"idleGapUs,omitempty"` // the flow paused for so long
	Hops      []api.Hop  `json:"hops"`
}

func known[T any](is bool, v T) *T {
	if !is {
		return nil
	}
	return &v
}

const unknownInterface = ^uint32(0)

func values(h *collector.Histogram) *Values {
	if h.Count == 0 {
		return nil
	}
	return &Values{Last: h.Last, P50: h.Quantile(0.5), P99: h.Quantile(0.99), Max: h.Max,
		Count: h.Count}
}

func ageMs(nowNS, seenNS int64) int64 { return (nowNS - seenNS) / int64(time.Millisecond) }

func newLink(l collector.Link, s *collector.LinkState, age int64) Link {
	return Link{Node: l.Node, Egress: known(l.Egress != unknownInterface, l.Egress),
		Samples: s.Samples, Drops: s.Drops, AgeMs: age, QueueBytes: values(&s.QueueBytes),
		LatencyNs: values(&s.LatencyNS), UtilizationPPM: values(&s.UtilizationPPM)}
}

var protocols = map[uint8]config.Protocol{6: config.TCP, 17: config.UDP}

// flowOf is a flow for people; nil if its protocol has no ports.
func flowOf(t flow.Tuple) *api.Flow {
	protocol, ok := protocols[t.Protocol]
	if !ok {
		return nil
	}
	return &api.Flow{Source: netip.AddrPortFrom(t.Src, t.SrcPort),
		Destination: netip.AddrPortFrom(t.Dst, t.DstPort), Protocol: protocol}
}

// tupleOf is the reverse of flowOf.
func tupleOf(f api.Flow) flow.Tuple {
	t := flow.Tuple{Src: f.Source.Addr(), SrcPort: f.Source.Port(), Dst: f.Destination.Addr(),
		DstPort: f.Destination.Port(), Protocol: 6}
	if f.Protocol == config.UDP {
		t.Protocol = 17
	}
	return t
}

func newReport(r *collector.Report) Report {
	out := Report{Time: time.Unix(0, r.TimeNS).UTC(), Source: r.Source.String(),
		Exporter: r.Exporter.Address,
		Node:     r.Exporter.Node, Hardware: r.Exporter.Hardware, Dropped: r.Dropped,
		Congested: r.Congested, Hops: api.HopsOf(r.Samples)}
	if r.HasFlow {
		out.Flow = flowOf(r.Flow)
	}
	if r.Congestion != nil {
		us := r.Congestion.IdleGapUS // the report is read into again before this one is written
		out.IdleGapUs = &us
	}
	return out
}
