package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Node is the desired state of one machine.
type Node struct {
	// how the node calls itself in status and logs
	Name string `key:"node" shown:"name"`
	// the SRv6 domain, the same on all its nodes
	Domain Domain `key:"domain" present:"always"`
	// keys the flow hash, and is the same on all nodes of the cluster; secretFile can hold it
	Secret flow.Secret `key:"secret" omit:"zero" hidden:"yes"`
	// absolute path of a file that holds the secret; "" when Secret is in the node file
	SecretFile string `key:"secretFile" omit:"zero"`
	// how the flow hash is computed, the same on all nodes of the cluster
	FlowHash flow.Function `key:"flowHash" default:"nh" omit:"default"`
	// directory in which run-time changes survive restarts
	State string `key:"state" default:"/var/lib/sextant"`
	API   API    `key:"api" present:"always"`
	// nil: the node is no edge
	Edge *Edge `key:"edge" change:"role" role:"programs" packets:"explained"`
	// nil: the node is no host
	Host *Host `key:"host" change:"role" role:"programs" packets:"explained"`
	// nil: the node is no head-end of SR policies
	Headend *Headend `key:"headend" change:"role" role:"programs" packets:"explained"`
	// nil: the node is no egress of protected traffic
	Merge *Merge `key:"merge" change:"role" role:"programs" packets:"explained"`
	// nil: the node takes no strays away beside a router
	Strays *Strays `key:"strays" change:"role" role:"programs" packets:"explained"`
	// nil: the node is no router whose sources choose among next hops
	CFLB *CFLB `key:"cflb" change:"role" role:"programs"`
	// nil: connections of the node take whatever paths
	PathSource *PathSource `key:"pathSource" change:"role" role:"programs"`
	// nil: MPTCP connections of the node get the subflows that the kernel gives them
	Subflows *Subflows `key:"subflows" change:"role" role:"agent"`
	// nil: flows of the node take one path each
	Flowlets *Flowlets `key:"flowlets" change:"role" role:"programs" packets:"explained"`
	// nil: the node takes no part in in-band telemetry
	Telemetry *Telemetry `key:"telemetry" change:"role" role:"programs"`
	// nil: the node computes no paths
	Protect *Protect `key:"protect" change:"role"`
	// nil: the node speaks no BGP
	BGP *BGP `key:"bgp" change:"role"`
	// nil: no routes of other routing software count
	Routing *Routing `key:"routing" change:"role"`
}

// Domain describes the SR domain; it is the same on all its nodes.
type Domain struct {
	// the prefix from which all carrier SIDs are taken
	Block srv6.Block `key:"block"`
	// prefixes of the domain's other SIDs: no packet from outside may go there
	Locators []netip.Prefix `key:"locators" omit:"zero" style:"flow" item:"domain: locator %s"`
	// sources from which SRv6 is accepted (RFC 8754 section 5.1)
	Infrastructure []netip.Prefix `key:"infrastructure" style:"flow" item:"domain: infrastructure %s"`
	// bytes of the largest IPv6 packet that the domain carries
	MTU int `key:"mtu" default:"1500" range:"1280 65535"`
	// of these, bytes left for the encapsulation of the domain's edges
	Overhead int `key:"overhead" range:"40 256"`
}

// API says where the agent listens.
type API struct {
	// path of the Unix socket
	Socket string `key:"socket" default:"/run/sextant/agent.sock"`
	// Prometheus over TCP; the zero value is none
	Metrics netip.AddrPort `key:"metrics" omit:"zero"`
	// over TLS 1.3, for those who have tokens; without it, on the socket alone
	Listen *Listen `key:"listen" change:"whole"`
}

// Edge is the role that spreads connections over backends.
type Edge struct {
	Interfaces []EdgeInterface `key:"interfaces" item:"edge interface %s"`
	// outer source address of encapsulated packets
	Source netip.Addr `key:"source"`
	// where the edge is: backends of the same site come first. "": it is not said
	Site          string        `key:"site" omit:"zero"`
	Encapsulation Encapsulation `key:"encapsulation" default:"carrier"`
	// with which segment routing headers are signed; without it they are not
	HMAC *HMACKey `key:"hmac" title:"edge hmac"`
	EdgeOuter
	// ICMP messages of a kind per second and CPU at most
	AnswerRate int `key:"answerRate" default:"1000" range:"1 1000000" omit:"default"`
	// of the services that do not say; 0: each has as many as it needs
	Buckets int `key:"buckets" omit:"zero" range:"1021 1048576" zero:"to size each service by need"`
	// how long connections from before another secret, or fewer buckets, are looked for; 0: not
	FormerTime time.Duration `key:"formerTime" default:"1h0m0s" omit:"default"`
	Shadow     Shadow        `key:"shadow" omit:"zero" change:"whole"`
	FlowCache  FlowCache     `key:"flowCache" omit:"zero" change:"whole"`
	// api.metrics of other edges, who know what happened before this one started
	Peers []netip.AddrPort `key:"peers" omit:"zero" style:"flow" item:"edge: peer %s"`
	// nil: none
	Etcd *Etcd `key:"etcd" change:"whole"`
	// on which the ways of services are computed; without it there are none
	Network  *EdgeNetwork `key:"network" change:"whole"`
	Services []Service    `key:"services" omit:"zero" item:"service %s"`
}

