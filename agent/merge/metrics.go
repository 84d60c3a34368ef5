package merge

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/metrics"
	"sextant/config"
)

var (
	mergePassed = metrics.Description("merge_passed_packets_total",
		"Packets of a protected flow that came first of their copies.", "sid",
		"flows")
	mergeDuplicate = metrics.Description("merge_duplicate_packets_total",
		"Copies of a protected flow that came later, and were dropped.", "sid",
		"flows")
	mergeRogue = metrics.Description("merge_rogue_packets_total",
		"Packets dropped as their number is too far from those remembered.", "sid",
		"flows")
	mergeOldEpoch = metrics.Description("merge_old_epoch_packets_total",
		"Packets dropped as they are of the sender's earlier life.", "sid",
		"flows")
	mergeOutOfOrder = metrics.Description("merge_out_of_order_packets_total",
		"Packets passed that did not follow the one before.", "sid", "flows")
	mergeExpected = metrics.Description("merge_expected_packets_total",
		"Packets that the sender has numbered, as far as one can know.", "sid",
		"flows")
	mergeMissing = metrics.Description("merge_missing_packets",
		"Of the packets expected, those of which no copy has come, or not yet.", "sid",
		"flows")
	mergeResets = metrics.Description("merge_resets_total", "How often all numbers were forgotten.",
		"sid", "flows")
	mergeContended = metrics.Description("merge_contended_packets_total",
		"Packets passed without a look for their copies, as other processors were always ahead.",
		"sid", "flows")
	mergePath = metrics.Description("merge_path_packets_total",
		"Packets that came by a path of a protected flow.", "sid", "flow")
	mergePathFirst = metrics.Description("merge_path_first_packets_total",
		"Of these, those that came before their copies.", "sid", "flow")
	mergePathLost = metrics.Description("merge_path_lost_packets",
		"Packets expected that did not come by this path, or not yet.", "sid", "flow")
	mergePathSilent = metrics.Description("merge_path_silent",
		"Whether nothing comes by this path though packets come by others.", "sid", "flow")
	mergeDelays = metrics.Description("merge_path_delay_packets_total",
		"Packets that came by this path with a timestamp.", "sid", "flow")
	mergeDelay = metrics.Description("merge_path_delay_seconds_total",
		"What the one-way delays of these add up to.", "sid", "flow")
)

// Collect is metrics.Collector.
func (m *Room) Collect(out chan<- prometheus.Metric) {
	metrics.Part(out, string(m.Name), func(ctx context.Context) error {
		flows, err := m.Merge(ctx)
		for _, f := range flows {
			collectMerge(out, f)
		}
		return err
	})
}

func collectMerge(out chan<- prometheus.Metric, f api.MergedFlow) {
	sid, flows := f.SID.String(), config.FormatFlows(f.Flows)
	metrics.Counter(out, mergePassed, f.PassedPackets, sid, flows)
	metrics.Counter(out, mergeDuplicate, f.DuplicatePackets, sid, flows)
	metrics.Counter(out, mergeRogue, f.RoguePackets, sid, flows)
	metrics.Counter(out, mergeOldEpoch, f.OldEpochPackets, sid, flows)
	metrics.Counter(out, mergeOutOfOrder, f.OutOfOrderPackets, sid, flows)
	metrics.Counter(out, mergeExpected, f.ExpectedPackets, sid, flows)
	metrics.Counter(out, mergeResets, f.Resets, sid, flows)
	metrics.Counter(out, mergeContended, f.ContendedPackets, sid, flows)
	metrics.Gauge(out, mergeMissing, float64(f.MissingPackets), sid, flows)
	for _, p := range f.Paths {
		flow := config.FormatFlows([]uint32{p.Flow})
		metrics.Counter(out, mergePath, p.Packets, sid, flow)
		metrics.Counter(out, mergePathFirst, p.FirstPackets, sid, flow)
		metrics.Gauge(out, mergePathLost, float64(p.LostPackets), sid, flow)
		metrics.Gauge(out, mergePathSilent, metrics.OneIf(p.Silent), sid, flow)
		metrics.Counter(out, mergeDelays, p.DelayPackets, sid, flow)
		out <- prometheus.MustNewConstMetric(mergeDelay, prometheus.CounterValue, p.DelaySumSeconds,
			sid, flow)
	}
}
