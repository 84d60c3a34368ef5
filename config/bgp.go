package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// BGP is the node's BGP speaker: an edge learns backends from it and announces its VIPs to routers,
// a host announces which services it serves at which SID.
type BGP struct {
	// autonomous system of the node
	ASN int `key:"asn"`
	// an IPv4 address, unique among the speakers
	RouterID netip.Addr `key:"routerID"`
	// where sessions are accepted
	Listen netip.AddrPort `key:"listen" as:"bgp" default:"[::]:179"`
	// RouteTarget marks the routes of this cluster's hosts (RFC 4364 section 4.3.1): edges learn
	// from those only.
	RouteTarget string `key:"routeTarget" as:"target"`
	// RouteDistinguisher keeps this host's routes apart from those of others (RFC 4364 section
	// 4.2).
	RouteDistinguisher string `key:"routeDistinguisher" as:"target"`
	// how long peers keep routes while the agent restarts (RFC 4724); 0: they don't
	GracefulRestart time.Duration `key:"gracefulRestart" default:"2m" range:"1s 4095s" zero:"for none"`
	OnStop          OnStop        `key:"onStop"`
	// what a host says of its services
	Announce Announce `key:"announce" default:"up"`
	// that a host announces
	Weight int `key:"weight" default:"1" range:"0 65535"`
	// Startup is how long an edge that starts waits for its neighbors to tell all they know: until
	// then it forgets nothing that it was told of the past, and an edge that has forwarded nothing
	// before announces no VIP.
	Startup time.Duration `key:"startup" default:"30s"`
	// when an edge announces a VIP
	AnnounceVIPs AnnounceVIPs `key:"announceVIPs" default:"any"`
	Neighbors    []Neighbor   `key:"neighbors" item:"bgp neighbor %s"`
}

// Neighbor is a BGP peer of the node.
type Neighbor struct {
	// of the neighbor
	Address netip.Addr `key:"address"`
	// what it is called; software that keeps neighbors knows its own by that
	Name string `key:"name" omit:"zero"`
	// autonomous system of the neighbor
	ASN int `key:"asn"`
	// at which the neighbor accepts sessions
	Port int `key:"port" default:"179" range:"1 65535"`
	// address of this node that the session uses; the zero value: the kernel chooses
	Local netip.Addr `key:"local" omit:"zero"`
	// absolute path of a file with the key of TCP MD5 (RFC 2385); "": none
	PasswordFile string `key:"passwordFile" omit:"zero"`
	// wait for the neighbor to connect
	Passive  bool     `key:"passive" omit:"zero"`
	Families []Family `key:"families" style:"flow" what:"family"`
	// without a message for this long, the session is lost (RFC 4271 section 4.2)
	HoldTime time.Duration `key:"holdTime" default:"90s"`
	// hop limit of a session to another autonomous system that is not on the same link; 0: it is
	Multihop int `key:"multihop" omit:"zero" range:"0 255"`
	BFD      BFD `key:"bfd" omit:"zero"`
}

// BFD is fast detection of a lost neighbor (RFC 5880, single hop: RFC 5881). The zero value is
// none.
type BFD struct {
	// between packets, in both directions
	Interval time.Duration `key:"interval" default:"300ms" range:"10ms 10s"`
	// packets missed until the neighbor is lost
	Multiplier int `key:"multiplier" default:"3" range:"1 255"`
}

// Family is what kind of routes are exchanged.
type Family string

// The families.
const (
	IPv4Unicast Family = "ipv4-unicast"
	IPv6Unicast Family = "ipv6-unicast"
	VPNv4       Family = "vpnv4"
	VPNv6       Family = "vpnv6"
	// LinkState is the topology (BGP-LS, RFC 9552). It is spoken where a neighbor's families name
	// it.
	LinkState Family = "link-state"
)

// OnStop is what becomes of announced routes when the agent is stopped in an orderly way.
type OnStop string

// What a stop does.
const (
	Withdraw OnStop = "withdraw" // peers forget the routes at once
	// peers keep them for the time of graceful restart, as they do when the agent dies
	Keep OnStop = "keep"
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
	WhileAny AnnounceVIPs = "any" // as long as one backend is not down
	// as long as one backend is healthy: a panic does not count
	WhileHealthy AnnounceVIPs = "healthy"
)

var (
	families = []Family{IPv4Unicast, IPv6Unicast, VPNv4, VPNv6, LinkState}
)

// onStopOf is what a node does that does not say. An edge that stops is to get no more packets; a
// host's connections go on, so its edges are to keep it.
func onStopOf(n *Node) OnStop {
	if n.Edge == nil && n.BGP.GracefulRestart > 0 {
		return Keep
	}
	return Withdraw
}

func parseBGPListener(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Port() == 0 || a.Addr().Zone() != "" {
		return netip.AddrPort{}, invalid(fmt.Sprintf("%q is not an address and port", s),
			`write it like "[::]:179", which is all addresses, or "192.0.2.1:179"`)
	}
	return a, nil
}

// parseRouteTarget reads a route target or distinguisher of one of the three kinds of RFC 4364
// section 4.2: a number of 16 bits (an autonomous system), then one of 32, or a longer number or an
// IPv4 address, then one of 16.
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
	if number, err := strconv.ParseUint(assigned, 10, width); err != nil ||
		strconv.FormatUint(number, 10) != assigned {
		return "", wrongTarget(s)
	}
	return s, nil
}

func wrongTarget(s string) error {
	return invalid(fmt.Sprintf("%q is neither a route target nor a route distinguisher", s),
		`write a number or an IPv4 address, a colon and a number, like "64512:80"`)
}
