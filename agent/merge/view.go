package merge

import (
	"context"
	"time"

	"sextant/agent/api"
	"sextant/agent/role"
	"sextant/datapath"
	"sextant/te/frer"
)

// Merge is what api.Agent says.
func (m *Room) Merge(ctx context.Context) ([]api.MergedFlow, error) {
	return role.Ask(ctx, &m.Loop, m.mergeViews)
}

func (m *Room) mergeViews() ([]api.MergedFlow, error) {
	var views []api.MergedFlow
	if m.Runs == nil {
		return nil, nil
	}
	for _, i := range m.Runs.Instances {
		stats, err := m.Runs.Program.Stats(i.Index, len(i.Flows))
		if err != nil {
			return nil, err
		}
		w := m.Runs.watches[i.Index]
		if w == nil {
			w = &mergeWatch{}
		}
		v := api.MergedFlow{
			SID: i.Prefix, Flows: i.Instance.Flows, Copies: i.Copies, Form: i.Form,
			Mark:           uint32(i.Mark),
			HistoryPackets: i.Instance.Rules.History(),
			PassedPackets:  stats.Passed, DuplicatePackets: stats.Duplicate,
			RoguePackets: stats.Rogue, OldEpochPackets: stats.OldEpoch,
			OutOfOrderPackets: stats.OutOfOrder, ExpectedPackets: stats.Expected,
			MissingPackets: missing(stats.Expected, stats.Passed),
			Resets:         stats.Resets, ContendedPackets: stats.Contended,
		}
		for n, p := range stats.Paths {
			path := pathView(i.Instance.Flows[n], p, stats.Expected)
			path.Silent = finds(w.findings, frer.Finding{Path: n})
			w.addRecent(&path, n, stats)
			v.Paths = append(v.Paths, path)
		}
		views = append(views, v)
	}
	return views, nil
}

// missing is what did not come of what was expected. Counters are not read in one moment, and none
// runs backwards.
func missing(expected, came uint64) uint64 { return max(expected, came) - came }

func pathView(flow uint32, p datapath.PathStats, expected uint64) api.MergedPath {
	v := api.MergedPath{
		Flow: flow, Packets: p.Packets, Bytes: p.Bytes, FirstPackets: p.First,
		LostPackets:  missing(expected, p.Packets),
		DelayPackets: p.Delays, DelaySumSeconds: p.DelaySum.Seconds(),
	}
	if p.Silent >= 0 {
		v.SilentSeconds = new(p.Silent.Seconds())
	}
	if p.Delays > 0 {
		v.DelaySeconds = new((p.DelaySum / time.Duration(p.Delays)).Seconds())
		v.DelayLeastSeconds = new(p.DelayLeast.Seconds())
		v.DelayMostSeconds = new(p.DelayMost.Seconds())
	}
	return v
}

// addRecent adds loss and delay of the latest seconds.
func (w *mergeWatch) addRecent(v *api.MergedPath, n int, now datapath.InstanceStats) {
	if len(w.recent) == 0 || n >= len(w.recent[0].stats.Paths) {
		return
	}
	before := w.recent[0].stats
	if now.Expected > before.Expected {
		came := now.Paths[n].Packets - before.Paths[n].Packets
		loss := float64(missing(now.Expected-before.Expected,
			came)) / float64(now.Expected-before.Expected)
		v.RecentLoss = &loss
	}
	if delays := now.Paths[n].Delays - before.Paths[n].Delays; delays > 0 &&
		now.Paths[n].Delays > before.Paths[n].Delays {
		took := now.Paths[n].DelaySum - before.Paths[n].DelaySum
		v.RecentDelaySeconds = new((took / time.Duration(delays)).Seconds())
	}
}
