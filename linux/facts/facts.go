// Package facts has the types of facts about a machine: package linux gathers them, package doctor
// diagnoses by them.
package facts

import "net/netip"

// Facts are what is known about a machine. The zero value of a field that is a pointer, a map or a
// slice means that nothing is known, and no diagnosis follows from it.
type Facts struct {
	Kernel Kernel `json:"kernel"`
	// those of the node file that exist, by name
	Interfaces map[string]Interface `json:"interfaces"`
	// whether packets to a VIP are delivered on this machine
	Local map[netip.Addr]bool `json:"local"`
	// sockets that wait for packets; nil: not asked
	Listeners []Listener           `json:"listeners"`
	Routes    map[netip.Addr]Route `json:"routes"` // to the SIDs of backends
	// by interface: a client who can't be answered on the way it came
	Returns map[string]netip.Addr `json:"returns"`
	Agents  []Agent               `json:"agents"` // processes in this network namespace
	Pins    []Pin                 `json:"pins"`   // of the node's directory
	// that links pinned for the node attach to interfaces; nil: not known
	Programs []Program      `json:"programs"`
	PinDir   string         `json:"pinDirectory"` // where these were looked for
	VRFs     map[string]VRF `json:"vrfs"`         // whose strays are taken away, by name
	// a table can be of one VRF only; nil: the kernel has no VRF devices
	StrictVRF *bool `json:"strictVrf"`
	// SYN-ACKs that come by way of an edge with a flow cache
	Answers []Answer `json:"answers"`
	// routers behind a router with controllable load balancing, as they answered probes
	Followers []Follower `json:"followers"`
	Running   *Running   `json:"running"` // what the agent says; nil: none answers
}

// Follower is the router at a next hop, and whether it does as selectors ask.
type Follower struct {
	Prefix    netip.Prefix `json:"prefix"` // to destinations of which it was asked
	Gateway   netip.Addr   `json:"gateway"`
	Interface string       `json:"interface"`
	Follows   bool         `json:"follows"`
}

// Unnameable is a destination with more next hops than selectors name.
type Unnameable struct {
	Prefix   netip.Prefix `json:"prefix"`
	NextHops int          `json:"nextHops"`
}

// Kernel is what all nodes of a machine share.
type Kernel struct {
	Release string `json:"release"`
	// features that the programs need, with the version that brought them
	Missing      []string `json:"missing"`
	Capabilities []string `json:"capabilities"` // that this process lacks
	BPFFS        bool     `json:"bpffs"`        // a bpf file system is on /sys/fs/bpf
	Cgroup2      bool     `json:"cgroup2"`      // a cgroup2 file system is mounted
	// that the kernel reads the time from; "" if it is not known
	ClockSource string `json:"clockSource"`
}

// Interface is a network interface.
type Interface struct {
	Up  bool `json:"up"`
	MTU int  `json:"mtu"`
	// kind of a virtual device ("veth", "bond"), else "device"
	Driver string `json:"driver"`
	// "native" or "generic" while a program is attached, else ""
	XDP        string   `json:"xdp"`
	XDPProgram uint32   `json:"xdpProgramId"`    // number of the attached program
	XDPName    string   `json:"xdpProgramName"`  // its name; "" if it is not known
	Features   Features `json:"features"`        // of the driver for XDP
	TxChecksum bool     `json:"txChecksum"`      // checksums of sent packets are left to the device
	GRO        bool     `json:"gro"`             // received segments are joined
	GROBelow   []string `json:"groBelow"`        // interfaces below that join them
	Forwarding bool     `json:"forwarding"`      // IPv6 packets that arrive here are forwarded
	RPFilter   int      `json:"rpFilter"`        // that is in force: 0 off, 1 strict, 2 loose
	Seg6       bool     `json:"seg6"`            // the kernel's own segment routing takes SRHs here
	Seg6HMAC   int      `json:"seg6RequireHmac"` // 1: it takes only those with an HMAC
	Qdisc      string   `json:"qdisc"`           // kind of the root one; "" if it is not known
}

// Features are what a driver can do for XDP.
type Features struct {
	Known  bool `json:"known"`  // Linux 6.3 and newer tell
	Native bool `json:"native"` // programs run in the driver
	Send   bool `json:"send"`   // frames of other interfaces' programs can be sent
}

// Listener is a socket that waits for connections or datagrams.
type Listener struct {
	UDP     bool           `json:"udp"`
	Address netip.AddrPort `json:"address"` // unspecified: all addresses; :: stands for IPv4 too
}

// Route is the kernel's way to an address.
type Route struct {
	Reachable bool   `json:"reachable"` // there is a route, and it does not refuse
	Interface string `json:"interface"` // by which it leaves
	Neighbour string `json:"neighbour"` // state of the next hop: "", reachable, failed, ...
	MTU       int    `json:"mtu"`       // of the path in bytes, 0: that of the interface
}

// Agent is a process that runs an agent.
type Agent struct {
	PID  int    `json:"pid"`
	Node string `json:"node"` // that its node file names; "" if it can't be read
}

// Pin is a program or table in the node's directory on the bpf file system that does not fit this
// version of Sextant.
type Pin struct {
	Path string `json:"path"`
	What string `json:"what"` // how it differs
}

// Program is an XDP program that is pinned in the node's directory, with its place on an interface.
type Program struct {
	Interface string `json:"interface"`
	ID        uint32 `json:"id"` // number by which the kernel knows it
}

// Running is what an agent says about itself.
type Running struct {
	Node     string            `json:"node"`
	Version  string            `json:"version"`
	Warnings []string          `json:"warnings"`
	PinDir   string            `json:"pinDirectory"` // of its mount namespace
	Programs []Program         `json:"programs"`     // that it has attached to interfaces
	Drops    map[string]uint64 `json:"drops"`        // by role and reason: "edge no_route"
	// packets that came to a SID of the host and stayed
	Taken      uint64       `json:"taken"`
	SIDPackets uint64       `json:"sidPackets"` // all packets that came to one
	Failing    []Failing    `json:"failing"`    // backends that fail their health check
	Unnameable []Unnameable `json:"unnameable"` // of the role cflb
	VRFs       []VRFTraffic `json:"vrfs"`       // of the role strays
	// edge: packets by what the flow cache did; nil: it has none
	FlowCache map[string]uint64 `json:"flowCache"`
	Learning  Learning          `json:"learning"` // host: SYN-ACKs that edges could learn from
	// of the role telemetry: packets by what became of them; nil: it has no such role
	Telemetry map[string]uint64 `json:"telemetry"`
	// reports of its sink that the machine did not send
	LostReports uint64 `json:"lostReports"`
}

// Failing is a backend that fails its health check.
type Failing struct {
	Service string `json:"service"`
	Backend string `json:"backend"`
	Error   string `json:"error"`
}

// VRFTraffic counts packets that continue a TCP connection, and came for a VRF.
type VRFTraffic struct {
	VRF    string `json:"vrf"`
	Here   uint64 `json:"here"`   // whose connection is in the VRF
	Strays uint64 `json:"strays"` // whose connection is not
}

// Learning counts what a host's SYN-ACKs told edges with a flow cache.
type Learning struct {
	Opened uint64 `json:"opened"` // connections that were established
	// SYN-ACKs that went by way of the edge which asked for them
	ByEdge uint64 `json:"byEdge"`
	// of those that were asked for, went straight for want of a route to the edge
	NotRouted uint64 `json:"notRouted"`
}
