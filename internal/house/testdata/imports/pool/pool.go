// Package pool imports its neighbour.
package pool

import (
	_ "fixture/accept"
	_ "fixture/flow"
)
