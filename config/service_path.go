package config

import (
	"fmt"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
)

// MaxPathSIDs is how many SIDs a path from an edge to a backend has: the data plane holds as many,
// and they leave room for two candidates in one address.
const MaxPathSIDs = 4

// PathTo is the path to a backend of the service; none: it is reached by routing's own way.
func (s *Service) PathTo(b Backend) []netip.Addr {
	if len(b.Path) > 0 {
		return b.Path
	}
	return s.Path
}

// Equal says whether two backends are the same in all that is configured.
func (b Backend) Equal(o Backend) bool {
	path := slices.Equal(b.Path, o.Path)
	return path && b.Node == o.Node && b.Name == o.Name && b.SID == o.SID && b.Weight == o.Weight &&
		b.State == o.State && b.Agent == o.Agent && b.Site == o.Site
}

// longestPath is how many SIDs the longest path to a backend of the service has.
func (s *Service) longestPath() int {
	longest := len(s.Path)
	for i := range s.Backends {
		longest = max(longest, len(s.Backends[i].Path))
	}
	return longest
}

// settle leaves room for the longest path where the file does not say how long chains are.
func (s *Service) settle(given func(string) bool) []*Problem {
	if longest := s.longestWay(); longest > 0 && longest <= MaxPathSIDs && !given("depth") &&
		s.Policy == PolicyOffer {
		s.Depth = max(min(s.Depth, srv6.MaxCarrierCSIDs-longest-s.markSIDs()),
			min(s.Candidates, maxCandidates))
	}
	return nil
}

func (c *checker) servicePaths(where string, s Service, e *Edge) {
	c.way(where, s, e)
	depth := join(where, "depth")
	c.path(join(where, "path"), depth, s, s.Path, e)
	for i, b := range s.Backends {
		if len(b.Path) == 0 { // as most: there is nothing to check
			continue
		}
		c.path(fmt.Sprintf("%s.backends[%d].path", where, i), depth, s, b.Path, e)
	}
}

// path checks that a path can be written before the service's chains.
func (c *checker) path(where, depth string, s Service, path []netip.Addr, e *Edge) {
	for i, sid := range path {
		at := fmt.Sprintf("%s[%d]", where, i)
		c.backendSID(at, sid, e.Encapsulation)
		if slices.ContainsFunc(s.Backends, func(b Backend) bool { return b.SID == sid }) {
			c.conflict(at, fmt.Sprintf("sid %s is that of a backend, which would take the packet",
				sid), "name SIDs of routers on the way", where)
		}
	}
	chain := s.chainSIDs()
	switch {
	case len(path) > MaxPathSIDs:
		c.invalid(where, fmt.Sprintf("a path of %d SIDs", len(path)),
			fmt.Sprintf("name %d at most: leave out those that routing passes by itself",
				MaxPathSIDs))
	case e.Encapsulation != Carrier && len(path) > 0 && len(path)+chain > srv6.MaxCarrierCSIDs:
		c.conflict(where, tooManyBytes(len(path), chain),
			roomMend(len(path), s.Candidates), depth)
	}
}

// tooManyBytes says how many bytes path and chain take in a segment routing header, and how many
// there are. Carriers have no such bound: what one can't hold is in two.
func tooManyBytes(path, chain int) string {
	return fmt.Sprintf("a path with %d and chains with %d SIDs take %d + %d = %d bytes, "+
		"and %d are for SIDs in the segment routing header",
		path, chain, sidBytes*path, sidBytes*chain, sidBytes*(path+chain),
		sidBytes*srv6.MaxCarrierCSIDs)
}

const sidBytes = 16 // a SID in a segment routing header, RFC 8754

func roomMend(path, candidates int) string {
	room := srv6.MaxCarrierCSIDs - path
	if candidates <= room {
		return fmt.Sprintf("write depth: %d, or shorten the path", room)
	}
	return fmt.Sprintf("write candidates: %d and depth: %d, or shorten the path", room, room)
}
