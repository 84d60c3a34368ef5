package lab

import (
	"net/netip"
	"time"

	"sextant/lab/netem"
)

// Spec describes a lab: what is to be there. [Parse] makes it from a file, with
// replicated nodes spelled out.
//
// In the strings of commands, environments, ready conditions, files and node
// configurations these words stand for what is known only when the lab is up:
// {lab} and {node} for the names, {dir} for the node's directory, {bpf} for its
// directory on the bpf file system, {cgroup} for its cgroup2 directory, {self}
// for the sextant program.
type Spec struct {
	Name  string // of the lab; part of the names of its namespaces
	File  string // from which it was read; "" for none
	Nodes []NodeSpec
	Links []LinkSpec
	Run   []Step
}

// NodeSpec describes a node: a machine of the lab.
type NodeSpec struct {
	Name      string
	Addresses []netip.Addr // its own, on the loopback interface, routed to it by all others
	VIPs      []netip.Addr // on the loopback interface, but unknown to the others
	// routed to it by all others; to the nearest if several nodes announce one
	Announce  []netip.Prefix
	Local     []netip.Prefix // whole ranges that are its own: any address of them can be bound
	Sysctls   []Sysctl       // set in this order
	Files     []File         // written into the node's directory
	Exec      []Command      // run once before the processes start
	Processes []ProcessSpec  // started one after the other, each when the one before is ready
	// Sextant is the text of the node's configuration, "" for none. The
	// node then runs a Sextant agent, started before its processes.
	Sextant string

	place string // path of the node in the file, where faults are reported
}

// LinkSpec describes a link between two nodes.
type LinkSpec struct {
	Ends [2]Endpoint
	// RateBits limits what each end sends, in bits per second, by a token
	// bucket; 0 is no limit. What an XDP program sends bypasses the bucket, as it
	// bypasses every queueing discipline.
	RateBits   uint64
	BurstBytes uint32        // size of the bucket
	Latency    time.Duration // longest wait in the queue, which decides its length
	MTU        int           // bytes; 0 is the kernel's 1500

	// Weights are the costs of the link for routes, of what each end sends; 0 is 1.
	Weights [2]uint32
	// Impair says what happens to the packets that each end sends; rate, burst and queue only where
	// they differ from those above.
	Impair [2]netem.Profile
	Seed   uint64 // of all chance; 0 is 1
	// what impairs the packets; the link has none if this is "" and nothing is to be impaired
	Wire WireKind

	place string
}

// Endpoint is an interface of a node.
type Endpoint struct{ Node, Interface string }

// String writes the endpoint as in the file: "edge1:eth0".
func (e Endpoint) String() string { return e.Node + ":" + e.Interface }

// Sysctl is a kernel parameter of a node's namespace.
type Sysctl struct{ Name, Value string }

// File is a file in a node's directory.
type File struct {
	Name, Content string
	Secret        bool // for root alone
}

// ProcessSpec describes a process of a node that runs as long as the lab.
type ProcessSpec struct {
	Name    string
	Command Command
	Env     []string // "NAME=value", besides the environment of the caller
	Ready   Ready    // zero: ready as soon as it runs
	Restart bool     // start it again whenever it ends
}

// Step is a command that [Run] runs on a node when the lab is up.
type Step struct {
	Node    string
	Command Command
}
