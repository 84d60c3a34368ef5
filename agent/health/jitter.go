package health

import (
	"math/rand/v2"
	"time"
)

// Wait returns the time between the checks n and n+1 of a backend: the interval, earlier or later
// by at most the permille of it. The seed chooses one of many equally good sequences; check -1 is
// the start, which the first check follows by at most that share.
func Wait(interval time.Duration, jitterPermille int, seed uint64, n int) time.Duration {
	most := int64(interval) / 1000 * int64(jitterPermille)
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	if n < 0 {
		return time.Duration(random.Int64N(most + 1))
	}
	return max(interval-time.Duration(most)+time.Duration(random.Int64N(2*most+1)), interval/10)
}
