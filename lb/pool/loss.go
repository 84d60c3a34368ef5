package pool

// Lost returns the share, from 0 to 1, of the connections at the candidates of some chains that
// other chains, which take their place, do not lead to. Same translates an earlier id into that
// of the same backend now, 0 if it is gone. Rehashed says that a flow's previous bucket tells
// nothing about its bucket now; else tables of different sizes divide the same hashes.
func Lost(before, after []Chain, rehashed bool, same func(id uint16) uint16) float64 {
	if rehashed {
		return lostAnywhere(before, after, same)
	}
	lost, all := 0.0, 0.0
	b, a := uint64(len(before)), uint64(len(after))
	for i, k, from := uint64(0), uint64(0), uint64(0); i < b && k < a; {
		// In units of 1/(a*b) of all hashes, bucket i ends at (i+1)*a and bucket k at (k+1)*b.
		to := min((i+1)*a, (k+1)*b)
		owners := before[i].IDs[:before[i].Candidates]
		for _, id := range owners {
			part := float64(to-from) / float64(len(owners))
			all += part
			if !after[k].leadsTo(same(id)) {
				lost += part
			}
		}
		if to == (i+1)*a {
			i++
		}
		if to == (k+1)*b {
			k++
		}
		from = to
	}
	return share(lost, all)
}

// lostAnywhere is Lost for flows that may be in any bucket.
func lostAnywhere(before, after []Chain, same func(id uint16) uint16) float64 {
	reached := map[uint16]float64{}
	for i := range after {
		c := &after[i]
		for _, id := range c.ids() {
			reached[id] += 1 / float64(len(after))
		}
		if c.Shadow != 0 && !c.has(c.Shadow) {
			reached[c.Shadow] += 1 / float64(len(after))
		}
	}
	lost, all := 0.0, 0.0
	for i := range before {
		owners := before[i].IDs[:before[i].Candidates]
		for _, id := range owners {
			part := 1 / float64(len(owners))
			all += part
			now := same(id)
			if now == 0 {
				lost += part
			} else {
				lost += part * (1 - min(1, reached[now]))
			}
		}
	}
	return share(lost, all)
}

func share(part, all float64) float64 {
	if all == 0 {
		return 0
	}
	return part / all
}

// leadsTo reports whether a packet of a connection comes to a backend.
func (c *Chain) leadsTo(id uint16) bool { return id != 0 && (c.has(id) || c.Shadow == id) }
