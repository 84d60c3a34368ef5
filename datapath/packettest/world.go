package packettest

import (
	"net/netip"

	"github.com/gopacket/gopacket/layers"
)

// Who sends and serves, in the packets of all tables: two web services, their clients, an edge and
// a host.
var (
	VIP4     = addr("192.0.2.80")
	VIP6     = addr("2001:db8:80::80")
	Client4  = addr("198.51.100.7")
	Client6  = addr("2001:db8:c1::7")
	EdgeAddr = addr("fd00:5e::e1")
)

// The host's SIDs. Those for decapsulation lie within the one for offers.
var (
	OfferSID   = addr("fcbb:bb00:1::")
	ClassicSID = addr("fd00:c0de::1") // whole address: no argument
	DT4SID     = addr("fcbb:bb00:1:d4::")
	DT6SID     = addr("fcbb:bb00:1:d6::")
	DT46SID    = addr("fcbb:bb00:1:d46::")
)

// The addresses on the wire: frames come from the client to the node, and go from the node to the
// gateway.
var (
	ClientMAC  = []byte{0x02, 0, 0, 0, 0, 0x01}
	NodeMAC    = []byte{0x02, 0, 0, 0, 0, 0x02}
	EgressMAC  = []byte{0x02, 0, 0, 0, 0, 0x03}
	GatewayMAC = []byte{0x02, 0, 0, 0, 0, 0x04}
)

const (
	ip4   = layers.IPProtocolIPv4
	ip6   = layers.IPProtocolIPv6
	tcp   = layers.IPProtocolTCP
	udp   = layers.IPProtocolUDP
	dst   = layers.IPProtocolIPv6Destination
	icmp6 = layers.IPProtocolICMPv6
	hop   = layers.IPProtocolIPv6HopByHop
	rout  = layers.IPProtocolIPv6Routing
	frag  = layers.IPProtocolIPv6Fragment
)

// Web4 and Web6 return packets to the web services, with TCP flags.
func Web4(flags string) Packet {
	return Packet{Src: Client4, Dst: VIP4, SrcPort: 40000, DstPort: 80, Flags: flags}
}

// Web6 is Web4 over IPv6.
func Web6(flags string) Packet {
	return Packet{Src: Client6, Dst: VIP6, SrcPort: 40000, DstPort: 80, Flags: flags}
}

// To returns the outer packet to a SID, without candidates behind it.
func To(sid netip.Addr) Outer {
	return Outer{Src: EdgeAddr, Dst: sid, HopLimit: 60, FlowLabel: 0x12345}
}

// FromClient is how frames come in.
func FromClient(vlans ...uint16) Link {
	return Link{Src: ClientMAC, Dst: NodeMAC, VLANs: vlans}
}

// SID returns the SID of a backend, when SIDs are not compressed.
func SID(id uint16) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x00, 2: 0xc0, 3: 0xde, 14: byte(id >> 8),
		15: byte(id)})
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }
