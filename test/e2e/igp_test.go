package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/controller"
	"sextant/lab"
	"sextant/te/protection"
	"sextant/te/topology"
	"sextant/te/topology/format"
)

// An IGP of FRRouting: its daemon, and what that is told of an interface, and of a router by its
// number.
type igp struct{ daemon, iface, router string }

var igps = map[string]igp{
	"ospf6": {"ospf6d", `interface %s
 ipv6 ospf6 area 0.0.0.0
 ipv6 ospf6 network point-to-point
 ipv6 ospf6 cost 10
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 4
`, `interface lo
 ipv6 ospf6 area 0.0.0.0
router ospf6
 ospf6 router-id 192.0.2.%d
 timers throttle spf 0 50 500
`},
	"isis": {"isisd", `interface %s
 ipv6 router isis 1
 isis network point-to-point
 isis metric 10
 isis hello-interval 1
`, `interface lo
 ipv6 router isis 1
 isis passive
router isis 1
 net 49.0001.0000.0000.%04d.00
 is-type level-2-only
 topology ipv6-unicast
 lsp-gen-interval 1
`},
}

// withIGP lets all routers of the lab run FRRouting with an IGP, over the links that the head-end's
// topology has, which it reads from there; nothing is probed. FRRouting leaves the kernel's routes
// alone: those of the lab are the same.
func withIGP(name string) func(*lab.Spec) {
	return func(s *lab.Spec) {
		interfaces := map[string][]string{}
		for _, l := range s.Links {
			if strings.HasPrefix(l.Ends[0].Node, "host") || strings.HasPrefix(l.Ends[1].Node,
				"host") || l.Ends[0].Interface == "back" {
				continue
			}
			for _, end := range l.Ends {
				interfaces[end.Node] = append(interfaces[end.Node], end.Interface)
			}
		}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if interfaces[n.Name] == nil {
				continue
			}
			igps[name].runOn(n, name, i+1, interfaces[n.Name])
			if n.Name != "r1" {
				continue
			}
			n.Files = append(n.Files, lab.File{Name: "controller.yaml",
				Content: "topology: " + name + "\nfrr: \"{dir}/frr\"\n" +
					"block: \"fcbb:bb00::/32\"\napi: {socket: \"{dir}/controller.sock\"}\n"})
			n.Processes = append(n.Processes, lab.ProcessSpec{Name: "controller",
				Command: lab.Command{Args: []string{"{self}", "controller",
					"{dir}/controller.yaml"}}})
			n.Sextant = regexp.MustCompile(`topology: .*`).ReplaceAllString(n.Sextant,
				"topology: "+name+"\n  frr: \"{dir}/frr\"\n  probe: {interval: 0s}")
			n.Sextant = regexp.MustCompile(`(?m)^ +links: .*\n?`).ReplaceAllString(n.Sextant, "")
			if name == "ospf6" { // which knows no names
				n.Sextant = strings.ReplaceAll(n.Sextant, "\n  node: r1",
					"\n  node: "+routerID(i+1))
			}
		}
	}
}

func routerID(number int) string { return fmt.Sprintf("192.0.2.%d", number) }

// runOn makes a node a router with a number.
func (g igp) runOn(n *lab.NodeSpec, name string, number int, interfaces []string) {
	text := "hostname " + n.Name + "\n"
	for _, i := range interfaces {
		text += fmt.Sprintf(g.iface, i)
	}
	text += fmt.Sprintf(g.router, number)
	n.Files = append(n.Files,
		lab.File{Name: "frr/zebra.conf", Content: "route-map none deny 1\nipv6 protocol " + name +
			" route-map none\n"},
		lab.File{Name: "frr/" + g.daemon + ".conf", Content: text})
	own := strings.TrimSuffix(n.Announce[0].Addr().String(), "::") + "::ffff/48"
	n.Exec = append(n.Exec,
		lab.Command{Args: []string{"ip", "-6", "address", "add", own, "dev", "lo", "nodad"}},
		lab.Command{Args: []string{"chown", "-R", "frr:frr", "{dir}/frr"}})
	for _, daemon := range []string{"zebra", g.daemon} {
		n.Processes = append(n.Processes, lab.ProcessSpec{
			Name: daemon, Ready: lab.Ready{Kind: lab.ReadyUnix,
				Target: "{dir}/frr/" + daemon + ".vty"},
			Command: lab.Command{Args: []string{"/usr/lib/frr/" + daemon, "--vty_socket",
				"{dir}/frr", "--vty_port", "0", "--log", "stdout",
				"--socket", "{dir}/frr/zserv.api", "--config_file", "{dir}/frr/" + daemon + ".conf",
				"--pid_file", "{dir}/frr/" + daemon + ".pid"}},
		})
	}
}

