package churn

import (
	"fmt"
	"time"

	"sextant/experiment"
)

// source is what all experiments repeat.
const source = "R. Nakamura, K. Ebisawa, H. Hayashi, T. Fujiwara, T. Okuzawa, Exploiting SRv6 " +
	"for stateless and " +
	"per-connection-consistent load balancing"

// Sizes of the paper's files, a 40th of them, as the links of the lab are a 40th as fast.
const (
	scale    = 40
	small    = 5_000_000 / scale
	large    = 10_000_000 / scale
	parallel = 64 // downloads at a time, as the paper's
)

// patience is how long a download may take: as long as the paper's client waits.
const patience = 30 * time.Second

// All lists the experiments.
func All() []experiment.Experiment {
	return []experiment.Experiment{figure8, figures9To12, figure13, figure14, promise}
}

// scaleNote says how the lab differs from the paper's machines.
func scaleNote(r *experiment.Recorder) {
	r.Note("Links of servers have 25 Mbit/s instead of 1 Gbit/s, and files a 40th of their size, "+
		"so that downloads take as long as "+
		"the paper's. %s", legend)
}

// percent writes a share.
func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// ofRequests writes failures as the paper does.
func ofRequests(o outcome) string {
	return fmt.Sprintf("%s (%d of %d)", percent(o.rate()), o.Failed, o.Requests)
}
