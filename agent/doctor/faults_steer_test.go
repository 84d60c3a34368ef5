package doctor_test

import (
	"errors"
	"net"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/config"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// patientSteerText is a head-end with an uplink, and an egress, on the two interfaces of one
// machine.
const patientSteerText = `
node: patient
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
headend:
  interfaces: [{name: near, side: mixed}]
  uplinks: [up]
  local: [lo]
  source: fd00:5e::e1
  policies: [{name: video, paths: [{name: one, action: path, lists: [{name: north, segments: ["fcbb:bb00:11::", "fcbb:bb00:2:f::"], reduced: true}]}]}]
merge:
  interfaces: [{name: far}]
  sids: [{prefix: "fcbb:bb00:1:f::/80", flows: [1, 2]}]
`

func newSteerPatient(t *testing.T) *patient {
	t.Helper()
	p := newMachine(t, patientSteerText)
	must(t, p.addUplink(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "up", MTU: 1500},
		PeerName: "down"}, "down"))
	p.address(p.near, "fd00:5e::e1/64")
	far, err := netlink.LinkByName("far")
	must(t, err)
	p.address(far, "10.0.0.1/24")
	p.neighbour("fd00:5e::1", netlink.NUD_PERMANENT)
	p.route("fcbb:bb00::/32", "fd00:5e::1")
	p.route("0.0.0.0/0", "10.0.0.2")
	return p
}

// addUplink makes an interface that is fit to be sent on, with a program on those that face it.
func (p *patient) addUplink(l netlink.Link, peers ...string) error {
	pass, err := linux.LoadXDPPass()
	if err != nil {
		return err
	}
	defer pass.Close()
	err = netlink.LinkAdd(l)
	for _, peer := range peers {
		err = errors.Join(err, linux.AttachXDP(peer, pass), link(peer, netlink.LinkSetUp),
			linux.SetOffload(l.Attrs().Name, linux.TxChecksum, false))
	}
	return errors.Join(err, link(l.Attrs().Name, netlink.LinkSetUp))
}

