package controller

import (
	"time"

	"sextant/packet/flow"
	"sextant/te/reroute"
)

const (
	repeatInterval = 10 * time.Second
	repeatsMost    = 1 << 16 // flows
)

// repeats is what the journal has said of flows for which there was no choice: that a flow is
// pinned, or has one path only, is so at each of its reports, of which there can be a hundred in a
// second, and would take the place of decisions that say more.
type repeats map[flow.Tuple]said

type said struct {
	verdict reroute.Verdict
	at      time.Duration
}

// again says whether a decision is the one that was said of its flow a short time ago.
func (r repeats) again(d *reroute.Decision) bool {
	switch d.Verdict {
	case reroute.OnlyPath, reroute.NoPath, reroute.Pinned, reroute.NoPolicy:
	default:
		delete(r, d.Flow)
		return false
	}
	last, known := r[d.Flow]
	if known && last.verdict == d.Verdict && d.At-last.at < repeatInterval {
		return true
	}
	if !known && len(r) >= repeatsMost {
		clear(r)
	}
	r[d.Flow] = said{d.Verdict, d.At}
	return false
}
