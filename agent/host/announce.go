package host

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
)

// Announcements say which services the host serves at which SID: those that its own checks find
// to work.
func (h *Room) Announcements(time.Time) (list []bgp.Announcement) {
	n := h.Node
	if n.Host == nil || n.BGP.Announce == config.AnnounceNothing ||
		!h.Attached.Processes(api.Host) {
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
