package e2e_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/lab"
	"sextant/linux"
	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/segment/sidlist"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/te/topology/format"
)

const (
	// decapsulate is the function of all nodes that takes packets out of a list: End.DT6.
	decapsulate = srv6.CSID(0xf0d6)
	// probes are sent along each path, and noise is how many other packets a link may carry
	// meanwhile: neighbour discovery.
	probes, noise = 100, 40
	probePort     = 4433
)

// provider is a network of an ISP as a lab: a namespace for each router, links, routes by the IGP's
// weights, and the kernel's End, End.X and End.DT6 on every router.
type provider struct {
	t       *testing.T
	lab     *lab.Lab
	graph   *topology.Graph
	plan    sidlist.Plan
	names   []string                       // of nodes
	ports   map[topology.Edge]lab.Endpoint // what sends on an edge
	nodes   []*linux.Netns
	handles []*netlink.Handle
}

// Segment lists of the path engine make packets take the links that it promises and no others, told
// by the counters of all links.
func TestSegmentListsTakeTheirLinks(t *testing.T) {
	needsRoot(t)
	graph, err := dataset.Open("paper-table3/AS3967")
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, graph)
	engine, err := segment.New(graph.All())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 0))
	checked, shared := 0, 0
	for range 40 {
		from, to := topology.Node(random.IntN(graph.Nodes())),
			topology.Node(random.IntN(graph.Nodes()))
		if from == to {
			continue
		}
		answer, err := engine.Disjoint(segment.Query{From: from, To: to, MaxSIDs: 6})
		if err != nil {
			t.Fatal(err)
		}
		for i, path := range answer.Paths {
			p.check(from, to, i, path)
			checked++
			shared += len(path.Edges)
		}
	}
	t.Logf("%d paths over %d links in all", checked, shared)
	if checked < 60 {
		t.Errorf("only %d paths were there to be checked", checked)
	}
}

