package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lab"
)

var (
	edgeNames     = []string{"edge1", "edge2", "edge3"}
	edgesServices = []string{"rendezvous", "exact", "ecmp"}
	edgesServers  = []string{"web1", "web2", "web3", "web4"}
)

// vip is the address of a service of edges.yaml.
func vip(service string) string {
	return fmt.Sprintf("2001:db8:80::%d", 1+slices.Index(edgesServices, service))
}

// edges are those of the lab of edges.yaml, and the router before them.
type edges struct {
	t         *testing.T
	lab       *lab.Lab
	processes map[string]*os.Process
	networks  map[string]network              // of edges that are powered off
	hops      map[string]*netlink.NexthopInfo // of the router, to each edge
	off       map[string]bool                 // who the router knows to be away
	states    map[string]config.BackendState  // of the servers, as the operator has decided
	random    *rand.Rand
	inClient  func(func() error) error // calls a function inside the client's network namespace
}

// network is what an interface loses with its link.
type network struct {
	addresses []netlink.Addr
	routes    []netlink.Route
}

// upEdges brings the lab up until the end of the test; the edges know each other if they have
// peers.
func upEdges(t *testing.T, peers bool) *edges {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile("testdata/edges.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := lab.Parse("edges.yaml",
		[]byte(strings.ReplaceAll(string(text), "NAME", newName())))
	if err != nil {
		t.Fatal(err)
	}
	for i := range spec.Nodes {
		var others []string
		for n, other := range edgeNames {
			if peers && other != spec.Nodes[i].Name {
				others = append(others, fmt.Sprintf(`"[fd00:5e::e%d]:9477"`, n+1))
			}
		}
		spec.Nodes[i].Sextant = strings.ReplaceAll(spec.Nodes[i].Sextant, "PEERS",
			strings.Join(others, ", "))
	}
	e := &edges{
		t: t, processes: map[string]*os.Process{}, networks: map[string]network{},
		hops: map[string]*netlink.NexthopInfo{},
		off:  map[string]bool{}, states: map[string]config.BackendState{},
		random: rand.New(rand.NewPCG(3, 11)),
	}
	e.lab = bringUp(t, spec, func(event lab.Event) {
		if started, ok := event.(lab.ProcessStarted); ok && slices.Contains(edgeNames,
			started.Node) {
			e.processes[started.Node], _ = os.FindProcess(started.PID)
		}
	})
	e.learnHops()
	for _, edge := range edgeNames {
		e.blackHole(edge)
	}
	client := namespaceOf(t, e.lab, "client")
	t.Cleanup(func() { client.Close() })
	e.inClient = client.Do
	return e
}

func (e *edges) client(edge string) *api.Client {
	return api.NewClient(nodeOf(e.t, e.lab, edge).Socket)
}

// vipRoutes are the router's.
func vipRoutes() (routes []netlink.Route, err error) {
	for _, service := range edgesServices {
		dst, err := netlink.ParseIPNet(vip(service) + "/128")
		if err != nil {
			return nil, err
		}
		found, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Dst: dst},
			netlink.RT_FILTER_DST)
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("the router has %d routes to service %s, want one: %w",
				len(found), service, err)
		}
		routes = append(routes, found...)
	}
	return routes, nil
}

func (e *edges) learnHops() {
	e.t.Helper()
	inside(e.t, e.lab, "router", func() error {
		routes, err := vipRoutes()
		if err != nil {
			return err
		}
		for _, hop := range routes[0].MultiPath {
			link, err := netlink.LinkByIndex(hop.LinkIndex)
			if err != nil {
				return err
			}
			e.hops[link.Attrs().Name] = &netlink.NexthopInfo{LinkIndex: hop.LinkIndex, Gw: hop.Gw}
		}
		if len(e.hops) != len(edgeNames) {
			return fmt.Errorf("the router has %d edges, want %d", len(e.hops), len(edgeNames))
		}
		return nil
	})
}

// blackHole drops what comes for the VIPs while no program does something better with it. A router
// may have kept packets for an edge that was away; the kernel would answer them with errors, which
// end connections that are being opened.
func (e *edges) blackHole(edge string) {
	e.t.Helper()
	inside(e.t, e.lab, edge, func() error {
		for _, service := range edgesServices {
			dst, err := netlink.ParseIPNet(vip(service) + "/128")
			if err == nil {
				err = netlink.RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_BLACKHOLE})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// announce tells the router whether an edge is there.
func (e *edges) announce(edge string, there bool) {
	e.t.Helper()
	e.off[edge] = !there
	var hops []*netlink.NexthopInfo
	for _, name := range edgeNames {
		if !e.off[name] {
			hops = append(hops, e.hops[name])
		}
	}
	inside(e.t, e.lab, "router", func() error {
		routes, err := vipRoutes()
		if err != nil {
			return err
		}
		for _, r := range routes {
			replacement := netlink.Route{Dst: r.Dst, Priority: r.Priority, Protocol: r.Protocol,
				MultiPath: hops}
			if err := netlink.RouteReplace(&replacement); err != nil {
				return err
			}
		}
		return nil
	})
}

// kill ends an edge's agent as nobody can prevent.
func (e *edges) kill(edge string) {
	e.t.Helper()
	if err := e.processes[edge].Kill(); err != nil {
		e.t.Fatal(err)
	}
	e.processes[edge].Wait() // the lab may have been faster
}

// start starts an edge's agent and waits until it answers.
func (e *edges) start(edge string) {
	e.t.Helper()
	e.processes[edge] = startAgent(e.t, e.lab, edge)
	awaitAgent(e.t, e.lab, edge, edgesPatience)
}

// powerOff takes an edge off the network, with all that it knew. The router notices later.
func (e *edges) powerOff(edge string) {
	e.t.Helper()
	inside(e.t, e.lab, edge, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := netlink.AddrList(link, netlink.FAMILY_V6)
		if err != nil {
			return err
		}
		routes, err := netlink.RouteList(link, netlink.FAMILY_V6)
		if err != nil {
			return err
		}
		e.networks[edge] = network{addresses, routes}
		return netlink.LinkSetDown(link)
	})
	time.Sleep(unnoticed)
	e.announce(edge, false)
	e.kill(edge)
	n := nodeOf(e.t, e.lab, edge)
	for _, memory := range []string{n.BPF, filepath.Join(n.Dir, "state")} {
		if err := os.RemoveAll(memory); err != nil {
			e.t.Fatal(err)
		}
	}
}

// powerOn brings an edge back that knows nothing but its node file, which says what the operator
// has decided.
func (e *edges) powerOn(edge string) {
	e.t.Helper()
	inside(e.t, e.lab, edge, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
		for _, a := range e.networks[edge].addresses {
			if err := netlink.AddrReplace(link, &a); err != nil {
				return err
			}
		}
		for _, r := range e.networks[edge].routes {
			if err := netlink.RouteReplace(&r); err != nil {
				return fmt.Errorf("route %v: %w", r, err)
			}
		}
		return nil
	})
	e.writeNodeFile(edge)
	e.start(edge)
	e.announce(edge, true)
}

func (e *edges) writeNodeFile(edge string) {
	e.t.Helper()
	path := fileOf(e.t, e.lab, edge)
	text, err := os.ReadFile(path)
	if err != nil {
		e.t.Fatal(err)
	}
	node, err := config.Parse(path, text)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, s := range node.Edge.Services {
		for i, b := range s.Backends {
			if state, decided := e.states[b.Name]; decided {
				s.Backends[i].State = state
			}
		}
	}
	if text, err = config.Marshal(node); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		e.t.Fatal(err)
	}
}
