// Package srv6 is at the bottom and imports from above.
package srv6

import (
	_ "fixture/lb/pool"
	_ "strings"
)
