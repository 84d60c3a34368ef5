package bgp_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/config"
	"sextant/routing/bgp"
)

// linked are the settings of a speaker at an address of a link, towards the other end.
func linked(own, other netip.Addr) *config.BGP {
	b := settings(int(own.AsSlice()[len(own.AsSlice())-1]))
	b.Listen = netip.AddrPortFrom(netip.IPv6Unspecified(), port)
	b.Neighbors = []config.Neighbor{{
		Address: other, ASN: 64512, Port: port,
		Families: append([]config.Family{config.IPv4Unicast, config.IPv6Unicast}, vpn...),
		HoldTime: 10 * patience,
	}}
	return b
}

// A host whose link dies is lost as soon as BFD says so, long before BGP would notice, and although
// its routes would have outlived a restart; a host whose agent dies is not.
func TestBFD(t *testing.T) {
	l := newLink(t)
	near, far := linked(nearAddress, farAddress), linked(farAddress, nearAddress)
	for _, b := range []*config.BGP{near, far} {
		b.GracefulRestart = 10 * patience
		// a busy machine may stand still for a second
		b.Neighbors[0].BFD = config.BFD{Interval: 500 * time.Millisecond, Multiplier: 3}
	}
	edge := startSpeaker(t, l.near, role{BGP: near})
	host := startSpeaker(t, l.far, role{far, []bgp.Announcement{offer(2, "2001:db8:80::80")}})
	up := func(r report) bool {
		return r.Sessions[farAddress.String()] == "established standing up" && len(r.Routes) == 1
	}
	edge.await("session and BFD are up", up)

	host.cmd.Process.Kill()
	edge.await("BFD is down", func(r report) bool {
		if len(r.Routes) != 1 {
			t.Fatalf("the route is gone although only the agent died: %+v", r)
		}
		return r.Sessions[farAddress.String()] == "idle settling down" ||
			r.Sessions[farAddress.String()] == "active settling down"
	})
	startSpeaker(t, l.far, role{far, []bgp.Announcement{offer(2, "2001:db8:80::80")}})
	edge.await("session and BFD are up again", up)

	must(t, l.far.Do(func() error {
		device, err := netlink.LinkByName(l.device)
		if err != nil {
			return err
		}
		return netlink.LinkSetDown(device)
	}))
	edge.await("the host is lost", func(r report) bool { return len(r.Routes) == 0 })
	edge.await("its session too", func(r report) bool {
		s := r.Sessions[farAddress.String()]
		return s == "idle lost down" || s == "active lost down"
	})
}
