package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"sextant/flow"
	"sextant/srv6"
)

// Node is the desired state of one machine.
type Node struct {
	Name   string // how the node calls itself in status and logs
	Domain Domain
	// Secret keys the flow hash and is the same on all nodes of the cluster.
	// It is zero as long as SecretFile has not been read.
	Secret     flow.Secret
	SecretFile string // absolute path of a file that holds the secret; "" when Secret is in the node file
	State      string // directory in which run-time changes survive restarts
	API        API
	Edge       *Edge    // nil: the node is no edge
	Host       *Host    // nil: the node is no host
	Headend    *Headend // nil: the node is no head-end of SR policies
	Merge      *Merge   // nil: the node is no egress of protected traffic
	Strays     *Strays  // nil: the node takes no strays away beside a router
	Protect    *Protect // nil: the node computes no paths
	BGP        *BGP     // nil: the node speaks no BGP
	Routing    *Routing // nil: no routes of other routing software count
}

// Domain describes the SR domain; it is the same on all its nodes.
type Domain struct {
	Block          srv6.Block     // the prefix from which all carrier SIDs are taken
	Locators       []netip.Prefix // prefixes of the domain's other SIDs: no packet from outside may go there
	Infrastructure []netip.Prefix // sources from which SRv6 is accepted (RFC 8754 section 5.1)
	MTU            int            // bytes of the largest IPv6 packet that the domain carries
	Overhead       int            // of these, bytes left for the encapsulation of the domain's edges
}

// API says where the agent listens.
type API struct {
	Socket  string         // path of the Unix socket
	Metrics netip.AddrPort // Prometheus over TCP; the zero value is none
}

// Edge is the role that spreads connections over backends.
type Edge struct {
	Interfaces    []EdgeInterface
	Source        netip.Addr // outer source address of encapsulated packets
	Encapsulation Encapsulation
	HMAC          *HMACKey // with which segment routing headers are signed; nil: they are not
	HopLimit      int      // of the outer header
	Buckets       int      // slots of each service's table
	Shadow        Shadow
	FlowCache     FlowCache
	Peers         []netip.AddrPort // api.metrics of other edges, who know what happened before this one started
	Etcd          *Etcd            // nil: none
	Services      []Service
}

// EdgeInterface is one interface on which the edge program runs.
type EdgeInterface struct {
	Name string
	Side Side
	Mode Mode
}

// Service is a virtual service of an edge.
type Service struct {
	Name string
	Endpoint
	Continuity
	NewConnections NewConnections
	QUIC           []QUIC // without one, UDP is not looked into
	Check          *Check // nil: backends are what the configuration says
	Backends       []Backend
	Learned        []Learned // what an operator says of backends that BGP tells of
}

// Backend is one server of a service.
type Backend struct {
	Name   string
	SID    netip.Addr
	Weight int
	State  BackendState
	Agent  netip.AddrPort // where the host's agent serves metrics, and tells its connections; the zero value: not known
}

// Host is the role that accepts offered connections or passes them on.
type Host struct {
	Interfaces []HostInterface
	Cgroup     string         // cgroup2 directory whose sockets count as busy; "" is the root
	Source     netip.Addr     // outer source address of strays and SYN-ACKs; the zero value if there are none
	Learners   []netip.Prefix // of the End.LEARN SIDs of edges; SYN-ACKs go by way of those whose SYN came from there
	HMAC       *HMAC          // nil: HMACs are not looked at
	SIDs       []SID
	Services   []HostService
}

// HostInterface is one interface on which the host program runs.
type HostInterface struct {
	Name string
	Mode Mode
}

// SID is a local segment identifier: packets to the prefix meet the behaviour.
type SID struct {
	Prefix   netip.Prefix
	Behavior srv6.Behavior
	Backup   netip.Addr // End.DT*.COND: the SID to which strays are sent; else the zero value
}

// HostService is a service that this host offers to serve.
type HostService struct {
	Name string
	Endpoint
	Accept Accept
	Load   Load   // what Accept calls busy
	QUIC   bool   // UDP whose first packets are offered as SYNs are
	Check  *Check // by which the host finds out whether it serves, before it says so by BGP; nil: it does
}

// Accept is a host's acceptance policy for one service. Only the fields of
// the policy in use are set; the others are 0.
type Accept struct {
	Policy    Policy
	Threshold int // static: accept while fewer connections are busy
	Workers   int // dynamic: upper bound of the threshold
	Window    int // dynamic: offers between two adaptations
	// LowPermille and HighPermille bound the share of accepted offers that leaves the threshold as it is.
	LowPermille, HighPermille int
	Initial                   int // dynamic: first threshold
	Cores                     int // average: of the server, which busy connections share; 0: as many as the machine has
}

// Endpoint is what clients connect to.
type Endpoint struct {
	VIP      netip.Addr
	Protocol Protocol
	Port     uint16 // AnyPort: all ports that no other service of this VIP and protocol names
}

// AnyPort as the port of an endpoint stands for all ports.
const AnyPort uint16 = 0

