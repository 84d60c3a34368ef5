package churn

import (
	"context"
	"fmt"
	"time"

	"sextant/experiment"
)

var promise = experiment.Experiment{
	Name: "offer-churn", Title: "A hundred thousand downloads while servers leave and return every second",
	Source: "none; the paper's worst case, with more and longer connections",
	Shows: "Many clients download small files slowly, so that each meets several changes, until policy offer has served a hundred " +
		"thousand. None may fail, and no server may send a reset.",
	Lasts: "fifteen minutes",
	Run:   runPromise,
}

// Slow downloads: many share the links, so a small file takes some seconds.
const (
	promised     = 100_000
	promiseBytes = 60_000
	promiseMany  = 600
	promiseStay  = 3                // so five are away at most: as many past owners as a chain has beside one candidate
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
				return a.download(ctx, offer, downloads{bytes: promiseBytes, workers: promiseMany, duration: turn, timeout: patience,
					interval: time.Second, seed: uint64(part), stay: promiseStay, progress: follow(r, "%d of %d", whole.Requests, goal)})
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
	r.Note("At most five servers are away at a time: what offer promises for one candidate and chains of six (docs/continuity.md).")
	r.Compare(experiment.Comparison{
		What: "offer: failed downloads, a change every second", Source: "-", Ours: ofRequests(whole), Says: says(offer, whole),
	})
	r.Table(experiment.Table{
		Name: "promise", Title: "Downloads",
		Columns: []string{"Downloads", "Failed", "Changes", "Resets sent by servers", "Mean time, s", "Longest, s"},
		Rows: [][]string{cells(whole.Requests, whole.Failed, whole.Changes, whole.Resets,
			slow/1000/float64(max(1, whole.Requests-whole.Failed)), met/1000)},
	})
	return nil
}
