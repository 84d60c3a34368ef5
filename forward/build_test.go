package forward_test

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Packets are built with gopacket, and what it cannot build is written byte by byte
// here, so that nothing of the code under test has a part in what it is compared with.

var (
	clientMAC  = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x01}
	nodeMAC    = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x02}
	egressMAC  = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x03}
	gatewayMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0x04}
)

// serialize returns the layers as bytes, with their lengths and checksums.
func serialize(t testing.TB, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buffer := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buffer, options, all...); err != nil {
		t.Fatalf("serialize the expected packet: %v", err)
	}
	return bytes.Clone(buffer.Bytes())
}

// link is what surrounds an IP packet on the wire.
type link struct {
	src, dst net.HardwareAddr
	vlans    []uint16
	padding  []byte
}

// fromClient is how frames come in, by default.
func fromClient(vlans ...uint16) link {
	return link{src: clientMAC, dst: nodeMAC, vlans: vlans}
}

// frame puts an IP packet on the wire.
func (l link) frame(t testing.TB, ip []byte) []byte {
	t.Helper()
	etherType := layers.EthernetTypeIPv4
	if ip[0]>>4 == 6 {
		etherType = layers.EthernetTypeIPv6
	}
	return l.frameOf(t, etherType, ip)
}

// frameOf puts anything on the wire. The outer one of two tags is an 802.1ad one.
func (l link) frameOf(t testing.TB, etherType layers.EthernetType, payload []byte) []byte {
	t.Helper()
	types := []layers.EthernetType{layers.EthernetTypeDot1Q, layers.EthernetTypeQinQ, layers.EthernetTypeDot1Q}
	types = append(types[3-len(l.vlans):], etherType)
	if len(l.vlans) == 1 {
		types[0] = layers.EthernetTypeDot1Q
	}
	all := []gopacket.SerializableLayer{&layers.Ethernet{SrcMAC: l.src, DstMAC: l.dst, EthernetType: types[0]}}
	for i, vlan := range l.vlans {
		all = append(all, &layers.Dot1Q{Priority: 5, VLANIdentifier: vlan, Type: types[i+1]})
	}
	all = append(all, gopacket.Payload(payload), gopacket.Payload(l.padding))
	// gopacket pads short frames; what comes in here is what a driver delivers.
	return serialize(t, all...)[:14+4*len(l.vlans)+len(payload)+len(l.padding)]
}

// inner is a client's packet.
type inner struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
	trafficClass     uint8
	hopLimit         uint8

	protocol   layers.IPProtocol // TCP unless set
	flags      string            // of TCP: a combination of S, A, F, R, P
	seq, ack   uint32
	tcpOptions []layers.TCPOption
	payload    []byte

	id           uint16              // IPv4
	ipv4Options  []layers.IPv4Option // IPv4
	flowLabel    uint32              // IPv6
	extensions   []byte              // IPv6: headers that end with the protocol
	extensionNow layers.IPProtocol   // IPv6: the first of them
}

func (p inner) bytes(t testing.TB) []byte {
	t.Helper()
	if p.protocol == 0 {
		p.protocol = layers.IPProtocolTCP
	}
	if p.hopLimit == 0 {
		p.hopLimit = 57
	}
	network := p.network()
	all := []gopacket.SerializableLayer{network, gopacket.Payload(p.extensions)}
	if upper := p.transport(); upper != nil {
		if err := upper.SetNetworkLayerForChecksum(network.(gopacket.NetworkLayer)); err != nil {
			t.Fatal(err)
		}
		all = append(all, upper)
	}
	return serialize(t, append(all, gopacket.Payload(p.payload))...)
}

func (p inner) network() gopacket.SerializableLayer {
	if p.dst.Is4() {
		return &layers.IPv4{
			Version: 4, TOS: p.trafficClass, TTL: p.hopLimit, Id: p.id, Protocol: p.protocol,
			SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice(), Options: p.ipv4Options,
		}
	}
	next := p.protocol
	if len(p.extensions) > 0 {
		next = p.extensionNow
	}
	return &layers.IPv6{
		Version: 6, TrafficClass: p.trafficClass, FlowLabel: p.flowLabel, NextHeader: next,
		HopLimit: p.hopLimit, SrcIP: p.src.AsSlice(), DstIP: p.dst.AsSlice(),
	}
}

