package model_test

import (
	"net/netip"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/packettest"
)

// Short names for what tables of packets are made of.
type (
	inner = packettest.Packet // a client's
	outer = packettest.Outer
	link  = packettest.Link
)

var (
	ext        = packettest.Extension
	option     = packettest.Option
	mss        = packettest.MSS
	wantFrame  = packettest.WantFrame
	fromClient = packettest.FromClient

	egressMAC  = packettest.EgressMAC
	gatewayMAC = packettest.GatewayMAC
)

const (
	tcp  = layers.IPProtocolTCP
	udp  = layers.IPProtocolUDP
	dst  = layers.IPProtocolIPv6Destination
	hop  = layers.IPProtocolIPv6HopByHop
	rout = layers.IPProtocolIPv6Routing
	frag = layers.IPProtocolIPv6Fragment
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, addr(text))
	}
	return all
}
