package packettest

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Outer is the IPv6 packet that an edge puts around a client's.
type Outer struct {
	Src, Dst     netip.Addr
	TrafficClass uint8
	FlowLabel    uint32
	HopLimit     uint8
	Extensions   []byte            // headers that end with the inner protocol
	ExtensionNow layers.IPProtocol // the first of them; a routing header unless set
}

// From returns the outer packet with another source.
func (o Outer) From(src string) Outer {
	o.Src = netip.MustParseAddr(src)
	return o
}

// With puts extension headers into the outer packet.
func (o Outer) With(first layers.IPProtocol, headers ...[]byte) Outer {
	o.Extensions, o.ExtensionNow = slices.Concat(headers...), first
	return o
}

// Around returns the outer packet with an IP packet in it.
func (o Outer) Around(t testing.TB, ip []byte) []byte {
	t.Helper()
	next := ProtocolOf(ip)
	if len(o.Extensions) > 0 {
		next = o.ExtensionNow
		next = cmp.Or(next, layers.IPProtocolIPv6Routing)
	}
	return serialize(t, &layers.IPv6{
		Version: 6, TrafficClass: o.TrafficClass, FlowLabel: o.FlowLabel, NextHeader: next,
		HopLimit: o.HopLimit, SrcIP: o.Src.AsSlice(), DstIP: o.Dst.AsSlice(),
	}, gopacket.Payload(o.Extensions), gopacket.Payload(ip))
}

// ProtocolOf returns the protocol number for an IP packet inside another.
func ProtocolOf(ip []byte) layers.IPProtocol {
	if ip[0]>>4 == 6 {
		return layers.IPProtocolIPv6
	}
	return layers.IPProtocolIPv4
}
