package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BGP is the node's BGP speaker: an edge learns backends from it and announces its VIPs to routers, a host announces which
// services it serves at which SID.
type BGP struct {
	ASN      int
	RouterID netip.Addr     // an IPv4 address, unique among the speakers
	Listen   netip.AddrPort // where sessions are accepted
	// RouteTarget marks the routes of this cluster's hosts (RFC 4364 section 4.3.1): edges learn from those only.
	RouteTarget string
	// RouteDistinguisher keeps this host's routes apart from those of others (RFC 4364 section 4.2).
	RouteDistinguisher string
	GracefulRestart    time.Duration // how long peers keep routes while the agent restarts (RFC 4724); 0: they don't
	OnStop             OnStop
	Announce           Announce // what a host says of its services
	Weight             int      // that a host announces
	// Startup is how long an edge that starts waits for its neighbors to tell all they know: until then it forgets nothing that it
	// was told of the past, and an edge that has forwarded nothing before announces no VIP.
	Startup      time.Duration
	AnnounceVIPs AnnounceVIPs // when an edge announces a VIP
	Neighbors    []Neighbor
}

// Neighbor is a BGP peer of the node.
type Neighbor struct {
	Address      netip.Addr
	ASN          int
	Port         int
	Local        netip.Addr // address of this node that the session uses; the zero value: the kernel chooses
	PasswordFile string     // absolute path of a file with the key of TCP MD5 (RFC 2385); "": none
	Passive      bool       // wait for the neighbor to connect
	Families     []Family
	HoldTime     time.Duration // without a message for this long, the session is lost (RFC 4271 section 4.2)
	Multihop     int           // hop limit of a session to another autonomous system that is not on the same link; 0: it is
	BFD          BFD
}

// BFD is fast detection of a lost neighbor (RFC 5880, single hop: RFC 5881). The zero value is none.
type BFD struct {
	Interval   time.Duration // between packets, in both directions
	Multiplier int           // packets missed until the neighbor is lost
}

// Family is what kind of routes are exchanged.
type Family string

// The families.
const (
	IPv4Unicast Family = "ipv4-unicast"
	IPv6Unicast Family = "ipv6-unicast"
	VPNv4       Family = "vpnv4"
	VPNv6       Family = "vpnv6"
	// LinkState is the topology (BGP-LS, RFC 9552). It is spoken where a neighbor's families name it.
	LinkState Family = "link-state"
)

// OnStop is what becomes of announced routes when the agent is stopped in an orderly way.
type OnStop string

// What a stop does.
const (
	Withdraw OnStop = "withdraw" // peers forget the routes at once
	Keep     OnStop = "keep"     // peers keep them for the time of graceful restart, as they do when the agent dies
)

// Announce is what a host says of the services it serves.
type Announce string

// What a host announces.
const (
	AnnounceUp       Announce = "up"       // give me connections
	AnnounceDraining Announce = "draining" // no new ones (RFC 8326)
	AnnounceNothing  Announce = "nothing"
)

// AnnounceVIPs is when an edge announces a VIP.
type AnnounceVIPs string

// When VIPs are announced.
const (
	WhileAny     AnnounceVIPs = "any"     // as long as one backend is not down
	WhileHealthy AnnounceVIPs = "healthy" // as long as one backend is healthy: a panic does not count
)

// What the bgp section need not say.
const (
	defaultBGPPort         = 179
	defaultGracefulRestart = 2 * time.Minute
	defaultStartup         = 30 * time.Second
	defaultHoldTime        = 90 * time.Second
	defaultBFDInterval     = 300 * time.Millisecond
	defaultBFDMultiplier   = 3
)

var (
	families  = []Family{IPv4Unicast, IPv6Unicast, VPNv4, VPNv6, LinkState}
	stops     = []OnStop{Withdraw, Keep}
	announces = []Announce{AnnounceUp, AnnounceDraining, AnnounceNothing}
	vipWhiles = []AnnounceVIPs{WhileAny, WhileHealthy}
)

func newBGP() *BGP {
	return &BGP{
		Listen: netip.AddrPortFrom(netip.IPv6Unspecified(), defaultBGPPort), GracefulRestart: defaultGracefulRestart,
		Announce: AnnounceUp, Weight: DefaultWeight, Startup: defaultStartup, AnnounceVIPs: WhileAny,
	}
}

// onStopOf is what a node does that does not say. An edge that stops is to get no more packets; a host's connections go on, so its
// edges are to keep it.
func onStopOf(n *Node) OnStop {
	if n.Edge == nil && n.BGP.GracefulRestart > 0 {
		return Keep
	}
	return Withdraw
}

