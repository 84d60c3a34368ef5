package edge

import (
	"slices"
	"time"

	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/srv6"
)

// told are earlier chains, and when they were so.
type told struct {
	chains []pool.Chain
	at     time.Time
}

// newestFirst orders earlier chains: what an older record says of a bucket comes behind what a
// newer one says, from whichever source it came. At the same time the first one given stays first.
func newestFirst(past []told) {
	slices.SortStableFunc(past, func(a, b told) int { return b.at.Compare(a.at) })
}

// ignore takes out of chains the backends that this node can't know.
func (x *exchange) ignore(e config.Endpoint, chains []pool.Chain, known func(id uint16) bool) {
	if dropped := pool.Retain(chains, known); dropped > 0 {
		x.ignored += uint64(dropped)
		x.Log.Warn("earlier chains name backends that this node does not know; "+
			"they are left out", "service", e, "places", dropped)
	}
}

// knownAbroad says which ids in chains of other nodes are backends here: those of the service.
// Ids that are not compressed SIDs are each node's own numbers. As long as neighbors have not told
// of all backends, each compressed SID may be one of them.
func (x *exchange) knownAbroad(members []pool.Backend) func(id uint16) bool {
	waits := !x.found.Startup.Settled
	return func(id uint16) bool {
		return srv6.CSID(id).Global() && !x.Store.Kept.SIDs.Of(id).IsValid() && (waits ||
			slices.ContainsFunc(members, func(b pool.Backend) bool { return b.ID == id }))
	}
}

// chainsFromBefore is who had the buckets of a service, as far as edges know that kept running, or
// else etcd or this machine's disk, the newest first; nil if nobody knows. Of other nodes only
// chains of as many buckets count: of those given, or, unless that is declared, of those that most
// others have.
func (x *exchange) chainsFromBefore(
	n *config.Node, s *Service, buckets int, declared bool,
) []pool.Chain {
	most := buckets
	if !declared {
		most = max(buckets, config.FormerBuckets)
	}
	var past []told
	for _, chains := range x.askPeers(n, s.Endpoint, most) {
		past = append(past, told{chains, time.Now()})
	}
	past = append(past, x.etcd.read(signingSecret(n), s.Endpoint, most)...)
	for _, p := range past {
		x.ignore(s.Endpoint, p.chains, x.knownAbroad(s.Members))
	}
	if len(past) == 0 && x.Journal.makes(s, buckets, n.Secret) {
		return nil // they are those that New makes
	}
	own := x.Journal.read(s.Endpoint)
	switch {
	case declared:
	case len(past) > 0:
		buckets = mostCommon(past, buckets)
	case own.chains != nil:
		buckets = len(own.chains)
	}
	if own.chains != nil {
		x.ignore(s.Endpoint, own.chains,
			func(id uint16) bool { return x.Store.Kept.SIDs.Behind(n.Domain.Block, id).IsValid() })
		own.chains = pool.Rebucket(own.chains, buckets)
		past = append([]told{own}, past...)
	}
	newestFirst(past)
	return mergePast(past, buckets)
}

// mostCommon is the number of buckets that most have; of several the default, or what comes first.
func mostCommon(past []told, byDefault int) (buckets int) {
	counts := map[int]int{}
	for _, p := range past {
		counts[len(p.chains)]++
	}
	buckets = byDefault
	for _, p := range past {
		if counts[len(p.chains)] > counts[buckets] {
			buckets = len(p.chains)
		}
	}
	return buckets
}

// mergePast merges chains of as many buckets, the first ones first.
func mergePast(past []told, buckets int) (chains []pool.Chain) {
	for _, p := range past {
		if len(p.chains) != buckets {
			continue
		}
		if chains == nil {
			chains = p.chains
			continue
		}
		if merged, err := pool.Merge(chains, p.chains); err == nil {
			chains = merged
		}
	}
	return chains
}
