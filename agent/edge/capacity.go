package edge

import (
	"sextant/config"
	"sextant/datapath"
)

// CapacityOf is for how much the program of an edge has room at least, and whether some packets are
// led over SIDs.
func CapacityOf(e *config.Edge) (c datapath.Capacity, paths bool) {
	backends, led := 0, 0
	for i := range e.Services {
		s := &e.Services[i]
		if backends += len(s.Backends); s.HasPaths() {
			led, paths = led+len(s.Backends), true
		}
	}
	return datapath.CapacityFor(len(e.Services), backends, led), paths
}

// ledBackends is how many backends packets may be led to, also those that were learned.
func (e *Role) ledBackends() (n int) {
	for i := range e.Services {
		if s := &e.Services[i]; s.led {
			n += len(s.Backends)
		}
	}
	return n
}

// mostBuckets is how many the largest table has, former ones too.
func (e *Role) mostBuckets() (most int) {
	for i := range e.Services {
		s := &e.Services[i]
		if most = max(most, s.Buckets); s.former != nil {
			most = max(most, s.former.Buckets())
		}
	}
	return most
}