func newNeighbor() Neighbor { return Neighbor{Port: defaultBGPPort, HoldTime: defaultHoldTime} }

func readBGP(v value, b *BGP) {
	v.mapping(
		field{"asn", intoNumber(&b.ASN), `"asn: " and the number of the autonomous system, like 64512`},
		field{"routerID", into(&b.RouterID, ParseAddress), `"routerID: " and an IPv4 address of this machine`},
		field{"listen", into(&b.Listen, parseBGPListener), ""},
		field{"routeTarget", into(&b.RouteTarget, parseRouteTarget), ""},
		field{"routeDistinguisher", into(&b.RouteDistinguisher, parseRouteTarget), ""},
		field{"gracefulRestart", into(&b.GracefulRestart, ParseWait), ""},
		field{"onStop", intoText(&b.OnStop), ""},
		field{"announce", intoText(&b.Announce), ""},
		field{"weight", intoNumber(&b.Weight), ""},
		field{"startup", into(&b.Startup, ParseWait), ""},
		field{"announceVIPs", intoText(&b.AnnounceVIPs), ""},
		field{"neighbors", intoList(&b.Neighbors, readNeighbor), `"neighbors:" and a list of addresses with asn`},
	)
	if b.RouteTarget == "" {
		b.RouteTarget = fmt.Sprintf("%d:1", b.ASN)
	}
	if b.RouteDistinguisher == "" && b.RouterID.IsValid() {
		b.RouteDistinguisher = b.RouterID.String() + ":1"
	}
}

func readNeighbor(v value) Neighbor {
	n := newNeighbor()
	v.mapping(
		field{"address", into(&n.Address, ParseAddress), `"address: " and the neighbor's address`},
		field{"asn", intoNumber(&n.ASN), `"asn: " and the number of the neighbor's autonomous system`},
		field{"port", intoNumber(&n.Port), ""},
		field{"local", into(&n.Local, ParseAddress), ""},
		field{"passwordFile", intoText(&n.PasswordFile), ""},
		field{"passive", into(&n.Passive, parseYes), ""},
		field{"families", intoList(&n.Families, readFamily), ""},
		field{"holdTime", into(&n.HoldTime, ParseWait), ""},
		field{"multihop", intoNumber(&n.Multihop), ""},
		field{"bfd", func(v value) { n.BFD = BFD{defaultBFDInterval, defaultBFDMultiplier}; readBFD(v, &n.BFD) }, ""},
	)
	if n.Families == nil {
		n.Families = slices.Clone(families[:len(families)-1]) // all but link-state
	}
	return n
}

func readFamily(v value) (f Family) {
	intoText(&f)(v)
	return f
}

func readBFD(v value, b *BFD) {
	v.mapping(
		field{"interval", into(&b.Interval, ParseWait), ""},
		field{"multiplier", intoNumber(&b.Multiplier), ""},
	)
}

func parseYes(s string) (bool, error) {
	if s == "true" || s == "false" {
		return s == "true", nil
	}
	return false, invalid(fmt.Sprintf("%q is neither true nor false", s), "write true or false")
}

func parseBGPListener(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 || a.Addr().Zone() != "" {
		return netip.AddrPort{}, invalid(fmt.Sprintf("%q is not an address and port", s),
			`write it like "[::]:179", which is all addresses, or "192.0.2.1:179"`)
	}
	return a, nil
}

// parseRouteTarget reads a route target or distinguisher of one of the three kinds of RFC 4364 section 4.2: a number of 16 bits
// (an autonomous system), then one of 32, or a longer number or an IPv4 address, then one of 16.
func parseRouteTarget(s string) (string, error) {
	administrator, assigned, _ := strings.Cut(s, ":")
	width := 16
	if a, err := netip.ParseAddr(administrator); err != nil || !a.Is4() {
		number, err := strconv.ParseUint(administrator, 10, 32)
		if err != nil || strconv.FormatUint(number, 10) != administrator {
			return "", wrongTarget(s)
		}
		if number < 1<<16 {
			width = 32
		}
	}
	if number, err := strconv.ParseUint(assigned, 10, width); err != nil || strconv.FormatUint(number, 10) != assigned {
		return "", wrongTarget(s)
	}
	return s, nil
}

func wrongTarget(s string) error {
	return invalid(fmt.Sprintf("%q is neither a route target nor a route distinguisher", s),
		`write a number or an IPv4 address, a colon and a number, like "64512:80"`)
}
