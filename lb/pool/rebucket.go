package pool

// Rebucket returns what chains are for another number of buckets, for Resume: who had the flows of
// a bucket, because it had those of one that shares hashes with it. Bucket i of n has the hashes
// from i/n to (i+1)/n of all. Candidates are those of the bucket that shares most; those of others
// come next, then previous owners, as far as there is room. With at least as many buckets as
// before, each shares hashes with at most two.
func Rebucket(chains []Chain, buckets int) []Chain {
	if len(chains) == buckets || len(chains) == 0 {
		return chains
	}
	result := make([]Chain, buckets)
	n, m := uint64(len(chains)), uint64(buckets)
	for k := range m {
		// In units of 1/(n*m): bucket k is from k*n to (k+1)*n, and previous bucket i from i*m to
		// (i+1)*m.
		first, last := k*n/m, ((k+1)*n-1)/m
		most, shared := first, uint64(0)
		for i := first; i <= last; i++ {
			if common := min((k+1)*n, (i+1)*m) - max(k*n, i*m); common > shared {
				most, shared = i, common
			}
		}
		c := chainOf(chains[most].IDs[:chains[most].Candidates])
		c.Shadow = chains[most].Shadow
		for i := first; i <= last; i++ {
			for _, id := range chains[i].IDs[:chains[i].Candidates] {
				c.push(id, MaxChain)
			}
		}
		for i := first; i <= last; i++ {
			for _, id := range chains[i].ids() {
				c.push(id, MaxChain)
			}
		}
		result[k] = c
	}
	return result
}