// EdgeOuter is what an edge writes into outer IPv6 headers. The eBPF program has a field of the
// same name for each of these (struct edge_outer), and so does its model.
type EdgeOuter struct {
	// of outer headers
	HopLimit int `key:"hopLimit" default:"64" range:"1 255"`
	// -1: that of the packet inside
	DSCP int `key:"dscp" default:"-1" range:"-1 63" omit:"default"`
	// outer headers take over the ECN field of packets (RFC 6040, normal mode); false: they have
	// none (compatibility mode), for backends that decapsulate without bringing marks back in, as
	// Linux does by itself
	ECN bool `key:"ecn" default:"true" omit:"default"`
}

// EdgeInterface is one interface on which the edge program runs.
type EdgeInterface struct {
	// of the interface, as ip link says
	Name string `key:"name" is:"place"`
	Side Side   `key:"side" default:"mixed"`
	Mode Mode   `key:"mode" default:"auto"`
}

// Service is a virtual service of an edge.
type Service struct {
	// in lists, metrics and commands
	Name string `key:"name"`
	Endpoint
	Continuity
	// backends that its table is sized for; 0: it has as many buckets as the edge says
	MaxBackends int `key:"maxBackends" omit:"zero" range:"1 10000" zero:"for the default"`
	// limits of how many connections are opened
	NewConnections NewConnections `key:"newConnections" omit:"zero" change:"whole"`
	// SIDs that packets visit on the way to the first backend that they are offered to; none: they
	// take routing's own way. A backend's own path is taken in place of this one
	Path []netip.Addr `key:"path" omit:"zero" as:"sid" style:"flow"`
	// by which the edge computes the paths of backends that are given none; without it, of none
	Way *Way `key:"way" change:"whole"`
	// packets that go over both paths of the way, to hosts that take the first copy; none: all
	// go once
	Copies []Copied `key:"copies" omit:"zero" style:"flow"`
	// by what a bucket's candidates are in order, behind their sites; none: as its table has them
	Order []OrderBy `key:"order" omit:"zero" style:"flow"`
	// without one, UDP is not looked into
	QUIC QUICConfigs `key:"quic" omit:"zero"`
	// nil: backends are what the configuration says
	Check    *Check    `key:"check" change:"whole"`
	Backends []Backend `key:"backends" omit:"zero" item:"+ : backend %s"`
	// what an operator says of backends that BGP tells of
	Learned []Learned `key:"learned" omit:"zero" item:"+ : learned %s"`
}

// Backend is one server of a service.
type Backend struct {
	// in lists, metrics and commands
	Name   string       `key:"name"`
	SID    netip.Addr   `key:"sid" as:"sid" help:"SID at which the backend is offered connections"`
	Weight int          `key:"weight" default:"1" range:"0 65535" help:"share of new connections, 0 to 65535"`
	State  BackendState `key:"state" default:"up" help:"up, draining, down or maintenance"`
	// SIDs that packets visit on the way to this backend; none: those of the service's path
	Path []netip.Addr `key:"path" omit:"zero" as:"sid" style:"flow"`
	// node of edge.network's topology that the backend is behind; "": the one whose SID it has, or
	// its name
	Node string `key:"node" omit:"zero" help:"node of the topology that the backend is behind"`
	// each bucket has candidates in as many sites as there are, or as candidates; "": not said
	Site string `key:"site" omit:"zero" help:"site that the backend is in"`
	// where the host's agent serves metrics, and tells its connections; the zero value: not known
	Agent netip.AddrPort `key:"agent" omit:"zero" help:"where the host's agent serves metrics, like [fd00:5e::51]:9477; drain --wait asks it"`
}

