package api

import (
	"net/netip"
	"time"

	"sextant/config"
)

// Role is what a node, a service or a counter is part of.
type Role string

// Roles of which more than their folders knows. The keys of the node file are the names of all.
const (
	Edge     Role = "edge"
	Host     Role = "host"
	Headend  Role = "headend"  // of SR policies
	Merge    Role = "merge"    // egress of protected traffic
	Strays   Role = "strays"   // takes strays away beside a router
	Flowlets Role = "flowlets" // host that sends its flows over several paths
)

// Status says what the agent is and what it runs.
type Status struct {
	Node          string    `json:"node"`
	Version       string    `json:"version"`
	Roles         []string  `json:"roles"`
	StartedAt     time.Time `json:"startedAt"`
	UptimeSeconds int64     `json:"uptimeSeconds"`
	ConfigHash    string    `json:"configHash"` // config.Fingerprint of what runs
	Programs      []Program `json:"programs"`
	// PinDirectory is where programs and tables are pinned, on the bpf file system of the agent's
	// mount namespace.
	PinDirectory string   `json:"pinDirectory"`
	Warnings     []string `json:"warnings"` // what works, but not as well as it could
}

// Program is an eBPF program at the place where it is attached.
type Program struct {
	Name      string      `json:"name"`
	Interface string      `json:"interface,omitempty"`
	Cgroup    string      `json:"cgroup,omitempty"` // instead of an interface
	Mode      config.Mode `json:"mode,omitempty"`   // XDP only: native or generic
	Side      config.Side `json:"side,omitempty"`   // edge only
	Tag       string      `json:"tag"`              // hash of the program's instructions
	ID        uint32      `json:"id"`               // number by which the kernel knows it
	Fault     string      `json:"fault,omitempty"`  // why it does not process packets; "": it does
}

// List is how the API gives several things.
type List[T any] struct {
	Items []T `json:"items"`
}

// Service is a service of the node in one of its roles.
type Service struct {
	Name     string          `json:"name"`
	Role     Role            `json:"role"`
	VIP      netip.Addr      `json:"vip"`
	Protocol config.Protocol `json:"protocol"`
	Port     uint16          `json:"port"`    // 0: any
	Packets  uint64          `json:"packets"` // edge: sent to backends; host: taken
	Bytes    uint64          `json:"bytes"`   // of the same, without encapsulation
	Edge     *EdgeService    `json:"edge,omitempty"`
	Host     *HostService    `json:"host,omitempty"`
}

// Endpoint returns what clients connect to.
func (s Service) Endpoint() config.Endpoint {
	return config.Endpoint{VIP: s.VIP, Protocol: s.Protocol, Port: s.Port}
}

// EdgeService is what an edge knows of a service.
type EdgeService struct {
	Policy     config.ServicePolicy `json:"policy"`
	Table      config.Table         `json:"table"`
	Candidates int                  `json:"candidates"`
	Depth      int                  `json:"depth"` // backends of a chain, at most
	// how long previous owners stay; 0: until their place is needed
	DrainSeconds float64 `json:"drainTimeSeconds"`
	SlowSeconds  float64 `json:"slowStartSeconds"`
	// how long a backend that was down is draining before it is up
	HoldSeconds   float64              `json:"returnHoldSeconds"`
	Encapsulation config.Encapsulation `json:"encapsulation"`
	Buckets       int                  `json:"buckets"`
	// NewConnections is the limit of new connections; nil: as many as come.
	NewConnections *NewConnections `json:"newConnections,omitempty"`
	Check          string          `json:"check,omitempty"` // the health check with its settings
	// until when packets are offered also to those who had them before another secret, or fewer
	// buckets; nil: they are not
	FormerUntil *time.Time `json:"formerUntil,omitempty"`
	// too few backends are healthy: all that should be up are used
	Panic    bool      `json:"panic"`
	Backends []Backend `json:"backends"`
	// Uncounted are packets, and their bytes, that were offered first to backends without a
	// counter of their own: the service has, or had, more of them than there are counters
	// (docs/reference/limits.md).
	UncountedPackets uint64 `json:"uncountedPackets"`
	UncountedBytes   uint64 `json:"uncountedBytes"`
}

// NewConnections is how many TCP connections may be opened to a service at an edge, and how many
// were.
type NewConnections struct {
	Rate    int    `json:"rate"`    // per second
	Burst   int    `json:"burst"`   // at once
	Taken   uint64 `json:"taken"`   // SYNs that the limit let through
	Refused uint64 `json:"refused"` // SYNs that it dropped
}

