package churn

import (
	"context"
	"math/rand/v2"
	"time"
)

// toggle lets one server of up, taken at random, leave or return. The last one stays.
func toggle(random *rand.Rand, up []bool) {
	left := 0
	for _, is := range up {
		if is {
			left++
		}
	}
	i := random.IntN(len(up))
	for up[i] && left == 1 {
		i = random.IntN(len(up))
	}
	up[i] = !up[i]
}

// flap toggles a server at every interval as long as downloads begin, and returns how often: as
// often in each run, however busy the machine is, unless ctx ends.
func flap(ctx context.Context, m members, d downloads) (changes int, err error) {
	random := rand.New(rand.NewPCG(d.seed, 0))
	up := all(servers)
	ticker := time.NewTicker(d.interval)
	defer ticker.Stop()
	for range int((d.duration - d.interval/2) / d.interval) {
		select {
		case <-ctx.Done():
			return changes, nil
		case <-ticker.C:
		}
		toggle(random, up)
		if err := m.set(context.WithoutCancel(ctx), up); err != nil {
			return changes, err
		}
		changes++
	}
	return changes, nil
}
