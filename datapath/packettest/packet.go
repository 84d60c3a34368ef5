package packettest

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"sextant/packet/flow"
)

// Packet is the packet of a client or a server.
type Packet struct {
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
	TrafficClass     uint8 // or type of service
	HopLimit         uint8 // 57 unless set

	Protocol   layers.IPProtocol // TCP unless set
	Flags      string            // of TCP: a combination of S, A, F, R, P
	Seq, Ack   uint32
	TCPOptions []layers.TCPOption
	Payload    []byte

	ID           uint16              // IPv4
	IPv4Options  []layers.IPv4Option // IPv4
	FlowLabel    uint32              // IPv6
	Extensions   []byte              // IPv6: headers that end with the protocol
	ExtensionNow layers.IPProtocol   // IPv6: the first of them
}

// To returns the packet with another destination.
func (p Packet) To(dst netip.Addr, port uint16) Packet {
	p.Dst, p.DstPort = dst, port
	return p
}

// From returns the packet with another source.
func (p Packet) From(src netip.Addr) Packet {
	p.Src = src
	return p
}

// Of returns the packet with another upper layer.
func (p Packet) Of(protocol layers.IPProtocol, payload ...byte) Packet {
	p.Protocol, p.Payload = protocol, payload
	return p
}

// Behind puts IPv6 extension headers before the packet's transport header.
func (p Packet) Behind(first layers.IPProtocol, headers ...[]byte) Packet {
	p.ExtensionNow, p.Extensions = first, slices.Concat(headers...)
	return p
}

// Numbered returns the packet with sequence and acknowledgement numbers.
func (p Packet) Numbered(seq, ack uint32) Packet {
	p.Seq, p.Ack = seq, ack
	return p
}

// With returns the packet with TCP options.
func (p Packet) With(options ...layers.TCPOption) Packet {
	p.TCPOptions = options
	return p
}

// Reply returns the packet that goes the other way, with TCP flags of its own.
func (p Packet) Reply(flags string) Packet {
	p.Src, p.Dst, p.SrcPort, p.DstPort, p.Flags = p.Dst, p.Src, p.DstPort, p.SrcPort, flags
	return p
}

// Flow returns the flow of the packet.
func (p Packet) Flow() flow.Tuple {
	protocol := cmp.Or(uint8(p.Protocol), uint8(layers.IPProtocolTCP))
	return flow.Tuple{Src: p.Src, Dst: p.Dst, SrcPort: p.SrcPort, DstPort: p.DstPort,
		Protocol: protocol}
}

// Bytes returns the IP packet, with its lengths and checksums.
func (p Packet) Bytes(t testing.TB) []byte {
	t.Helper()
	p.Protocol = cmp.Or(p.Protocol, layers.IPProtocolTCP)
	p.HopLimit = cmp.Or(p.HopLimit, 57)
	network := p.network()
	all := []gopacket.SerializableLayer{network, gopacket.Payload(p.Extensions)}
	if upper := p.transport(); upper != nil {
		if err := upper.SetNetworkLayerForChecksum(network.(gopacket.NetworkLayer)); err != nil {
			t.Fatal(err)
		}
		all = append(all, upper)
	}
	return serialize(t, append(all, gopacket.Payload(p.Payload))...)
}

func (p Packet) network() gopacket.SerializableLayer {
	if p.Dst.Is4() {
		return &layers.IPv4{
			Version: 4, TOS: p.TrafficClass, TTL: p.HopLimit, Id: p.ID, Protocol: p.Protocol,
			SrcIP: p.Src.AsSlice(), DstIP: p.Dst.AsSlice(), Options: p.IPv4Options,
		}
	}
	next := p.Protocol
	if len(p.Extensions) > 0 {
		next = p.ExtensionNow
	}
	return &layers.IPv6{
		Version: 6, TrafficClass: p.TrafficClass, FlowLabel: p.FlowLabel, NextHeader: next,
		HopLimit: p.HopLimit, SrcIP: p.Src.AsSlice(), DstIP: p.Dst.AsSlice(),
	}
}

// checksummed is a transport layer that sums a pseudo header.
type checksummed interface {
	gopacket.SerializableLayer
	SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
}

func (p Packet) transport() checksummed {
	switch p.Protocol {
	case layers.IPProtocolTCP:
		has := func(flag string) bool { return strings.Contains(p.Flags, flag) }
		return &layers.TCP{
			SrcPort: layers.TCPPort(p.SrcPort), DstPort: layers.TCPPort(p.DstPort),
			Seq: p.Seq, Ack: p.Ack, Window: 64240, Options: p.TCPOptions,
			SYN: has("S"), ACK: has("A"), FIN: has("F"), RST: has("R"), PSH: has("P"),
		}
	case layers.IPProtocolUDP:
		return &layers.UDP{SrcPort: layers.UDPPort(p.SrcPort), DstPort: layers.UDPPort(p.DstPort)}
	}
	return nil
}

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
