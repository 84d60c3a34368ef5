package datapath

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

// The network in which head-end and egress are tested: two hosts, two provider edges, and between
// these two (or three) routers that know of SRv6 what their kernel does.
//
//	       +- r2 -+
//	h1 - pe1      pe2 - h2
//	       +- r3 -+
type network struct {
	t     testing.TB
	nodes map[string]*linux.Netns
	dir   string // for pins
	mode  Mode   // of the head-end's program on h1

	numbers map[uint32]uint64 // with which the head-end's policies go on
}

// newNetwork makes the namespaces, links and routes. Router r has the SIDs fcbb:0:r::1 (End) and
// fcbb:0:r::e (End.X to pe2); pe2 has fcbb:0:4::/48.
func newNetwork(t testing.TB, routers ...string) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("missing privilege: network namespaces need root")
	}
	bpffs, _, err := linux.BPFFS()
	must(t, err)
	dir, err := os.MkdirTemp(bpffs, "sextant-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &network{t: t, nodes: map[string]*linux.Netns{}, dir: dir, mode: Native}
	for _, name := range append([]string{"h1", "pe1", "pe2", "h2"}, routers...) {
		n.addNode(name)
	}
	n.connect("h1", "pe1", 1)
	n.connect("h2", "pe2", 2)
	n.ip("h1", "route add default via 2001:db8:1::1", "route add default via 192.0.1.1")
	n.ip("h2", "route add default via 2001:db8:2::1", "route add default via 192.0.2.1")
	for i, r := range routers {
		number := strings.TrimPrefix(r, "r")
		n.connect(r, "pe1", 10+i)
		n.connect(r, "pe2", 20+i)
		locator := "fcbb:0:" + number + "::"
		n.ip("pe1", fmt.Sprintf("route add %s/48 via 2001:db8:%d::2", locator, 10+i))
		n.ip(r, fmt.Sprintf("route add fcbb:0:4::/48 via 2001:db8:%d::1", 20+i),
			fmt.Sprintf("route add %s1/128 encap seg6local action End count dev pe2", locator),
			fmt.Sprintf("route add %se/128 encap seg6local action End.X nh6 2001:db8:%d::1 count "+
				"dev pe2", locator, 20+i))
	}
	n.ip("pe1", "route add 2001:db8:2::/64 via 2001:db8:10::2", "addr add fd00:5e::1/128 dev lo")
	// The way back is plain.
	n.ip("pe2", "route add 2001:db8:1::/64 via 2001:db8:20::2",
		"route add 2001:db8:10::/64 via 2001:db8:20::2",
		"route add 192.0.1.0/24 via 192.0.20.2", "addr add fd00:5e::2/128 dev lo")
	n.ip(routers[0], "route add 2001:db8:1::/64 via 2001:db8:10::1",
		"route add 2001:db8:2::/64 via 2001:db8:20::1",
		"route add 192.0.1.0/24 via 192.0.10.1")
	n.accept("h1", "pe1") // it is sent to by XDP
	for _, r := range routers {
		n.accept(r, "pe1")
	}
	return n
}

func (n *network) name(node string) string { return fmt.Sprintf("sxt%d-%s", os.Getpid(), node) }

func (n *network) addNode(name string) {
	n.t.Helper()
	ns, err := linux.CreateNetns(n.name(name))
	must(n.t, err)
	n.nodes[name] = ns
	n.t.Cleanup(n.remove)
	n.do(name, func() error {
		for _, key := range []string{"net.ipv6.conf.all.forwarding", "net.ipv4.ip_forward"} {
			if err := linux.WriteSysctl(key, "1"); err != nil {
				return err
			}
		}
		return linux.WriteSysctl("net.ipv6.conf.default.accept_dad", "0")
	})
	n.ip(name, "link set lo up")
}

// remove deletes the namespaces. It may be called twice.
func (n *network) remove() {
	for name, ns := range n.nodes {
		ns.Close()
		_ = linux.DeleteNetns(n.name(name))
	}
	clear(n.nodes)
}

