// Package pool imports down, and up.
package pool

import (
	_ "fixture/packet/flow"
	_ "fixture/sim/hunting"
)
