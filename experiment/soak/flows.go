package soak

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"sextant/datapath/packetgen"
)

// Of examples/soak.yaml.
var (
	vip6  = netip.MustParseAddr("2001:db8:80::80")
	vip4  = netip.MustParseAddr("198.51.100.80")
	block = netip.MustParsePrefix("fcbb:bb00::/32")

	learning = netip.MustParseAddr("fd00:5e:0:1ea::1") // the edge's End.LEARN
)

const (
	webPort  = 80
	dnsPort  = 53
	quicPort = 443
	hosts    = 4
)

// traffic makes the packets of flows, each of which has another client.
type traffic struct {
	// what else comes along: broken packets, ICMP errors, routing headers, anything
	wild *packetgen.Generator
	out  []byte
}

func newTraffic(seed uint64) *traffic {
	world := packetgen.World{
		Services: []packetgen.Service{
			{Addr: vip6, Port: webPort, Protocol: protocolTCP},
			{Addr: vip4, Port: webPort, Protocol: protocolTCP},
			{Addr: vip4, Port: dnsPort, Protocol: protocolUDP},
			{Addr: vip6, Port: quicPort, Protocol: protocolUDP},
		},
		Block:          block,
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::e1")},
		Edge:           netip.MustParseAddr("fd00:5e::e1"),
		Learning:       learning,
	}
	for host := range uint16(hosts) {
		sid := block.Addr().As16()
		binary.BigEndian.PutUint16(sid[4:], host+1)
		world.Offering = append(world.Offering, netip.PrefixFrom(netip.AddrFrom16(sid), 48))
		world.Others = append(world.Others, netip.AddrFrom16(sid))
		world.Owners = world.Others
		world.ConnectionIDs = append(world.ConnectionIDs, connectionID(uint64(host)))
		binary.BigEndian.PutUint16(sid[6:], 0xd46)
		world.Decapsulating = append(world.Decapsulating, netip.PrefixFrom(netip.AddrFrom16(sid),
			64))
	}
	return &traffic{wild: packetgen.New(seed, world)}
}

// connectionID is one that a server gives out, in clear (QUIC-LB): configuration 0, server ID of 2
// bytes, nonce of 6.
func connectionID(flow uint64) []byte {
	id := make([]byte, 9)
	id[0] = 8
	binary.BigEndian.PutUint16(id[1:], uint16(flow%hosts)+1)
	binary.BigEndian.PutUint32(id[5:], uint32(flow))
	return id
}

// The kinds of flows, of which there are eight in a round.
const kinds = 8

// packets makes the packets of the flow of a number: two to four, and one that is wild. A frame is
// valid until the next one.
func (t *traffic) packets(number uint64, each func(frame []byte)) {
	switch number % kinds {
	case 0, 1, 2, 3:
		t.connection(number, ethernetIPv6, each)
	case 4, 5:
		t.connection(number, ethernetIPv4, each)
	case 6:
		t.quic(number, each)
	case 7:
		t.fragmented(number, each)
	}
	each(t.wild.Next())
}

// connection is SYN, its answer by way of the edge, data and FIN.
func (t *traffic) connection(number uint64, ethertype uint16, each func([]byte)) {
	for _, step := range []struct {
		flags   byte
		payload int
	}{{flagSYN, 0}, {flagACK, 64}, {flagACK | flagFIN, 0}} {
		t.begin(number, ethertype, protocolTCP, tcpHeader+step.payload)
		t.tcp(number, step.flags, step.payload)
		each(t.out)
		if step.flags == flagSYN {
			t.answer(number, ethertype)
			each(t.out)
		}
	}
}

// answer is the SYN-ACK that a host sends by way of the edge. All hosts take their turns,
// candidates or not.
func (t *traffic) answer(number uint64, ethertype uint16) {
	t.begin(number, ethertype, protocolTCP, tcpHeader)
	t.tcp(number, flagSYN|flagACK, 0)
	inner := bytes.Clone(t.out[ethernetHeader:])
	turn(inner)
	t.link(ethernetIPv6)
	t.byEdge(byte(number/kinds%hosts)+1, len(inner), ethertype)
	t.out = append(t.out, inner...)
}

// quic is an Initial and a packet of the handshake with the client's own connection ID, and one
// with the server's.
func (t *traffic) quic(number uint64, each func([]byte)) {
	var own [8]byte
	binary.BigEndian.PutUint64(own[:], ^number)
	for _, first := range []byte{0xc0, 0xe0} {
		t.datagram(number, ethernetIPv6, quicPort, 6+len(own)+32)
		t.out = append(t.out, first, 0, 0, 0, 1, byte(len(own)))
		t.out = append(append(t.out, own[:]...), make([]byte, 32)...)
		each(t.out)
	}
	id := connectionID(number)
	t.datagram(number, ethernetIPv6, quicPort, 1+len(id)+32)
	t.out = append(append(append(t.out, 0x40), id...), make([]byte, 32)...)
	each(t.out)
}

// fragmented is a datagram in two fragments, of which every sixteenth comes without its first, and
// a whole one.
func (t *traffic) fragmented(number uint64, each func([]byte)) {
	const part = 64
	for i := range 2 {
		if i == 0 && number/kinds%16 == 0 {
			continue
		}
		t.begin(number, ethernetIPv4, protocolUDP, part)
		ip := t.out[ethernetHeader:]
		binary.BigEndian.PutUint16(ip[4:], uint16(number/kinds)) // identification
		if i == 0 {
			binary.BigEndian.PutUint16(ip[6:], 0x2000)
			t.udp(number, dnsPort, 2*part-udpHeader)
			t.out = append(t.out, make([]byte, part-udpHeader)...)
		} else {
			binary.BigEndian.PutUint16(ip[6:], part/8)
			t.out = append(t.out, make([]byte, part)...)
		}
		sealIPv4(t.out[ethernetHeader:])
		each(t.out)
	}
	t.datagram(number, ethernetIPv4, dnsPort, 32)
	t.out = append(t.out, make([]byte, 32)...)
	each(t.out)
}

func (t *traffic) datagram(number uint64, ethertype, port uint16, payload int) {
	t.begin(number, ethertype, protocolUDP, udpHeader+payload)
	t.udp(number, port, payload)
}
