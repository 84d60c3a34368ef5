// Package flow is on floor 0, and looks at the world.
package flow

import (
	"fmt"
	"math/rand/v2"
	"os"
	clock "time"
)

func impure() clock.Duration {
	now := clock.Now
	go fmt.Println(rand.IntN(6), rand.New(rand.NewPCG(1, 2)).IntN(6), now())
	_, _ = os.ReadFile("flow.yaml")
	return clock.Second
}

// parse panics on what it was not made for.
func parse(ok bool) {
	if !ok {
		panic("as the comment says")
	}
}

func surprise() {
	panic("as no comment says")
}
