package cflb

import "sextant/experiment"

// All lists the experiments.
func All() []experiment.Experiment {
	return []experiment.Experiment{figure10, figure11}
}