// checksummed is a transport layer that sums a pseudo header.
type checksummed interface {
	gopacket.SerializableLayer
	SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
}

func (p inner) transport() checksummed {
	switch p.protocol {
	case layers.IPProtocolTCP:
		has := func(flag string) bool { return bytes.Contains([]byte(p.flags), []byte(flag)) }
		return &layers.TCP{
			SrcPort: layers.TCPPort(p.srcPort), DstPort: layers.TCPPort(p.dstPort),
			Seq: p.seq, Ack: p.ack, Window: 64240, Options: p.tcpOptions,
			SYN: has("S"), ACK: has("A"), FIN: has("F"), RST: has("R"), PSH: has("P"),
		}
	case layers.IPProtocolUDP:
		return &layers.UDP{SrcPort: layers.UDPPort(p.srcPort), DstPort: layers.UDPPort(p.dstPort)}
	}
	return nil
}

// outer is the packet that an edge puts around a client's.
type outer struct {
	src, dst     netip.Addr
	trafficClass uint8
	flowLabel    uint32
	hopLimit     uint8
	extensions   []byte            // headers that end with the inner protocol
	extensionNow layers.IPProtocol // the first of them
}

// around returns the outer packet with the inner one in it.
func (o outer) around(t testing.TB, ip []byte) []byte {
	t.Helper()
	next := innerProtocol(ip)
	if len(o.extensions) > 0 {
		next = o.extensionNow
		if next == 0 {
			next = layers.IPProtocolIPv6Routing
		}
	}
	return serialize(t, &layers.IPv6{
		Version: 6, TrafficClass: o.trafficClass, FlowLabel: o.flowLabel, NextHeader: next,
		HopLimit: o.hopLimit, SrcIP: o.src.AsSlice(), DstIP: o.dst.AsSlice(),
	}, gopacket.Payload(o.extensions), gopacket.Payload(ip))
}

// innerProtocol returns the protocol number for an IP packet.
func innerProtocol(ip []byte) layers.IPProtocol {
	if ip[0]>>4 == 6 {
		return layers.IPProtocolIPv6
	}
	return layers.IPProtocolIPv4
}

// srh returns a segment routing header, with the segments in wire order.
func srh(next layers.IPProtocol, left, last uint8, wire ...netip.Addr) []byte {
	b := []byte{byte(next), byte(2 * len(wire)), 4, left, last, 0, 0, 0}
	for _, segment := range wire {
		b = append(b, segment.AsSlice()...)
	}
	return b
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, addr(text))
	}
	return all
}

// to returns the packet with another destination.
func (p inner) to(dst netip.Addr, port uint16) inner {
	p.dst, p.dstPort = dst, port
	return p
}

// from returns the packet with another source.
func (p inner) from(src netip.Addr) inner {
	p.src = src
	return p
}

// of returns the packet with another upper layer.
func (p inner) of(protocol layers.IPProtocol, payload ...byte) inner {
	p.protocol, p.payload = protocol, payload
	return p
}

// patched returns a copy with some bytes changed.
func patched(b []byte, at int, values ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[at:], values)
	return b
}

// mss returns the maximum segment size option.
func mss(size uint16) layers.TCPOption {
	return layers.TCPOption{OptionType: layers.TCPOptionKindMSS, OptionData: []byte{byte(size >> 8), byte(size)}}
}

func option(kind layers.TCPOptionKind, data ...byte) layers.TCPOption {
	return layers.TCPOption{OptionType: kind, OptionData: data}
}

// wantFrame compares whole frames.
func wantFrame(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("frame (-want +got):\n%s", cmp.Diff(hex.Dump(want), hex.Dump(got)))
	}
}
