package config

import (
	"fmt"
	"net/netip"
	"slices"
)

// Learned is what an operator says, at this edge, of a backend that BGP tells of: its host knows
// nothing of it. Of the state and what the host says the more careful word counts.
type Learned struct {
	// of a backend that BGP tells of
	SID netip.Addr `key:"sid" as:"sid"`
	// Up: what the host says
	State BackendState `key:"state" default:"up"`
	// as of Backend
	Agent netip.AddrPort `key:"agent" omit:"zero"`
	// of the backend; "": as the route says
	Site string `key:"site" omit:"zero"`
}

func (c *checker) learned(where string, s Service) {
	seen := unique[netip.Addr]{}
	for i, l := range s.Learned {
		at := fmt.Sprintf("%s.learned[%d]", where, i)
		seen.once(c, join(at, "sid"), l.SID, deleteOne, "sid %s is given twice")
		if slices.ContainsFunc(s.Backends, func(b Backend) bool { return b.SID == l.SID }) {
			c.conflict(join(at, "sid"), fmt.Sprintf("sid %s is that of a backend of this file",
				l.SID), "say it there",
				join(where, "backends"))
		}
	}
}

// SetLearned changes what is said of a backend with a SID that BGP tells of. Weight and SID are its
// host's to say.
func SetLearned(n *Node, service, name string, sid netip.Addr,
	change BackendChange) (*Node, error) {
	if change.SID != nil || change.Weight != nil {
		return nil, &Problem{
			Kind: ErrConflict, Text: fmt.Sprintf(
				"backend %q was learned by BGP: its SID and weight are what its host says", name),
			Mend: "change host.sids or bgp.weight in the host's node file, or here only state " +
				"and agent",
		}
	}
	return n.changeService(service, func(s *Service) error {
		i := slices.IndexFunc(s.Learned, func(l Learned) bool { return l.SID == sid })
		if i < 0 {
			i = len(s.Learned)
			s.Learned = append(s.Learned, Learned{SID: sid, State: Up})
		}
		l := &s.Learned[i]
		setAll(l, change)
		if *l == (Learned{SID: sid, State: Up}) {
			s.Learned = slices.Delete(s.Learned, i, i+1)
		}
		return nil
	})
}
