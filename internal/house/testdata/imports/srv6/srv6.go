// Package srv6 is at the bottom and imports from above.
package srv6

import (
	_ "fixture/flow"
	_ "fixture/pool"
	_ "strings"
)
