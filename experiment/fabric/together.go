package fabric

import (
	"context"
	"fmt"

	"sextant/experiment"
	"sextant/sim/packet/scenario"
	"sextant/te/topology"
)

// together does work on as many processors as the recorder allows.
func together(r *experiment.Recorder, work []func() error) error {
	return experiment.SideBySide(context.Background(), r.Workers(), len(work),
		func(_ context.Context, i int) error { return work[i]() },
		func(done int) { r.Progress("%d of %d settings", done, len(work)) })
}

// play makes the runs of a scenario with one scheme and the first seeds.
func play(ctx context.Context, text []byte, scheme string, seeds int) ([]*scenario.Result, error) {
	s, err := scenario.Parse(text, nil)
	if err != nil {
		return nil, err
	}
	g, err := s.Topology.Graph(func(file string) (*topology.Graph, error) {
		return nil, fmt.Errorf("topology file %s: experiments generate theirs", file)
	})
	if err != nil {
		return nil, err
	}
	var results []*scenario.Result
	for seed := range seeds {
		result, err := s.Run(g, scheme, uint64(seed+1), func(float64) error { return ctx.Err() })
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}
