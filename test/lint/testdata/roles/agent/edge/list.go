package edge

import (
	"sextant/agent/host"
	"sextant/agent/strays"
)

// A role knows no more than one other.
var others = []any{host.New, strays.New}
