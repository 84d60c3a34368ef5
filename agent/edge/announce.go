package edge

import (
	"net/netip"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/routing/bgp"
)

// Announcements are the VIPs that the edge can serve.
func (e *Room) Announcements(now time.Time) (list []bgp.Announcement) {
	if e.Runs == nil || !e.Found.MayAnnounce(now) || !e.Attached.Processes(api.Edge) {
		return nil
	}
	vips := map[netip.Addr]bool{}
	for i := range e.Runs.Services {
		if s := &e.Runs.Services[i]; !vips[s.VIP] && e.canServe(s) {
			vips[s.VIP] = true
			list = append(list, bgp.Announcement{VIP: s.VIP})
		}
	}
	return list
}

// canServe says whether a service has a backend that is reason enough to announce its VIP.
func (e *Room) canServe(s *Service) bool {
	for i, m := range s.Members {
		if m.State == pool.Down {
			continue
		}
		usable, _ := e.checks.opinion(&s.Service, s.Backends[i])
		if usable || e.Node.BGP.AnnounceVIPs == config.WhileAny {
			return true
		}
	}
	return false
}

// Sids are the SIDs of backends, which may be neighbours of the edge themselves.
func (e *Room) Sids() (list []netip.Addr) {
	if e.Runs == nil {
		return nil
	}
	for i := range e.Runs.Services {
		for _, b := range e.Runs.Services[i].Backends {
			list = append(list, b.SID)
		}
	}
	return list
}