// connect joins two nodes by a veth pair, whose ends have the other node's name. The second one is
// a router and has address 1.
func (n *network) connect(a, b string, number int) {
	n.t.Helper()
	n.ip(a, fmt.Sprintf("link add %s type veth peer name %s netns %s", b, a, n.name(b)))
	for host, end := range map[int][2]string{2: {a, b}, 1: {b, a}} {
		n.ip(end[0], fmt.Sprintf("addr add 2001:db8:%d::%d/64 dev %s nodad", number, host, end[1]),
			fmt.Sprintf("addr add 192.0.%d.%d/24 dev %s", number, host, end[1]),
			fmt.Sprintf("link set %s address 02:00:00:00:%02x:%02x up", end[1], number, host))
		for _, neighbour := range []string{"2001:db8:%d::%d",
			"192.0.%d.%d"} { // known, so that no packet has to wait
			n.ip(end[0], fmt.Sprintf("neigh replace "+neighbour+
				" lladdr 02:00:00:00:%02x:%02x dev %s", number, 3-host, number, 3-host, end[1]))
		}
		n.do(end[0], func() error { return linux.SetOffload(end[1], linux.TxChecksum, false) })
	}
}

// accept makes an interface receive what a program on its peer sends.
func (n *network) accept(node string, interfaces ...string) {
	n.t.Helper()
	pass, err := linux.LoadXDPPass()
	must(n.t, err)
	n.t.Cleanup(func() { pass.Close() })
	for _, i := range interfaces {
		n.do(node, func() error { return linux.AttachXDP(i, pass) })
	}
}

func (n *network) do(node string, f func() error) {
	n.t.Helper()
	must(n.t, n.nodes[node].Do(f))
}

func (n *network) ip(node string, commands ...string) {
	n.t.Helper()
	var lines strings.Builder
	for _, command := range commands {
		family := "-6"
		if strings.Contains(command, " 192.0.") {
			family = "-4"
		}
		fmt.Fprintln(&lines, family, "-n", n.name(node), command)
	}
	must(n.t, linuxtest.IP(lines.String()))
}

var mergeSID1 = netip.MustParsePrefix("fcbb:0:4:0:f::/80")

// openHeadend loads the head-end of pe1 with a table.
func (n *network) openHeadend(rules []srpolicy.Rule, policies ...srpolicy.Policy) *Headend {
	n.t.Helper()
	var h *Headend
	n.do("pe1", func() (err error) {
		h, err = OpenHeadend(filepath.Join(n.dir, "pe1"), HeadendConfig{
			Domain: Domain{
				Secret: testSecret,
				Source: netip.MustParseAddr("fd00:5e::1"),
			},
			HopLimit:   64,
			Epoch:      7,
			Numbers:    n.numbers,
			Interfaces: []HeadendInterface{{Name: "h1", Mode: n.mode}},
			Uplinks:    []string{"r2", "r3"},
			Local:      []string{"r2"},
		})
		if err != nil {
			return err
		}
		table, err := srpolicy.Compile(rules, policies, h.Source(), nil)
		if err != nil {
			return err
		}
		if err := h.SetTable(table); err != nil {
			return err
		}
		_, err = h.Commit()
		return err
	})
	n.t.Cleanup(h.Close)
	return h
}

// openMerge loads the egress of pe2 with an instance for flows 1 and 2.
func (n *network) openMerge(settings frer.Settings, interfaces ...string) *Merge {
	n.t.Helper()
	config := MergeConfig{
		Domain: Domain{
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/32")},
		},
		SIDs: []MergeSID{{Prefix: mergeSID1}},
	}
	for _, i := range interfaces {
		config.Interfaces = append(config.Interfaces, MergeInterface{Name: i, Mode: Native})
	}
	var m *Merge
	n.do("pe2", func() (err error) {
		if m, err = OpenMerge(filepath.Join(n.dir, "pe2"), config); err != nil {
			return err
		}
		if err = m.SetInstance(0, Instance{SID: mergeSID1, Flows: []uint32{1, 2},
			Rules: settings}); err != nil {
			return err
		}
		_, err = m.Commit()
		return err
	})
	n.t.Cleanup(m.Close)
	return m
}
