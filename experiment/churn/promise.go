package churn

import (
	"context"
	"fmt"
	"time"

	"sextant/experiment"
)

var promise = experiment.Experiment{
	Name: "offer-churn", Title: "A hundred thousand downloads while servers leave and return " +
		"every second",
	Source: "none; the paper's worst case, with more and longer connections",
	Shows: "Many clients download small files slowly, so that each meets several changes, until " +
		"policy offer has served a hundred " +
		"thousand. None may fail, and no server may send a reset.",
	Paper: experiment.VRFShadowing, Needs: []string{"root"}, Lasts: "10 min",
	Run: runPromise,
}

// Slow downloads: many share the links, so a small file takes some seconds.
const (
	promised     = 100_000
	promiseBytes = 60_000
	promiseMany  = 600
	promiseTurn  = 30 * time.Second // a part that is kept when the run is interrupted
)

func runPromise(ctx context.Context, r *experiment.Recorder) error {
	goal, turn := promised, promiseTurn
	if r.Quick() {
		goal, turn = 1, 15*time.Second
	}
	var whole outcome
	var slow float64 // sum of the times
	met := 0.0
	err := within(ctx, setting{name: "offer-churn"}, func(ctx context.Context, a *arena) error {
		for part := 0; whole.Requests < goal; part++ {
			o, err := experiment.Part(r, fmt.Sprintf("part-%d", part), func() (outcome, error) {
				return a.download(ctx, offer, downloads{bytes: promiseBytes, workers: promiseMany,
					duration: turn, timeout: patience,
					interval: time.Second, seed: uint64(part),
					progress: follow(r, "%d of %d", whole.Requests, goal)})
			})
			if err != nil {
				return err
			}
			for _, ms := range o.Ms {
				slow += ms
				met = max(met, ms)
			}
			whole = sum([]outcome{whole, o})
		}
		return nil
	})
	if err != nil {
		return err
	}
	scaleNote(r)
	r.Note("Up to seven of the eight servers are away at a time. With chains of six a new owner " +
		"waits then for room in a bucket's chain " +
		"(docs/explanation/pcc.md).")
	r.Compare(experiment.Comparison{
		What: "offer: failed downloads, a change every second", Source: "-",
		Ours: ofRequests(whole), Says: says(offer, whole),
	})
	r.Table(experiment.Table{
		Name: "promise", Title: "Downloads",
		Columns: []string{"Downloads", "Failed", "Changes", "How they failed",
			"Resets sent by servers", "Given up by servers",
			"Mean time, s", "Longest, s"},
		Rows: [][]string{cells(whole.Requests, whole.Failed, whole.Changes, whole.Failures,
			whole.Resets, whole.GivenUp,
			slow/1000/float64(max(1, whole.Requests-whole.Failed)), met/1000)},
	})
	if len(whole.Losses) > 0 {
		r.Table(lossTable(whole.Losses))
	}
	return nil
}

// lossTable tells of each loss what is needed to find it in captured packets.
func lossTable(losses []loss) experiment.Table {
	t := experiment.Table{
		Name: "losses", Title: "Failed downloads, the first of each part",
		Columns: []string{"At second", "After ms", "How", "Error"},
	}
	for _, l := range losses {
		t.Rows = append(t.Rows, cells(l.Second, l.Ms, l.Failure, l.Error))
	}
	return t
}