// network is the topology as the head-end has read it.
func (p *protected) network() *topology.Graph {
	p.t.Helper()
	told, err := p.headend.Topology(p.t.Context())
	must(p.t, err)
	g, err := format.Read(format.File{Name: "network", Text: []byte(told.NodeLink)},
		format.Options{Format: format.NodeLink})
	must(p.t, err)
	return g
}

// ladder is the lab's network, by the names of routers: every direction of a link with its metric,
// and the locators.
func ladder(name func(string) string) (links, locators []string) {
	link := func(a, b string) {
		links = append(links, name(a)+">"+name(b)+" 10", name(b)+">"+name(a)+" 10")
	}
	locators = []string{name("r1") + " fcbb:bb00:1::", name("r7") + " fcbb:bb00:7::"}
	for i := '1'; i <= '4'; i++ {
		b, c := "b"+string(i), "c"+string(i)
		link("r1", b)
		link(b, c)
		link(c, "r7")
		locators = append(locators, name(b)+" fcbb:bb00:"+b+"::", name(c)+" fcbb:bb00:"+c+"::")
	}
	slices.Sort(links)
	slices.Sort(locators)
	return links, locators
}

// told writes a graph as ladder does.
func told(g *topology.Graph) (links, locators []string) {
	for e := range topology.Edge(g.Edges()) {
		links = append(links, fmt.Sprintf("%s %d", protection.LinkOf(g, e), g.Weight(e)))
	}
	for v := range topology.Node(g.Nodes()) {
		locators = append(locators, fmt.Sprintf("%s %s", g.Node(v).Name, g.Node(v).SID.Addr()))
	}
	slices.Sort(links)
	slices.Sort(locators)
	return links, locators
}

// controller is a client of the controller that runs on a node.
func (p *protected) controller(node string) *controller.Client {
	p.t.Helper()
	n, err := p.lab.Node(node)
	must(p.t, err)
	return controller.NewClient(filepath.Join(n.Dir, "controller.sock"))
}

// awaitDown waits until a controller knows as many links, and just these as down.
func (p *protected) awaitDown(c *controller.Client, links int, down []string) {
	p.t.Helper()
	slices.Sort(down)
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		known, err := c.Links(p.t.Context())
		var got []string
		for _, l := range known {
			if !l.Up {
				got = append(got, l.From+">"+l.To)
			}
		}
		slices.Sort(got)
		if err == nil && len(known) == links && slices.Equal(got, down) {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("never: %d links, down %q; %d, down %q, %v", links, down, len(known), got,
				err)
		}
	}
}

// The topology is that of FRRouting's link-state database: the lab's links and locators, no more
// and no less. Nothing is probed; when a link goes down, the IGP says so, and the paths leave it
// without a packet lost. A controller beside the router follows the same topology.
func TestProtectionOnAnIGP(t *testing.T) {
	t.Parallel()
	for name := range igps {
		t.Run(name, func(t *testing.T) {
			p := newProtectedBy(t, withIGP(name))
			called := func(n string) string { return n }
			if name == "ospf6" {
				ids := map[string]string{}
				for i, n := range p.lab.Nodes {
					ids[n.Name] = routerID(i + 1)
				}
				called = func(n string) string { return ids[n] }
			}
			links, locators := told(p.network())
			if wantLinks, wantLocators := ladder(called); !slices.Equal(links, wantLinks) ||
				!slices.Equal(locators, wantLocators) {
				t.Errorf("links %q, want %q\nlocators %q, want %q", links, wantLinks, locators,
					wantLocators)
			}
			beside := p.controller("r1")
			p.awaitDown(beside, len(links), nil)
			wanted := spec(2, 0)
			wanted.From, wanted.To = called("r1"), called("r7")
			view, err := p.headend.Protect(t.Context(), "video", wanted, false)
			must(t, err)
			gone, router := view.Paths[0].Links[1], ""
			for i := '1'; i <= '4'; i++ {
				if gone == called("b"+string(i))+">"+called("c"+string(i)) {
					router = "b" + string(i)
				}
			}
			p.begin()
			time.Sleep(200 * time.Millisecond)
			began := time.Now()
			must(t, p.lab.Exec(router, exec.Command("ip", "link", "set", "c", "down")))
			after := p.await("the paths leave the link that is down", func(x api.Protection) bool {
				leaves := len(x.Paths) >= 2 && x.State == api.Protected
				for _, path := range x.Paths {
					leaves = leaves && !slices.Contains(path.Links, gone)
				}
				return leaves
			})
			t.Logf("link %s went down; another path carries %v later", gone,
				after.Changed.Sub(began).Round(time.Millisecond))
			from, to, _ := strings.Cut(gone, ">")
			p.awaitDown(beside, len(links), []string{gone, to + ">" + from})
			time.Sleep(200 * time.Millisecond)
			p.lostNothing()
		})
	}
}
