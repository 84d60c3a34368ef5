package agent

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/discovery"
	"sextant/lb/pool"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
)

// announcements are the VIPs that the edge can serve.
func (e *edgeRoom) announcements(now time.Time) (list []bgp.Announcement) {
	if e.runs == nil || !e.found.mayAnnounce(now) || !e.attached.processes(api.Edge) {
		return nil
	}
	vips := map[netip.Addr]bool{}
	for i := range e.runs.services {
		if s := &e.runs.services[i]; !vips[s.VIP] && e.canServe(s) {
			vips[s.VIP] = true
			list = append(list, bgp.Announcement{VIP: s.VIP})
		}
	}
	return list
}

// canServe says whether a service has a backend that is reason enough to announce its VIP.
func (e *edgeRoom) canServe(s *edgeService) bool {
	for i, m := range s.members {
		if m.State == pool.Down {
			continue
		}
		usable, _ := e.checks.opinion(&s.Service, s.Backends[i])
		if usable || e.node.BGP.AnnounceVIPs == config.WhileAny {
			return true
		}
	}
	return false
}

// announcements say which services the host serves at which SID: those that its own checks find
// to work.
func (h *hostRoom) announcements(time.Time) (list []bgp.Announcement) {
	n := h.node
	if n.Host == nil || n.BGP.Announce == config.AnnounceNothing ||
		!h.attached.processes(api.Host) {
		return nil
	}
	ports := map[netip.Addr][]discovery.Port{}
	for _, s := range n.Host.Services {
		if h.own.serves(s) {
			ports[s.VIP] = append(ports[s.VIP], discovery.Port{Protocol: s.Protocol, Port: s.Port})
		}
	}
	for _, vip := range slices.SortedFunc(maps.Keys(ports), netip.Addr.Compare) {
		if sid, ok := sidFor(n.Host.SIDs, vip); ok {
			list = append(list, bgp.Announcement{
				VIP: vip, SID: sid, Services: ports[vip], Weight: n.BGP.Weight,
				Draining: n.BGP.Announce == config.AnnounceDraining,
			})
		}
	}
	return list
}

// sidFor chooses the SID at which a host is offered connections to a VIP: End.OFFER, else what
// sends strays back, else what takes everything.
func sidFor(sids []config.SID, vip netip.Addr) (config.SID, bool) {
	wanted := []srv6.Behavior{srv6.EndOFFER, srv6.EndDT46COND, srv6.EndDT6COND, srv6.EndDT46,
		srv6.EndDT6}
	if vip.Is4() {
		wanted = []srv6.Behavior{srv6.EndOFFER, srv6.EndDT46COND, srv6.EndDT4COND, srv6.EndDT46,
			srv6.EndDT4}
	}
	for _, behavior := range wanted {
		if i := slices.IndexFunc(sids,
			func(s config.SID) bool { return s.Behavior == behavior }); i >= 0 {
			return sids[i], true
		}
	}
	return config.SID{}, false
}

// sids are the SIDs of backends, which may be neighbours of the edge themselves.
func (e *edgeRoom) sids() (list []netip.Addr) {
	if e.runs == nil {
		return nil
	}
	for i := range e.runs.services {
		for _, b := range e.runs.services[i].Backends {
			list = append(list, b.SID)
		}
	}
	return list
}
