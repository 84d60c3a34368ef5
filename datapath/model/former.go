package model

import (
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// FormerFlows tells who had flows before another secret, or before services had fewer buckets.
type FormerFlows struct {
	Secret   flow.Secret // the former one
	FlowHash flow.Function
	// Buckets returns how many buckets a service had, 0 for one of which nothing is known.
	Buckets func(service uint32) uint32
	// Chains returns the backends of a former bucket.
	Chains func(service, bucket uint32) pool.Chain
}

// join adds those who had a flow before to those who have it now.
func (f *FormerFlows) join(service uint32, t flow.Tuple, now pool.Chain) pool.Chain {
	if f == nil || f.Buckets(service) == 0 {
		return now
	}
	bucket := flow.Bucket(f.FlowHash.Hash(f.Secret, t), f.Buckets(service))
	return pool.Join(now, f.Chains(service, bucket))
}
