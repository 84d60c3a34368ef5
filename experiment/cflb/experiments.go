package cflb

import "sextant/experiment"

// All lists the experiments.
func All() []experiment.Experiment {
	return []experiment.Experiment{figure6, figure7, figure8, figure10, figure11}
}
