package agent

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/config"
)

var (
	mergePassed = description("merge_passed_packets_total",
		"Packets of a protected flow that came first of their copies.", "sid",
		"flows")
	mergeDuplicate = description("merge_duplicate_packets_total",
		"Copies of a protected flow that came later, and were dropped.", "sid",
		"flows")
	mergeRogue = description("merge_rogue_packets_total",
		"Packets dropped as their number is too far from those remembered.", "sid",
		"flows")
	mergeOldEpoch = description("merge_old_epoch_packets_total",
		"Packets dropped as they are of the sender's earlier life.", "sid",
		"flows")
	mergeOutOfOrder = description("merge_out_of_order_packets_total",
		"Packets passed that did not follow the one before.", "sid", "flows")
	mergeExpected = description("merge_expected_packets_total",
		"Packets that the sender has numbered, as far as one can know.", "sid",
		"flows")
	mergeMissing = description("merge_missing_packets",
		"Of the packets expected, those of which no copy has come, or not yet.", "sid",
		"flows")
	mergeResets = description("merge_resets_total", "How often all numbers were forgotten.",
		"sid", "flows")
	mergePath = description("merge_path_packets_total",
		"Packets that came by a path of a protected flow.", "sid", "flow")
	mergePathFirst = description("merge_path_first_packets_total",
		"Of these, those that came before their copies.", "sid", "flow")
	mergePathLost = description("merge_path_lost_packets",
		"Packets expected that did not come by this path, or not yet.", "sid", "flow")
	mergePathSilent = description("merge_path_silent",
		"Whether nothing comes by this path though packets come by others.", "sid", "flow")
	mergeDelays = description("merge_path_delay_packets_total",
		"Packets that came by this path with a timestamp.", "sid", "flow")
	mergeDelay = description("merge_path_delay_seconds_total",
		"What the one-way delays of these add up to.", "sid", "flow")
)

func (m *mergeRoom) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	flows, err := m.Merge(ctx)
	if err != nil {
		return
	}
	for _, f := range flows {
		collectMerge(out, f)
	}
}

func collectMerge(out chan<- prometheus.Metric, f api.MergedFlow) {
	sid, flows := f.SID.String(), config.FormatFlows(f.Flows)
	counter(out, mergePassed, f.PassedPackets, sid, flows)
	counter(out, mergeDuplicate, f.DuplicatePackets, sid, flows)
	counter(out, mergeRogue, f.RoguePackets, sid, flows)
	counter(out, mergeOldEpoch, f.OldEpochPackets, sid, flows)
	counter(out, mergeOutOfOrder, f.OutOfOrderPackets, sid, flows)
	counter(out, mergeExpected, f.ExpectedPackets, sid, flows)
	counter(out, mergeResets, f.Resets, sid, flows)
	gauge(out, mergeMissing, float64(f.MissingPackets), sid, flows)
	for _, p := range f.Paths {
		flow := config.FormatFlows([]uint32{p.Flow})
		counter(out, mergePath, p.Packets, sid, flow)
		counter(out, mergePathFirst, p.FirstPackets, sid, flow)
		gauge(out, mergePathLost, float64(p.LostPackets), sid, flow)
		gauge(out, mergePathSilent, oneIf(p.Silent), sid, flow)
		counter(out, mergeDelays, p.DelayPackets, sid, flow)
		out <- prometheus.MustNewConstMetric(mergeDelay, prometheus.CounterValue, p.DelaySumSeconds,
			sid, flow)
	}
}