// Host is the role that accepts offered connections or passes them on.
type Host struct {
	Interfaces []HostInterface `key:"interfaces" item:"host interface %s"`
	// cgroup2 directory whose sockets count as busy; "" is the root
	Cgroup string `key:"cgroup" omit:"zero"`
	// outer source address of strays and SYN-ACKs; the zero value if there are none
	Source netip.Addr `key:"source" omit:"zero"`
	// of the End.LEARN SIDs of edges; SYN-ACKs go by way of those whose SYN came from there
	Learners []netip.Prefix `key:"learners" omit:"zero" style:"flow" item:"host: learner %s"`
	// nil: HMACs are not looked at
	HMAC     *HMAC         `key:"hmac" title:"host hmac"`
	SIDs     []SID         `key:"sids" item:"sid %s"`
	Services []HostService `key:"services" omit:"zero" item:"host service %s"`
}

// HostInterface is one interface on which the host program runs.
type HostInterface struct {
	// of the interface, as ip link says
	Name string `key:"name" is:"place"`
	Mode Mode   `key:"mode" default:"auto"`
}

// SID is a local segment identifier: packets to the prefix meet the behaviour.
type SID struct {
	// packets to addresses in here get the behavior
	Prefix netip.Prefix `key:"prefix"`
	// name or number of the endpoint behavior (RFC 8986)
	Behavior srv6.Behavior `key:"behavior"`
	// End.DT*.COND: the SID to which strays are sent; else the zero value
	Backup netip.Addr `key:"backup" as:"sid" omit:"zero"`
}

// HostService is a service that this host offers to serve.
type HostService struct {
	// in lists, metrics and commands
	Name string `key:"name"`
	Endpoint
	// UDP whose first packets are offered as SYNs are
	QUIC bool `key:"quic" omit:"zero"`
	// by which the host finds out whether it serves, before it says so by BGP; without it, it does
	Check  *Check `key:"check" change:"whole" preset:"startup down"`
	Accept Accept `key:"accept" present:"always" change:"whole"`
	// what Accept calls busy
	Load Load `key:"load" omit:"zero"`
}

// Accept is a host's acceptance policy for one service. Only the fields of
// the policy in use are set; the others are 0.
type Accept struct {
	Policy Policy `key:"policy" default:"average"`
	// static: accept while fewer connections are busy
	Threshold int `key:"threshold" range:"0 65535" help:"static: accept below this many busy connections"`
	// dynamic: upper bound of the threshold
	Workers int `key:"workers" range:"1 65535" help:"dynamic: connections that the server works on at once"`
	// dynamic: offers between two adaptations
	Window int `key:"window" range:"1 65535" usual:"50" help:"dynamic: offers between two adaptations"`
	// LowPermille and HighPermille bound the share of accepted offers that leaves the threshold as
	// it is.
	LowPermille  int `key:"low" as:"share" usual:"0.4" help:"dynamic: share of accepted offers below which the threshold rises"`
	HighPermille int `key:"high" as:"share" usual:"0.6" help:"dynamic: share above which it falls"`
	// dynamic: first threshold
	Initial int `key:"initial" range:"0 65535" usual:"1" help:"dynamic: first threshold"`
	// average, delay: of the server, which busy connections share; 0: as many as the machine has
	Cores int `key:"cores" omit:"zero" range:"0 1024" help:"average, delay: of the server; 0: as many as the machine has"`
}

// Endpoint is what clients connect to.
type Endpoint struct {
	VIP      netip.Addr `key:"vip" help:"address that clients connect to"`
	Protocol Protocol   `key:"protocol" default:"tcp" help:"tcp or udp"`
	// AnyPort: all ports that no other service of this VIP and protocol names
	Port uint16 `key:"port" as:"port" help:"port, or any"`
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
	// compressed SIDs in the destination address (RFC 9800)
	Carrier    Encapsulation = "carrier"
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
	Delay   Policy = "delay"   // unless a connection takes longer than on hosts in the mean
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

// String writes the policy with its parameters, like "static threshold 4".
func (a Accept) String() string {
	switch a.Policy {
	case Static:
		return fmt.Sprintf("%s threshold %d", a.Policy, a.Threshold)
	case Dynamic:
		return fmt.Sprintf("%s workers %d window %d low %s high %s initial %d", a.Policy,
			a.Workers, a.Window, FormatPermille(a.LowPermille), FormatPermille(a.HighPermille),
			a.Initial)
	case Average, Delay:
		if a.Cores > 0 {
			return fmt.Sprintf("%s cores %d", a.Policy, a.Cores)
		}
		return string(a.Policy)
	default:
		return string(a.Policy)
	}
}