// TestFaultsOfSteeringAreNamed causes each fault that a head-end or an egress can have.
func TestFaultsOfSteeringAreNamed(t *testing.T) {
	mtu := func(name string, bytes int) error {
		return link(name, func(l netlink.Link) error { return netlink.LinkSetMTU(l, bytes) })
	}
	via := func(mtu int) error {
		return netlink.RouteReplace(&netlink.Route{Dst: ipNet("fcbb:bb00::/32"),
			Gw: net.ParseIP("fd00:5e::1"), MTU: mtu})
	}
	bridge := func(p *patient) error {
		return p.addUplink(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge", MTU: 1500}})
	}
	for _, f := range []fault{
		{"nothing", does(""), nil},
		{"no interface of the head-end", func(p *patient) error {
			p.node.Headend.Interfaces[0].Name = "none"
			return nil
		}, []string{"interface_missing"}},
		{"no uplink", func(p *patient) error {
			p.node.Headend.Uplinks[0] = "none"
			return nil
		}, []string{"interface_missing"}},
		{"no local interface", func(p *patient) error {
			p.node.Headend.Local[0] = "none"
			return nil
		}, []string{"interface_missing"}},
		{"no interface of the egress", func(p *patient) error {
			p.node.Merge.Interfaces[0].Name = "none"
			return nil
		}, []string{"interface_missing"}},
		{"uplink down", func(*patient) error { return link("up", netlink.LinkSetDown) },
			[]string{"interface_down"}},
		{"egress down", func(*patient) error { return link("far", netlink.LinkSetDown) },
			[]string{"interface_down"}},
		{"head-end without native XDP", func(p *patient) error {
			p.node.Headend.Interfaces[0].Name = "bridge"
			return bridge(p)
		}, []string{"generic_xdp"}},
		{"egress without native XDP, which it must have", func(p *patient) error {
			p.node.Merge.Interfaces[0] = config.XDPInterface{Name: "bridge", Mode: config.Native}
			return bridge(p)
		}, []string{"generic_xdp"}},
		{"head-end in generic mode", func(*patient) error {
			return errors.Join(xdpOff("near"),
				generic("near"))
		}, []string{"generic_xdp"}},
		{"egress in generic mode, which the head-end faces",
			func(*patient) error { return errors.Join(xdpOff("far"), generic("far")) },
			[]string{"veth_peer", "generic_xdp"}},
		{"egress in generic mode with GRO", func(*patient) error {
			return errors.Join(xdpOff("far"), generic("far"),
				linux.SetOffload("far", linux.GRO, true))
		}, []string{"generic_gro", "generic_xdp"}},
		{"peer without XDP", func(*patient) error { return xdpOff("far") }, []string{"veth_peer"}},
		{"peer of the uplink without XDP", func(*patient) error { return xdpOff("down") },
			[]string{"veth_peer"}},
		{"peer of the egress without XDP, which sends nothing", func(p *patient) error {
			p.node.Headend.Interfaces[0].Name, p.node.Headend.Policies = "up", nil
			p.node.Headend.Uplinks = nil
			return xdpOff("near")
		}, nil},
		{"uplink that takes no frames of XDP", func(p *patient) error {
			p.node.Headend.Uplinks[0] = "bridge"
			return bridge(p)
		}, []string{"uplink_send"}},
		{"checksum offload of the head-end", func(*patient) error {
			return linux.SetOffload("near",
				linux.TxChecksum, true)
		}, []string{"checksum_offload"}},
		{"checksum offload of the uplink", func(*patient) error {
			return linux.SetOffload("up",
				linux.TxChecksum, true)
		}, []string{"checksum_offload"}},
		{"checksum offload of the egress", func(*patient) error {
			return linux.SetOffload("far",
				linux.TxChecksum, true)
		}, []string{"checksum_offload"}},
		{"MTU of the head-end", func(*patient) error { return mtu("near", 1400) }, []string{"mtu"}},
		{"MTU of the uplink", func(*patient) error { return mtu("up", 1400) }, []string{"mtu"}},
		{"MTU of the egress", func(*patient) error { return mtu("far", 1400) }, []string{"mtu"}},
		{"MTU headroom", func(p *patient) error {
			p.headroom = true
			return nil
		}, []string{"mtu_headroom"}},
		{"MTU headroom, to the byte",
			func(p *patient) error { // 64 bytes: IPv6 header, and an SRH with one of two segments
				p.headroom, p.node.Headend.Interfaces[0].Side, p.node.Domain.MTU = true,
					config.External, 1564
				return errors.Join(mtu("near", 1500), mtu("far", 1564), mtu("up", 1564), via(1564))
			}, nil},
		{"MTU headroom, a byte too little", func(p *patient) error {
			p.headroom, p.node.Headend.Interfaces[0].Side, p.node.Domain.MTU = true,
				config.External, 1564
			return errors.Join(mtu("near", 1501), mtu("far", 1564), mtu("up", 1564), via(1564))
		}, []string{"mtu_headroom"}},
		{"path MTU", func(*patient) error { return via(1300) }, []string{"path_mtu"}},
		{"first segment not routed", func(*patient) error {
			return netlink.RouteDel(&netlink.Route{Dst: ipNet("fcbb:bb00::/32")})
		}, []string{"sid_route"}},
		{"gateway dead", func(p *patient) error {
			p.neighbour("fd00:5e::1", netlink.NUD_FAILED)
			return nil
		}, []string{"sid_neighbour"}},
		{"forwarding of the head-end", sets("net.ipv6.conf.near.forwarding", "0"),
			[]string{"sysctl_forwarding"}},
		{"forwarding of the egress", sets("net.ipv6.conf.far.forwarding", "0"),
			[]string{"sysctl_forwarding"}},
		{"forwarding of the uplink, by which nothing comes",
			sets("net.ipv6.conf.up.forwarding", "0"), nil},
		{"seg6 of the egress", sets("net.ipv6.conf.far.seg6_enabled", "0"),
			[]string{"sysctl_seg6"}},
		{"seg6 HMAC of the head-end", sets("net.ipv6.conf.near.seg6_require_hmac", "1"),
			[]string{"sysctl_seg6_hmac"}},
		{"reverse path filter of the egress", func(*patient) error {
			return errors.Join(linux.WriteSysctl("net.ipv4.conf.far.rp_filter", "1"),
				netlink.RouteDel(&netlink.Route{Dst: ipNet("0.0.0.0/0")}))
		}, []string{"rp_filter"}},
		{"two agents", func(p *patient) error {
			return errors.Join(p.pretend("patient"), p.pretend("patient"))
		}, []string{"two_agents"}},
		{"agents of two nodes, on a machine with addresses of its own", func(p *patient) error {
			return errors.Join(linuxtest.IP("addr add 192.0.2.1/32 dev lo"), p.pretend("patient"),
				p.pretend("other"))
		}, nil},
	} {
		f.isNamed(t, newSteerPatient)
	}
}
