package edge

import "sextant/config"

// bucketsOfAll is how many buckets the tables of all services have, the former ones too; 0: not
// all have as many. Without services it is what one will have that does not say.
func (e *Role) bucketsOfAll(n *config.Node) int {
	if len(e.Services) == 0 {
		buckets, _ := n.Edge.BucketsOf(&config.Service{})
		return buckets
	}
	buckets := e.Services[0].Buckets
	for i := range e.Services {
		s := &e.Services[i]
		if s.Buckets != buckets || s.former != nil && s.former.Buckets() != buckets {
			return 0
		}
	}
	return buckets
}

// keepBuckets leaves a program in place that does for all tables, and would be replaced only
// because they are of one size now, or because there are none.
func (e *Role) keepBuckets(running *Role) {
	if running == nil || running.Config.Buckets != 0 && len(e.Services) > 0 {
		return
	}
	kept := *e
	kept.Config.Buckets = running.Config.Buckets
	if running.Same(&kept) {
		e.Config.Buckets = kept.Config.Buckets
	}
}