// String writes the endpoint as "[2001:db8::80]:443/tcp" or "192.0.2.1:any/udp".
func (e Endpoint) String() string {
	vip := e.VIP.String()
	if e.VIP.Is6() {
		vip = "[" + vip + "]"
	}
	return fmt.Sprintf("%s:%s/%s", vip, FormatPort(e.Port), e.Protocol)
}

// FormatPort writes a port as ParsePort reads it: a number or "any".
func FormatPort(port uint16) string {
	if port == AnyPort {
		return "any"
	}
	return strconv.Itoa(int(port))
}

// Side says what lies behind an interface of an edge or a head-end.
type Side string

// The sides of an interface.
const (
	External Side = "external" // clients
	Internal Side = "internal" // the SR domain
	Mixed    Side = "mixed"    // both
)

// Mode is how an XDP program is attached.
type Mode string

// The ways to attach an XDP program.
const (
	Auto    Mode = "auto"    // native if the driver can, else generic
	Native  Mode = "native"  // in the driver
	Generic Mode = "generic" // behind it, in the kernel's receive path
)

// Encapsulation is how a chain of candidates is written into the outer packet.
type Encapsulation string

// The encapsulations.
const (
	Carrier    Encapsulation = "carrier"     // compressed SIDs in the destination address (RFC 9800)
	SRH        Encapsulation = "srh"         // segment routing header with all SIDs (RFC 8754)
	SRHReduced Encapsulation = "srh-reduced" // without the first SID (RFC 8986 section 5.2)
)

// Protocol is a transport protocol.
type Protocol string

// The transport protocols.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// Policy is the name of an acceptance policy.
type Policy string

// The acceptance policies.
const (
	Always  Policy = "always"
	Static  Policy = "static"  // SR_c, SRLB Algorithm 1
	Dynamic Policy = "dynamic" // SR_dyn, SRLB Algorithm 2
	Average Policy = "average" // unless busier than hosts are in the mean
)

// BackendState says what a backend is given.
type BackendState string

// The states of a backend.
const (
	Up          BackendState = "up"          // new and old connections
	Draining    BackendState = "draining"    // old connections only
	Down        BackendState = "down"        // nothing: it is broken
	Maintenance BackendState = "maintenance" // nothing: an operator took it out
)

// Roles lists the node's roles: edge, host, headend, merge, strays, router, in this order.
func (n *Node) Roles() []string {
	var roles []string
	if n.Edge != nil {
		roles = append(roles, "edge")
	}
	if n.Host != nil {
		roles = append(roles, "host")
	}
	if n.Headend != nil {
		roles = append(roles, "headend")
	}
	if n.Merge != nil {
		roles = append(roles, "merge")
	}
	if n.Strays != nil {
		roles = append(roles, "strays")
	}
	if len(n.Routing.KernelVRFs()) > 0 {
		roles = append(roles, "router")
	}
	return roles
}

// Clone returns a deep copy.
func (n *Node) Clone() *Node {
	c := *n
	c.Domain.Infrastructure = slices.Clone(n.Domain.Infrastructure)
	c.Domain.Locators = slices.Clone(n.Domain.Locators)
	if n.Edge != nil {
		edge := *n.Edge
		edge.Interfaces = slices.Clone(edge.Interfaces)
		edge.Peers = slices.Clone(edge.Peers)
		edge.Etcd = edge.Etcd.clone()
		if edge.HMAC != nil {
			key := *edge.HMAC
			edge.HMAC = &key
		}
		edge.Services = slices.Clone(edge.Services)
		for i := range edge.Services {
			edge.Services[i].Backends = slices.Clone(edge.Services[i].Backends)
			edge.Services[i].Check = edge.Services[i].Check.clone()
			edge.Services[i].QUIC = slices.Clone(edge.Services[i].QUIC)
			edge.Services[i].Learned = slices.Clone(edge.Services[i].Learned)
		}
		c.Edge = &edge
	}
	if n.Host != nil {
		host := *n.Host
		host.Interfaces = slices.Clone(host.Interfaces)
		host.SIDs = slices.Clone(host.SIDs)
		host.Learners = slices.Clone(host.Learners)
		host.HMAC = host.HMAC.clone()
		host.Services = slices.Clone(host.Services)
		for i := range host.Services {
			host.Services[i].Check = host.Services[i].Check.clone()
		}
		c.Host = &host
	}
	c.Headend, c.Merge = n.Headend.clone(), n.Merge.clone()
	c.Strays = n.Strays.clone()
	c.Protect = n.Protect.clone()
	c.BGP = n.BGP.clone()
	c.Routing = n.Routing.clone()
	return &c
}

// String writes the policy with its parameters, like "static threshold 4".
func (a Accept) String() string {
	switch a.Policy {
	case Static:
		return fmt.Sprintf("%s threshold %d", a.Policy, a.Threshold)
	case Dynamic:
		return fmt.Sprintf("%s workers %d window %d low %s high %s initial %d", a.Policy,
			a.Workers, a.Window, FormatPermille(a.LowPermille), FormatPermille(a.HighPermille), a.Initial)
	case Average:
		if a.Cores > 0 {
			return fmt.Sprintf("%s cores %d", a.Policy, a.Cores)
		}
		return string(a.Policy)
	default:
		return string(a.Policy)
	}
}
