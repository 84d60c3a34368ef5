package doctor_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/linux"
)

func xdpOff(name string) error {
	return link(name, func(l netlink.Link) error { return netlink.LinkSetXdpFd(l, -1) })
}

// TestFaultsAreNamed causes each fault on a machine where nothing is wrong.
func TestFaultsAreNamed(t *testing.T) {
	for _, f := range []fault{
		{"nothing", does(""), nil},
		{"interface missing", func(p *patient) error {
			p.node.Edge.Interfaces[0].Name = "none"
			return nil
		}, []string{"interface_missing"}},
		{"interface down", func(*patient) error { return link("near", netlink.LinkSetDown) },
			[]string{"interface_down", "sid_route"}},
		{"no native XDP", func(p *patient) error {
			err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge",
				MTU: 1500}})
			p.node.Edge.Interfaces[0].Name = "bridge"
			return errors.Join(err, link("bridge", netlink.LinkSetUp))
		}, []string{"generic_xdp"}},
		{"generic mode", func(*patient) error {
			return errors.Join(xdpOff("near"),
				generic("near"))
		}, []string{"veth_peer", "generic_xdp"}},
		{"fewer receive queues than the peer sends by", func(p *patient) error {
			p.node.Edge.Interfaces[0].Name = "few"
			err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "many",
				NumTxQueues: 4, MTU: 1500}, PeerName: "few"})
			return errors.Join(err, link("few", netlink.LinkSetUp), link("many", netlink.LinkSetUp),
				linux.SetOffload("few", linux.TxChecksum, false))
		}, []string{"generic_xdp"}},
		{"peer without XDP", func(*patient) error { return xdpOff("far") }, []string{"veth_peer"}},
		{"checksum offload", func(*patient) error {
			return linux.SetOffload("near",
				linux.TxChecksum, true)
		}, []string{"checksum_offload"}},
		{"generic mode with GRO", func(*patient) error {
			return errors.Join(xdpOff("near"), generic("near"),
				linux.SetOffload("near", linux.GRO, true))
		}, []string{"generic_gro", "generic_xdp"}},
		{"MTU", func(*patient) error {
			return link("near", func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1400) })
		}, []string{"mtu"}},
		{"MTU headroom", func(p *patient) error {
			p.node.Edge.Interfaces[0].Side, p.headroom = config.External, true
			return nil
		}, []string{"mtu_headroom"}},
		{"MTU headroom that a larger domain has", func(p *patient) error {
			p.node.Edge.Interfaces[0].Side, p.headroom, p.node.Domain.MTU = config.External, true,
				1540
			return errors.Join(link("far",
				func(l netlink.Link) error { return netlink.LinkSetMTU(l, 1540) }),
				netlink.RouteReplace(&netlink.Route{Dst: ipNet("fcbb:bb00::/32"),
					Gw: net.ParseIP("fd00:5e::1"), MTU: 1540}))
		}, nil},
		{"path MTU", func(*patient) error {
			return netlink.RouteReplace(&netlink.Route{Dst: ipNet("fcbb:bb00::/32"),
				Gw: net.ParseIP("fd00:5e::1"), MTU: 1300})
		}, []string{"path_mtu"}},
		{"forwarding", sets("net.ipv6.conf.near.forwarding", "0"), []string{"sysctl_forwarding"}},
		{"seg6", sets("net.ipv6.conf.far.seg6_enabled", "0"), []string{"sysctl_seg6"}},
		{"seg6 HMAC", sets("net.ipv6.conf.near.seg6_require_hmac", "1"),
			[]string{"sysctl_seg6_hmac"}},
		{"reverse path filter", func(*patient) error {
			return errors.Join(linux.WriteSysctl("net.ipv4.conf.far.rp_filter", "1"),
				netlink.RouteDel(&netlink.Route{Dst: ipNet("0.0.0.0/0")}))
		}, []string{"rp_filter"}},
		{"VIP missing", func(*patient) error {
			return link("lo", func(l netlink.Link) error {
				return netlink.AddrDel(l, &netlink.Addr{IPNet: ipNet("2001:db8:80::81/128")})
			})
		}, []string{"vip_missing"}},
		{"no listener", func(p *patient) error {
			p.node.Host.Services[0].Port = 9999
			return nil
		}, []string{"listener_missing"}},
		{"no UDP socket", func(p *patient) error {
			p.node.Host.Services[2].Port = 8444
			return nil
		}, []string{"listener_missing"}},
		{"locator not routed", func(*patient) error {
			return netlink.RouteDel(&netlink.Route{Dst: ipNet("fcbb:bb00::/32")})
		}, []string{"sid_route"}},
		{"locator in a black hole", func(*patient) error {
			return netlink.RouteReplace(&netlink.Route{Dst: ipNet("fcbb:bb00::/32"),
				Type: unix.RTN_BLACKHOLE})
		}, []string{"sid_route"}},
		{"gateway dead", func(p *patient) error {
			p.neighbour("fd00:5e::1", netlink.NUD_FAILED)
			return nil
		}, []string{"sid_neighbour"}},
		{"no bpf file system", func(*patient) error {
			return unix.Unmount("/sys/fs/bpf",
				unix.MNT_DETACH)
		}, []string{"bpffs"}},
		{"no cgroup2 file system", func(*patient) error { return unmountAll("cgroup2") },
			[]string{"cgroup2"}},
		{"SIDs outside the block", func(p *patient) error {
			p.node.Host.SIDs[0].Prefix = netip.MustParsePrefix("fd00:c0de::9/128")
			return nil
		}, []string{"sid_unguarded"}},
		{"SIDs in a locator", func(p *patient) error {
			p.node.Host.SIDs[0].Prefix = netip.MustParsePrefix("fd00:c0de::9/128")
			p.node.Domain.Locators = []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")}
			return nil
		}, nil},
		{"slow clock", func(p *patient) error {
			return errors.Join(unix.Unmount(clockSource, 0), over(p.t, clockSource, "acpi_pm\n"))
		}, []string{"clock"}},
		{"two agents", func(p *patient) error {
			return errors.Join(p.pretend("patient"), p.pretend("patient"))
		}, []string{"two_agents"}},
		{"two agents of two nodes", func(p *patient) error {
			return errors.Join(p.pretend("patient"), p.pretend("other"))
		}, nil},
	} {
		f.isNamed(t, newPatient)
	}
}

