package hunting

import (
	"math/rand/v2"
	"slices"
)

// crowd knows who has the least connections per core. Servers with the same number of cores and of
// connections are together, so that a change costs nothing, and the search as much as there are
// sizes of servers.
type crowd struct {
	sizes []size
	at    []position // by server
}

// size holds the servers with the same number of cores.
type size struct {
	cores  uint32
	groups [][]int32 // servers by connections
	least  int       // connections of the first group that is not empty
}

type position struct {
	size, connections, place int32
}

func newCrowd(servers []server) *crowd {
	c := &crowd{at: make([]position, len(servers))}
	for i, v := range servers {
		at := slices.IndexFunc(c.sizes, func(s size) bool { return s.cores == v.cores })
		if at < 0 {
			at = len(c.sizes)
			c.sizes = append(c.sizes, size{cores: v.cores, groups: make([][]int32, 1)})
		}
		c.at[i].size = int32(at)
		c.enter(i, 0)
	}
	return c
}

// enter puts a server into the group of those with so many connections.
func (c *crowd) enter(i int, connections uint32) {
	s := &c.sizes[c.at[i].size]
	for len(s.groups) <= int(connections) {
		s.groups = append(s.groups, nil)
	}
	c.at[i].connections, c.at[i].place = int32(connections), int32(len(s.groups[connections]))
	s.groups[connections] = append(s.groups[connections], int32(i))
	s.least = min(s.least, int(connections))
}

// move tells that a server has so many connections now.
func (c *crowd) move(i int, connections uint32) {
	at := c.at[i]
	s := &c.sizes[at.size]
	group := s.groups[at.connections]
	last := group[len(group)-1]
	group[at.place] = last
	c.at[last].place = at.place
	s.groups[at.connections] = group[:len(group)-1]
	c.enter(i, connections)
	for len(s.groups[s.least]) == 0 {
		s.least++
	}
}

// least draws one of the servers with the least connections per core.
func (c *crowd) least(random *rand.Rand) int {
	best := &c.sizes[0]
	for i := range c.sizes[1:] {
		s := &c.sizes[1+i]
		if (uint32(s.least)+1)*best.cores < (uint32(best.least)+1)*s.cores {
			best = s
		}
	}
	group := best.groups[best.least]
	return int(group[random.IntN(len(group))])
}
