package lab

import (
	"net"
	"net/netip"

	"sextant/lab/netem"
)

// fabric is the network of a Spec worked out: which node has which ports, with
// which addresses, and who is at the other end.
type fabric struct {
	nodes []fabricNode
	links []fabricLink
}

type fabricNode struct {
	*NodeSpec
	ports  []port
	isEdge bool
}

// port is an interface of a node at the end of a link.
type port struct {
	name      string
	mac       net.HardwareAddr
	linkLocal netip.Addr
	claimed   bool // the node's agent runs an XDP program on it
	peer      portID
	link      *LinkSpec
	side      int           // which end of the link it is
	wire      WireKind      // what impairs the link, "" for nothing
	profile   netem.Profile // of what the port sends, if something does
}

// portID finds a port: by the index of its node and its index there.
type portID struct{ node, port int }

type fabricLink struct {
	*LinkSpec
	ends   [2]portID
	wire   WireKind // never auto
	number int      // of a user-space wire
}

func (f *fabric) port(id portID) *port { return &f.nodes[id.node].ports[id.port] }

// newFabric works out the network of a valid Spec.
func newFabric(spec *Spec) (*fabric, error) {
	f := &fabric{nodes: make([]fabricNode, len(spec.Nodes))}
	index := map[string]int{}
	claimed := map[Endpoint]bool{}
	for i := range spec.Nodes {
		node := &spec.Nodes[i]
		index[node.Name] = i
		c, err := readClaims(node.Sextant)
		if err != nil {
			return nil, err
		}
		f.nodes[i] = fabricNode{NodeSpec: node, isEdge: c.Edge != nil}
		for _, iface := range c.interfaces() {
			claimed[Endpoint{node.Name, iface}] = true
		}
	}
	for i := range spec.Links {
		link := fabricLink{LinkSpec: &spec.Links[i]}
		for side, end := range link.Ends {
			link.ends[side] = f.addPort(index[end.Node], end.Interface, link.LinkSpec, claimed[end])
			f.port(link.ends[side]).side = side
		}
		f.port(link.ends[0]).peer = link.ends[1]
		f.port(link.ends[1]).peer = link.ends[0]
		f.links = append(f.links, link)
	}
	return f, nil
}

// addPort gives a node its next port. Its Ethernet address tells the numbers
// of node and port, both from 1: 02:5e:nn:nn:pp:pp, locally administered. So
// its link-local address is known before the kernel makes the interface.
func (f *fabric) addPort(node int, name string, link *LinkSpec, claimed bool) portID {
	id := portID{node, len(f.nodes[node].ports)}
	n, p := node+1, id.port+1
	mac := net.HardwareAddr{0x02, 0x5e, byte(n >> 8), byte(n), byte(p >> 8), byte(p)}
	f.nodes[node].ports = append(f.nodes[node].ports, port{
		name:      name,
		mac:       mac,
		linkLocal: linkLocalOf(mac),
		claimed:   claimed,
		link:      link,
	})
	return id
}

// linkLocalOf is fe80::/64 with the modified EUI-64 of an Ethernet address
// (RFC 4291 appendix A).
func linkLocalOf(mac net.HardwareAddr) netip.Addr {
	return netip.AddrFrom16([16]byte{
		0xfe, 0x80, 8: mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	})
}