// unmountAll hides the file systems of a kind from this thread.
func unmountAll(kind string) error {
	text, err := os.ReadFile("/proc/thread-self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); fields[2] == kind {
			err = errors.Join(err, unix.Unmount(fields[1], unix.MNT_DETACH))
		}
	}
	return err
}

// generic attaches a program in generic mode.
func generic(name string) error {
	pass, err := linux.LoadXDPPass()
	if err != nil {
		return err
	}
	defer pass.Close()
	const skbMode = 1 << 1 // XDP_FLAGS_SKB_MODE
	return link(name, func(l netlink.Link) error {
		return netlink.LinkSetXdpFdWithFlags(l,
			pass.FD(), skbMode)
	})
}

// pretend starts a process that looks like the agent of a node until the test ends.
func (p *patient) pretend(node string) error {
	dir := p.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "node.yaml"), []byte("node: "+node+"\n"),
		0o644); err != nil {
		return err
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("read line\n"), 0o644); err != nil {
		return err
	}
	agent := &exec.Cmd{Path: "/bin/sh", Args: []string{"sextant", script, "agent", "-f",
		"node.yaml"}, Dir: dir}
	in, err := agent.StdinPipe()
	if err != nil {
		return err
	}
	p.t.Cleanup(func() { in.Close(); agent.Wait() })
	return agent.Start()
}

func TestListenersAreRead(t *testing.T) {
	p := newPatient(t)
	var got []string
	for _, l := range linux.Facts(linux.Query{Slow: true}).Listeners {
		got = append(got, fmt.Sprintf("%v %s", l.UDP, l.Address))
	}
	slices.Sort(got)
	want := "false [2001:db8:80::81]:8443, false [::]:8444, true 192.0.2.81:8453"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("listeners %s, want %s", text, want)
	}
	_ = p
}
