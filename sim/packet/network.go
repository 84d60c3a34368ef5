package packet

import (
	"fmt"
	"math"

	"sextant/te/topology"
)

// Node is a node of the network, numbered as in its topology.
type Node = int32

// fraction is how finely the time that a byte takes on a link is counted: in 1/1024 ps.
const fraction = 10

// link is one direction of a link, with the queue before it. Its number is that of the topology's
// edge.
type link struct {
	free    Time  // when the last packet in the queue has left
	perByte int64 // ps/1024 that a byte takes
	delay   Time
	least   Time // the least work for which something but waiting happens
	queue   fifo
	to      Node
	arrival int32 // event of the first packet of the queue, in the calendar if there is one
	down    bool
	relay   bool // leads to a node that forwards
	// A cache line ends here.
	stats   LinkStats
	limit   Time // work that fits the queue
	patient Time // the longest wait
	mark    Time // work from which on packets are marked (ECN)
	random  Time // work from which on a tenth of the packets is dropped
}

// LinkStats count what became of the packets of a link.
type LinkStats struct {
	Packets, Bytes uint64 // that entered the queue
	Drops          uint64 // the queue was full, or the link down
	Marks          uint64 // ECN
}

// Queue describes the queue before each link.
type Queue struct {
	Bytes  int  // that wait at most; of the packet that is being sent, those not sent yet
	Wait   Time // for which a packet waits at most, of any size; 0: Bytes alone count
	Mark   int  // bytes from which on packets are marked by ECN; 0: none are
	Random int  // the last bytes of the queue, where a tenth of the packets is dropped; 0: none
}

// Network is a topology with what packets need of it. It does not change, and many runs can share
// it.
type Network struct {
	Graph *topology.Graph
	Hosts []Node // that send and receive

	links    []link
	out      [][]int32 // links that leave a node
	host     []int32   // index in Hosts of a node; none
	relay    []bool    // whether a node forwards
	lossless *Lossless
	entry    []Node // of a host: the node that stands for it in routing tables
}

// NetworkConfig says how a topology becomes a network.
type NetworkConfig struct {
	Rate  int64 // bit/s of links; 0: as the topology has it
	Delay Time  // of links; -1: as the topology has it
	Queue Queue
	// HostQueue is that of the links that leave hosts; nil: as Queue.
	HostQueue *Queue
	// Lossless lets nodes that forward pause their senders; of Queue, Mark counts then, and Bytes
	// for those that choose paths by how full queues are. nil: full queues drop.
	Lossless *Lossless
	// Host tells the nodes that send and receive; nil: nodes with one neighbour, or all if there
	// are none.
	Host func(topology.NodeSpec) bool
	// Relay lets hosts forward for others, as servers of a BCube do.
	Relay bool
	// Scale multiplies the rate of an edge; nil: all stay.
	Scale func(topology.Edge) float64
}

// NewNetwork makes a network of a topology.
func NewNetwork(g *topology.Graph, c NetworkConfig) (*Network, error) {
	n := &Network{Graph: g, links: make([]link, g.Edges()), out: make([][]int32, g.Nodes()),
		host: make([]int32, g.Nodes()), relay: make([]bool, g.Nodes()),
		entry: make([]Node, g.Nodes()), lossless: c.Lossless}
	n.chooseHosts(c)
	for e := range topology.Edge(g.Edges()) {
		l, err := n.linkOf(e, c)
		if err != nil {
			return nil, err
		}
		n.links[e] = l
		from := g.From(e)
		n.out[from] = append(n.out[from], int32(e))
	}
	for v := range n.entry {
		n.entry[v] = Node(v)
		if out := n.out[v]; n.host[v] != none && !n.relay[v] && len(out) == 1 {
			n.entry[v] = n.links[out[0]].to
		}
	}
	if len(n.Hosts) < 2 {
		return nil, fmt.Errorf("network %s has %d hosts; traffic needs at least 2", g.Name(),
			len(n.Hosts))
	}
	if err := n.checkLossless(); err != nil {
		return nil, err
	}
	return n, nil
}

func (n *Network) chooseHosts(c NetworkConfig) {
	isHost := c.Host
	if isHost == nil {
		leaves := 0
		for v := range n.Graph.Nodes() {
			if len(n.Graph.Out(topology.Node(v))) == 1 {
				leaves++
			}
		}
		isHost = func(s topology.NodeSpec) bool {
			v, _ := n.Graph.Lookup(s.Name)
			return leaves < 2 || len(n.Graph.Out(v)) == 1
		}
		if leaves < 2 {
			c.Relay = true
		}
	}
	for v := range n.host {
		n.host[v] = none
		n.relay[v] = true
		if isHost(n.Graph.Node(topology.Node(v))) {
			n.host[v] = int32(len(n.Hosts))
			n.Hosts = append(n.Hosts, Node(v))
			n.relay[v] = c.Relay
		}
	}
}

func (n *Network) linkOf(e topology.Edge, c NetworkConfig) (link, error) {
	spec := n.Graph.Edge(e)
	rate, delay := float64(c.Rate), c.Delay
	if c.Rate == 0 {
		rate = float64(spec.CapacityKbps) * 1000
	}
	if c.Scale != nil {
		rate *= c.Scale(e)
	}
	if rate < 1000 || rate > 1e14 {
		return link{}, fmt.Errorf("link %s to %s has the rate %g bit/s; state one from 1 kb/s to "+
			"100 Tb/s",
			n.Graph.Node(spec.From).Name, n.Graph.Node(spec.To).Name, rate)
	}
	if delay < 0 {
		delay = Time(spec.Delay) * Time(n.Graph.DelayUnit().Nanoseconds()) * Nanosecond
	}
	perByte := 8 * float64(Second) * (1 << fraction) / rate
	l := link{perByte: int64(math.Round(perByte)), delay: delay, to: Node(spec.To),
		queue: empty(), mark: never, random: never, relay: n.relay[spec.To]}
	work := func(bytes int) Time { return Time(float64(bytes) * perByte / (1 << fraction)) }
	queue := c.Queue
	if c.HostQueue != nil && n.host[spec.From] != none {
		queue = *c.HostQueue
	}
	l.limit, l.patient = never/4, never/4
	if queue.Bytes > 0 {
		l.limit = work(queue.Bytes)
	}
	if queue.Wait > 0 {
		l.patient = queue.Wait
	}
	if queue.Mark > 0 {
		l.mark = work(queue.Mark)
	}
	if queue.Random > 0 {
		l.random = work(queue.Bytes - queue.Random)
	}
	l.least = min(l.limit, l.patient, l.mark, l.random)
	return l, nil
}

// rate is in bytes per second.
func (l *link) rate() float64 { return float64(Second) * (1 << fraction) / float64(l.perByte) }

// slot suggests how long a slot of the calendar lasts, so that it has a few events when the network
// is busy.
func (n *Network) slot() Time {
	const packet, perSlot = 1500, 3
	events := 0.0 // per ps
	for i := range n.links {
		events += (1 << fraction) / float64(n.links[i].perByte*packet)
	}
	return Time(min(max(perSlot/events, 1<<4), float64(Millisecond)))
}

// Rate is the rate of a link in bytes per second.
func (n *Network) Rate(link int) float64 { return n.links[link].rate() }

// HostRate is the rate of all links of a host, in bytes per second.
func (n *Network) HostRate(host int) float64 {
	rate := 0.0
	for _, l := range n.out[n.Hosts[host]] {
		rate += n.links[l].rate()
	}
	return rate
}
