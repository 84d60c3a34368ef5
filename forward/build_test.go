package forward_test

import (
	"net"
	"net/netip"

	"github.com/gopacket/gopacket/layers"

	"sextant/forward/packettest"
)

// Short names for what tables of packets are made of.
type (
	inner = packettest.Packet // a client's
	outer = packettest.Outer
	link  = packettest.Link
)

var (
	ext           = packettest.Extension
	routing       = packettest.Routing
	srh           = packettest.SRH
	fragment      = packettest.Fragment
	chainOf       = packettest.Extensions
	option        = packettest.Option
	mss           = packettest.MSS
	patched       = packettest.Patched
	innerProtocol = packettest.ProtocolOf
	wantFrame     = packettest.WantFrame
)

const (
	tcp  = layers.IPProtocolTCP
	udp  = layers.IPProtocolUDP
	dst  = layers.IPProtocolIPv6Destination
	hop  = layers.IPProtocolIPv6HopByHop
	rout = layers.IPProtocolIPv6Routing
	frag = layers.IPProtocolIPv6Fragment
)

var (
	clientMAC  = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x01}
	nodeMAC    = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x02}
	egressMAC  = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x03}
	gatewayMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x04}
)

// fromClient is how frames come in, by default.
func fromClient(vlans ...uint16) link {
	return link{Src: clientMAC, Dst: nodeMAC, VLANs: vlans}
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, addr(text))
	}
	return all
}
