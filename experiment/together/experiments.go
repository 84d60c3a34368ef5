package together

import "sextant/experiment"

// All lists the experiments.
func All() []experiment.Experiment {
	return []experiment.Experiment{fabric, fabricInLab, twoSites, lossyPaths}
}