// Backend is one server of a service, as an edge sees it.
type Backend struct {
	Service string              `json:"service"`
	Name    string              `json:"name"`
	SID     netip.Addr          `json:"sid"`
	Weight  int                 `json:"weight"`
	State   config.BackendState `json:"state"`
	// Effective is the state that is used: down although it should be up if it fails its checks.
	Effective config.BackendState `json:"effective"`
	Health    *Health             `json:"health,omitempty"` // only of a service that has a check
	Agent     netip.AddrPort      `json:"agent,omitzero"`   // of the backend's host
	Learned   bool                `json:"learned"`          // routing told of it
	// config, or who told: bgp, fpm (FRRouting's zebra), kernel (a routing table)
	Source  string `json:"source"`
	Buckets int    `json:"buckets"` // whose first candidate it is
	// offered to its SID first, for all services that have it
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// HostService is what a host knows of a service.
type HostService struct {
	Accept    Accept `json:"accept"`
	Threshold uint32 `json:"threshold"` // in use now; of dynamic it moves
	Busy      int    `json:"busy"`      // what the policy goes by: open connections, or its load
	// open connections; of UDP what its server says, 0 if it says nothing
	Connections int `json:"connections"`
	// busy connections per core, half a connection added; and that of hosts in the mean, as refused
	// SYNs told this one, 0: they did not. Of policy delay: seconds that a connection takes
	Load float64 `json:"load"`
	Mean float64 `json:"mean"`

	Offered         uint64 `json:"offered"`  // opening SYNs that had another candidate left
	Accepted        uint64 `json:"accepted"` // of these, taken
	Refused         uint64 `json:"refused"`  // of these, passed on
	Forced          uint64 `json:"forced"`   // opening SYNs taken as the last candidate
	PassedOnPackets uint64 `json:"passedOnPackets"`
	PassedOnBytes   uint64 `json:"passedOnBytes"`
	Established     uint64 `json:"established"` // connections that were established
	Resets          uint64 `json:"resets"`      // RSTs sent to clients
	// of these, about packets of no connection of this host
	StrayResets uint64 `json:"strayResets"`
	// SYN-ACKs that went by way of the edge that asked for them
	ByEdge uint64 `json:"byEdge"`
	// of those that an edge asked for: went straight, as there is no route to the edge
	NotRouted uint64 `json:"notRouted"`
	// Health is what the host's own check says; nil if there is none.
	Health *Health `json:"health,omitempty"`
}

// Accept is an acceptance policy. Only the parameters of the policy are there.
type Accept struct {
	Policy    config.Policy `json:"policy"`
	Threshold *int          `json:"threshold,omitempty"`
	Workers   *int          `json:"workers,omitempty"`
	Window    *int          `json:"window,omitempty"`
	Low       *float64      `json:"low,omitempty"`
	High      *float64      `json:"high,omitempty"`
	Initial   *int          `json:"initial,omitempty"`
	Cores     *int          `json:"cores,omitempty"`
}

// AcceptOf writes a configured policy for the wire.
func AcceptOf(a config.Accept) Accept {
	out := Accept{Policy: a.Policy}
	switch a.Policy {
	case config.Static:
		out.Threshold = &a.Threshold
	case config.Dynamic:
		low, high := float64(a.LowPermille)/1000, float64(a.HighPermille)/1000
		out.Workers, out.Window, out.Low, out.High, out.Initial = &a.Workers, &a.Window, &low,
			&high, &a.Initial
	case config.Average, config.Delay:
		if a.Cores > 0 {
			out.Cores = &a.Cores
		}
	}
	return out
}

// SID is a local segment identifier of a host or of an egress of protected traffic.
type SID struct {
	Prefix   netip.Prefix `json:"prefix"`
	Behavior string       `json:"behavior"`
}

// Map is a table that the kernel holds for the data plane.
type Map struct {
	Name     string `json:"name"`
	Role     Role   `json:"role"`
	Type     string `json:"type"`
	Entries  *int   `json:"entries,omitempty"` // arrays, which are always full, have none
	Capacity int    `json:"capacity"`
}

// Counters are what became of a role's packets since its programs were first loaded.
type Counters struct {
	Role Role `json:"role"`
	// not ours: to the kernel as they came
	PassedPackets uint64 `json:"passedPackets"`
	// rewritten; the kernel finds the next hop
	HandedToKernelPackets uint64 `json:"handedToKernelPackets"`
	// rewritten and sent where they came from
	TransmittedPackets uint64 `json:"transmittedPackets"`
	// rewritten and sent by another interface
	RedirectedPackets uint64 `json:"redirectedPackets"`
	TakenPackets      uint64 `json:"takenPackets"`  // decapsulated for the local stack
	EchoedPackets     uint64 `json:"echoedPackets"` // echo requests, answered for a VIP
	// did not fit the path, and their senders were told
	TooBigAnsweredPackets uint64 `json:"tooBigAnsweredPackets"`
	// Packet Too Big of the SR domain, translated for the client
	TranslatedPackets uint64 `json:"translatedPackets"`
	// sent along several segment lists at once
	CopiedPackets uint64 `json:"copiedPackets"`
	// SYN-ACKs that hosts sent by way of the edge
	LearnedPackets uint64 `json:"learnedPackets"`
	// FlowCache is what the edge's flow cache did, by event: hit, miss, stale, stored,
	// refused_unnamed, refused_stranger.
	FlowCache []CacheEvent `json:"flowCache,omitempty"`
	Drops     []Drop       `json:"drops"`

	VRFs []VRFTraffic  `json:"vrfs,omitempty"` // strays only
	CFLB *CFLBCounters `json:"cflb,omitempty"` // cflb only

	PathSource *PathSourceCounters `json:"pathSource,omitempty"` // pathSource only

	Subflows *SubflowCounters `json:"subflows,omitempty"` // subflows only

	Flowlets *FlowletCounters `json:"flowlets,omitempty"` // flowlets only

	Telemetry *TelemetryCounters `json:"telemetry,omitempty"` // telemetry only
}

// CFLBCounters say how a router with controllable load balancing chose next hops.
type CFLBCounters struct {
	// packets by how their next hop was chosen: controlled, beyond, out_of_range, unreadable
	Choices []Choice `json:"choices"`
	// Destinations whose next hops packets are shared among
	Destinations int `json:"destinations"`
	// destinations with several next hops that are left to the kernel
	LeftToKernel int `json:"leftToKernel"`
	// how often a destination's next hops got other indexes, since the role began
	Renumbered uint64 `json:"renumbered"`
	Updates    uint64 `json:"updates"` // of the table, since the role began
}

// PathSourceCounters are sockets that were connected, by what became of them.
type PathSourceCounters struct {
	Steered   uint64 `json:"steered"`   // they take the path of a rule
	NoPort    uint64 `json:"noPort"`    // no free port takes the path
	Bound     uint64 `json:"bound"`     // the application had chosen a port
	Unmatched uint64 `json:"unmatched"` // no rule gives them a path
}

// Choice counts packets whose next hop was chosen in one way.
type Choice struct {
	Choice  string `json:"choice"`
	Packets uint64 `json:"packets"`
}

// VRFTraffic counts packets that continue a TCP connection, and came for a VRF.
type VRFTraffic struct {
	VRF          string `json:"vrf"`
	Backup       string `json:"backup"`      // the device on which strays are received
	HerePackets  uint64 `json:"herePackets"` // whose connection is in the VRF
	HereBytes    uint64 `json:"hereBytes"`
	StrayPackets uint64 `json:"strayPackets"` // whose connection is not
	StrayBytes   uint64 `json:"strayBytes"`
	// ReturnedPackets are those whose connection is not in the VRF either, and that have been
	// strays before: left to the kernel.
	ReturnedPackets uint64 `json:"returnedPackets"`
	ReturnedBytes   uint64 `json:"returnedBytes"`
}

// ForwardedPackets are those that the role rewrote and sent on, by itself or through the kernel.
func (c Counters) ForwardedPackets() uint64 {
	return c.HandedToKernelPackets + c.TransmittedPackets + c.RedirectedPackets
}

// DroppedPackets is the sum over all reasons.
func (c Counters) DroppedPackets() uint64 {
	var sum uint64
	for _, d := range c.Drops {
		sum += d.Packets
	}
	return sum
}

// Drop counts packets that were dropped for one reason.
type Drop struct {
	Reason  string `json:"reason"`
	Packets uint64 `json:"packets"`
}

// CacheEvent counts packets for which the flow cache did something.
type CacheEvent struct {
	Event   string `json:"event"`
	Packets uint64 `json:"packets"`
}

// Sample is the state of all counters at one moment.
type Sample struct {
	Time     time.Time  `json:"time"`
	Counters []Counters `json:"counters"`
	Services []Service  `json:"services"`
	Events   []Event    `json:"events,omitempty"` // since the sample before
}

// Changes are what a write did, or would do.
type Changes struct {
	DryRun bool            `json:"dryRun"`
	Items  []config.Change `json:"items"`
	// Warnings name what may not have been meant.
	Warnings []string `json:"warnings,omitempty"`
}