// newProvider brings the network up until the end of the test.
func newProvider(t *testing.T, graph *topology.Graph) *provider {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{
		t: t, graph: graph, plan: sidlist.Plan{Graph: graph, Block: block, Decap: decapsulate},
		ports: map[topology.Edge]lab.Endpoint{},
	}
	text, err := format.Write(graph, format.Lab)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := lab.Parse("provider.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	spec.Name = newName()
	p.prepare(spec)
	began := time.Now()
	l := bringUp(t, spec, nil)
	t.Logf("%d routers and %d links are up after %v", len(spec.Nodes), len(spec.Links),
		time.Since(began).Round(time.Millisecond))
	p.lab = l
	for _, node := range l.Nodes {
		ns, err := linux.OpenNetns(node.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		handle, err := ns.Netlink()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(handle.Close)
		p.nodes, p.handles = append(p.nodes, ns), append(p.handles, handle)
	}
	return p
}

// prepare gives the routers of a lab that was written from the graph their SIDs, and addresses to
// receive probes at.
func (p *provider) prepare(spec *lab.Spec) {
	number := 0
	batches := make([]strings.Builder, len(spec.Nodes))
	for e, r := range p.graph.Links() {
		link := &spec.Links[number]
		link.RateBits = 0
		for side, edge := range []topology.Edge{e, r} {
			node, port := p.graph.From(edge), link.Ends[side]
			p.ports[edge] = port
			// End.X wants a next hop that a route leads to, so the ends of links have addresses of
			// their own.
			fmt.Fprintf(&batches[node], "address add fd00:e:%x::%d/64 dev %s nodad\n", number,
				side+1, port.Interface)
			fmt.Fprintf(&batches[node],
				"route add %s/64 encap seg6local action End.X nh6 fd00:e:%x::%d dev %s\n",
				p.address(p.plan.Link(edge)), number, 2-side, port.Interface)
		}
		number++
	}
	for v := range spec.Nodes {
		node, sid := &spec.Nodes[v], p.address(p.plan.Node(topology.Node(v)))
		p.names = append(p.names, node.Name)
		ids, err := p.plan.Block.CSIDs(sid)
		if err != nil {
			p.t.Fatal(err)
		}
		decap, err := p.plan.Block.Carrier(ids[0], decapsulate)
		if err != nil {
			p.t.Fatal(err)
		}
		node.Announce = append(node.Announce, netip.PrefixFrom(sid, 48))
		node.Local = append(node.Local, probeRange(topology.Node(v)))
		fmt.Fprintf(&batches[v], "route add %s/128 encap seg6local action End dev eth0\n", sid)
		fmt.Fprintf(&batches[v],
			"route add %s/64 encap seg6local action End.DT6 table local dev eth0\n", decap)
		node.Files = append(node.Files, lab.File{Name: "sids.batch", Content: batches[v].String()})
		node.Exec = append(node.Exec, lab.Command{Shell: "ip -6 -batch {dir}/sids.batch"})
	}
	p.addProber(spec)
}

// addProber adds a host with a link to every router, which no route leads over. Probes come in from
// there, as a provider's traffic does: a router's kernel does not execute its own SIDs on packets
// that it makes itself.
func (p *provider) addProber(spec *lab.Spec) {
	var batch strings.Builder
	for v, name := range p.names {
		link := lab.LinkSpec{Ends: [2]lab.Endpoint{{Node: "prober", Interface: proberPort(v)},
			{Node: name, Interface: "prober"}}}
		link.Weights = [2]uint32{1 << 31, 1 << 31}
		spec.Links = append(spec.Links, link)
		fmt.Fprintf(&batch, "address add fd00:98:%x::1/64 dev %s nodad\n", v+1, proberPort(v))
		fmt.Fprintf(&batch, "route add fd00:99::/32 via fd00:98:%x::2 dev %s metric %d\n", v+1,
			proberPort(v), v+1)
		router := &spec.Nodes[v]
		router.Exec = append(router.Exec,
			lab.Command{Shell: fmt.Sprintf("ip -6 address add fd00:98:%x::2/64 dev prober nodad",
				v+1)})
	}
	spec.Nodes = append(spec.Nodes, lab.NodeSpec{
		Name: "prober", Addresses: []netip.Addr{netip.MustParseAddr("fd00:98::1")},
		Files: []lab.File{{Name: "routes.batch", Content: batch.String()}},
		Exec:  []lab.Command{{Shell: "ip -6 -batch {dir}/routes.batch"}},
	})
}

func proberPort(v int) string { return fmt.Sprintf("r%d", v) }

func (p *provider) address(a netip.Addr, err error) netip.Addr {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

// probeRange is a node's own, and announced to nobody: only a segment list leads there.
func probeRange(v topology.Node) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd00:99:%x::/64", int(v)+1))
}

// check sends probes along a path, and looks at the counters of all links.
func (p *provider) check(from, to topology.Node, number int, path segment.Path) {
	p.t.Helper()
	list, err := p.plan.List(path)
	if err != nil {
		p.t.Fatal(err)
	}
	prefix := probeRange(to).Addr().As16()
	prefix[13], prefix[15] = byte(from)+1, byte(number)+1
	target := netip.AddrFrom16(prefix)
	var out, in net.PacketConn
	p.inside(to, func() (err error) {
		in, err = net.ListenPacket("udp6", netip.AddrPortFrom(target, probePort).String())
		return err
	})
	defer in.Close()
	list.Carriers = nil // the routers know whole SIDs
	route := list.Route(netip.PrefixFrom(target, 128), "eth0", 0)
	on(p.t, p.lab, p.names[from], "/bin/sh", "-c", route)
	through := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		failure := c.Control(func(fd uintptr) {
			err = unix.BindToDevice(int(fd),
				proberPort(int(from)))
		})
		return errors.Join(failure, err)
	}}
	p.inside(topology.Node(len(p.names)), func() (err error) {
		out, err = through.ListenPacket(p.t.Context(), "udp6", "[::]:0")
		return err
	})
	defer out.Close()
	name := fmt.Sprintf("path %d from %s to %s, %s", number+1, p.names[from], p.names[to], list)
	p.send(out, in, target, 1, name) // neighbours get to know one another
	before := p.sent()
	p.send(out, in, target, probes, name)
	after := p.sent()
	for e, port := range p.ports {
		carried, promised := after[e]-before[e], slices.Contains(path.Edges, e)
		if promised && (carried < probes || carried > probes+noise) || !promised &&
			carried > noise {
			p.t.Errorf("%s: %s sent %d packets; the path uses this link: %v", name, port, carried,
				promised)
		}
	}
}

func (p *provider) inside(v topology.Node, f func() error) {
	p.t.Helper()
	if err := p.nodes[v].Do(f); err != nil {
		p.t.Fatalf("on node %d: %v", v, err)
	}
}

// send sends packets and waits for all of them.
func (p *provider) send(out, in net.PacketConn, target netip.Addr, count int, name string) {
	p.t.Helper()
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(target, probePort))
	for range count {
		if _, err := out.WriteTo([]byte("probe"), to); err != nil {
			p.t.Fatalf("%s: %v", name, err)
		}
	}
	if err := in.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	buffer := make([]byte, 16)
	for i := range count {
		if _, _, err := in.ReadFrom(buffer); err != nil {
			p.t.Fatalf("%s: %d of %d packets came: %v", name, i, count, err)
		}
	}
}

// sent reads how many packets were sent on each edge.
func (p *provider) sent() map[topology.Edge]int {
	p.t.Helper()
	counters := make([]map[string]int, len(p.nodes))
	for v, handle := range p.handles {
		links, err := handle.LinkList()
		if err != nil {
			p.t.Fatal(err)
		}
		counters[v] = map[string]int{}
		for _, link := range links {
			counters[v][link.Attrs().Name] = int(link.Attrs().Statistics.TxPackets)
		}
	}
	sent := map[topology.Edge]int{}
	for e, port := range p.ports {
		sent[e] = counters[p.graph.From(e)][port.Interface]
	}
	return sent
}
