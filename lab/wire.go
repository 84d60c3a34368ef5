package lab

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"sextant/lab/linkemu"
	"sextant/linux"
)

// wireNode is the name of the namespace, the directory and the process of a lab's user-space wires.
// No node can have it.
const wireNode = "_wire"

const wireFile = "wire.json"

// addWire names the wire's parts in the lab's state, if it has user-space wires.
func (l *Lab) addWire(f *fabric, bpfRoot string) {
	for _, link := range f.links {
		l.Links = append(l.Links, Link{Ends: [2]string{link.Ends[0].String(),
			link.Ends[1].String()}, Wire: link.wire, Number: link.number})
	}
	if len(f.wires()) == 0 {
		return
	}
	l.Wire = l.newNode(wireNode, bpfRoot)
	l.Wire.Socket = filepath.Join(l.Wire.Dir, "wire.sock")
	l.Wire.Processes = []string{"wire"}
}

// makeWire makes the namespace of the user-space wires.
func (n *network) makeWire() error {
	m, err := newMember(n.lab.Wire.Namespace)
	if err != nil {
		return err
	}
	n.wire = m
	// The namespace only carries frames: it has no addresses and says nothing of its own.
	return m.ns.Do(func() error {
		return writeSysctls([]Sysctl{{"net.ipv6.conf.all.disable_ipv6", "1"},
			{"net.ipv6.conf.default.disable_ipv6", "1"}})
	})
}

// makeWiredLink makes a veth pair from each end of a link to the wire.
func (n *network) makeWiredLink(link fabricLink) error {
	for side, end := range link.ends {
		p, name := n.port(end), wireInterface(link.number, side)
		veth := netlink.NewVeth(netlink.NewLinkAttrs())
		veth.Name, veth.HardwareAddr, veth.MTU = p.name, p.mac, link.MTU
		veth.PeerName, veth.PeerNamespace = name, netlink.NsFd(n.wire.ns.FD())
		veth.PeerMTU = uint32(link.MTU)
		if err := n.members[end.node].handle.LinkAdd(veth); err != nil {
			return linux.Failed(err, "make the link %s - %s", link.Ends[0], link.Ends[1])
		}
		if err := n.wire.ns.Do(func() error {
			return setUpWireEnd(n.wire.handle, name,
				n.pass)
		}); err != nil {
			return fmt.Errorf("the wire's end of %s: %w", link.Ends[side], err)
		}
	}
	return nil
}

// setUpWireEnd makes the wire's end receive what XDP programs send, and each frame as it was sent.
func setUpWireEnd(handle *netlink.Handle, name string, pass *ebpf.Program) error {
	if err := linux.AttachXDP(name, pass); err != nil {
		return err
	}
	if err := linux.SetOffload(name, linux.GRO, false); err != nil { // it came with the XDP program
		return err
	}
	link, err := handle.LinkByName(name)
	if err != nil {
		return linux.Failed(err, "find it")
	}
	return linux.Failed(handle.LinkSetUp(link), "bring it up")
}

// startWire starts the process that carries the frames.
func (h *held) startWire(ctx context.Context, f *fabric) error {
	node := h.lab.Wire
	if node == nil {
		return nil
	}
	file := filepath.Join(node.Dir, wireFile)
	if err := (linkemu.Config{Socket: node.Socket, Links: f.wires()}).Write(file); err != nil {
		return err
	}
	s := starter{lab: h.lab, node: node, reports: h.reports, patience: h.opts.ReadyTimeout}
	return s.process(ctx, ProcessSpec{
		Name:    node.Processes[0],
		Command: Command{Args: rewriteAll(h.opts.WireProcess, wordsOf(h.lab, node, h.opts.Self))},
		// The Go runtime runs as many threads at a time as it counts processors. One that others
		// keep from running would keep the thread that carries the frames waiting, whatever its
		// priority.
		Env:   []string{"GOMAXPROCS=4"},
		Ready: Ready{ReadyHTTP, node.Socket},
	})
}
