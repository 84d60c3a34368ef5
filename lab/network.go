package lab

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"sextant/linux"
)

// network is a fabric being built: for each node its namespace and a netlink
// handle inside it, in the order of the fabric's nodes.
type network struct {
	*fabric
	lab     *Lab
	members []*member
	wire    *member       // where the user-space wires are; nil if there are none
	pass    *ebpf.Program // for ports without a program of the agent
}

type member struct {
	ns     *linux.Netns
	handle *netlink.Handle
}

// newMember makes a namespace.
func newMember(name string) (*member, error) {
	ns, err := linux.CreateNetns(name)
	if err != nil {
		return nil, err
	}
	handle, err := ns.Netlink()
	if err != nil {
		ns.Close()
		return nil, err
	}
	return &member{ns, handle}, nil
}

// buildNetwork makes namespaces, links, addresses and routes. On an error some
// of them are there; the caller removes them by the lab's state.
func buildNetwork(ctx context.Context, l *Lab, f *fabric) (routes int, err error) {
	n := &network{fabric: f, lab: l, members: make([]*member, len(f.nodes))}
	defer n.close()
	if n.pass, err = linux.LoadXDPPass(); err != nil {
		return 0, err
	}
	defer n.pass.Close()
	if err := each(ctx, len(f.nodes), n.makeNode); err != nil {
		return 0, err
	}
	if err := n.makeLinks(ctx); err != nil {
		return 0, err
	}
	if err := each(ctx, len(f.nodes), n.makePorts); err != nil {
		return 0, err
	}
	table := routesOf(f)
	for _, entries := range table {
		routes += len(entries)
	}
	return routes, each(ctx, len(f.nodes),
		func(ctx context.Context, i int) error { return n.makeRoutes(ctx, i, table[i]) })
}

func (n *network) close() {
	for _, m := range append(n.members, n.wire) {
		if m != nil {
			m.handle.Close()
			m.ns.Close()
		}
	}
}

// makeNode makes a node's namespace with its sysctls, its loopback interface
// and the addresses there.
func (n *network) makeNode(_ context.Context, i int) error {
	node := &n.nodes[i]
	m, err := newMember(n.lab.Nodes[i].Namespace)
	if err != nil {
		return err
	}
	n.members[i] = m
	err = m.ns.Do(func() error { return writeSysctls(nodeSysctls(node)) })
	if err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	if err := setUpLoopback(m.handle, node); err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	return nil
}

func (n *network) makeLinks(ctx context.Context) error {
	if n.lab.Wire != nil {
		if err := n.makeWire(); err != nil {
			return err
		}
	}
	for _, link := range n.links {
		if err := ctx.Err(); err != nil {
			return err
		}
		make := n.makeLink
		if link.wire == WireUser {
			make = n.makeWiredLink
		}
		if err := make(link); err != nil {
			return err
		}
	}
	return nil
}

// makeLink makes a veth pair with an end in each of two namespaces. Its ends
// are down.
func (n *network) makeLink(link fabricLink) error {
	a, b := n.port(link.ends[0]), n.port(link.ends[1])
	home, away := n.members[link.ends[0].node], n.members[link.ends[1].node]
	veth := netlink.NewVeth(netlink.NewLinkAttrs())
	veth.Name, veth.HardwareAddr, veth.MTU = a.name, a.mac, link.MTU
	veth.PeerName, veth.PeerHardwareAddr = b.name, b.mac
	veth.PeerNamespace = netlink.NsFd(away.ns.FD())
	if err := home.handle.LinkAdd(veth); err != nil {
		return linux.Failed(err, "make the link %s - %s", link.Ends[0], link.Ends[1])
	}
	return nil
}

// makePorts sets up a node's ends of links, once all links are there.
func (n *network) makePorts(_ context.Context, i int) error {
	node, m := &n.nodes[i], n.members[i]
	for p := range node.ports {
		if err := m.ns.Do(func() error {
			return setUpPort(m.handle, node, &node.ports[p],
				n.pass)
		}); err != nil {
			return fmt.Errorf("interface %s:%s: %w", node.Name, node.ports[p].name, err)
		}
	}
	return nil
}

// makeRoutes gives a node its routes, once all ports are up, and waits until
// its addresses answer.
func (n *network) makeRoutes(ctx context.Context, i int, routes []route) error {
	node, handle := &n.nodes[i], n.members[i].handle
	if err := addLocalRanges(handle, node); err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	if err := addRoutes(handle, node, routes); err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	if err := n.addNeighbours(handle, node); err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	if err := waitForAddresses(ctx, handle, node); err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	return nil
}
