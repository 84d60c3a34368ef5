package packettest

import (
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Routers on the way to the clients, which send ICMP errors.
var (
	Router4 = addr("203.0.113.254")
	Router6 = addr("2001:db8:c0::fe")
)

// ICMP returns a message with its checksum: type and code, the 32 bits behind the checksum, and
// what follows.
func ICMP(t testing.TB, src, dst netip.Addr, kind, code uint8, rest uint32, body []byte) []byte {
	t.Helper()
	message := append([]byte{kind, code, 0, 0, byte(rest >> 24), byte(rest >> 16), byte(rest >> 8),
		byte(rest)}, body...)
	if dst.Is4() {
		return serialize(t, &layers.IPv4{
			Version: 4, TTL: 61, Protocol: layers.IPProtocolICMPv4, SrcIP: src.AsSlice(),
			DstIP: dst.AsSlice(),
		}, &layers.ICMPv4{
			TypeCode: layers.CreateICMPv4TypeCode(kind, code), Id: uint16(rest >> 16),
			Seq: uint16(rest),
		}, gopacket.Payload(body))
	}
	ip := &layers.IPv6{Version: 6, HopLimit: 61, NextHeader: layers.IPProtocolICMPv6,
		SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	icmp := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, code)}
	if err := icmp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	return serialize(t, ip, icmp, gopacket.Payload(message[4:]))
}

// Unreachable returns what a router says about a packet: Fragmentation Needed or Packet Too Big,
// for an MTU.
func Unreachable(t testing.TB, about []byte, mtu uint32) []byte {
	t.Helper()
	if about[0]>>4 == 4 {
		return ICMP(t, Router4, netip.AddrFrom4([4]byte(about[12:])), 3, 4, mtu, about)
	}
	return ICMP(t, Router6, netip.AddrFrom16([16]byte(about[8:])), 2, 0, mtu, about)
}

// SumsRight reports whether the sums of an ICMP packet without options are right, by the rule of
// RFC 1071: with themselves, all words add up to 0xffff.
func SumsRight(ip []byte) bool {
	if ip[0]>>4 == 4 {
		return addsUp(ip[:20], 0) && addsUp(ip[20:], 0)
	}
	return addsUp(ip[40:], words(ip[8:40])+uint32(len(ip)-40)+58)
}

func addsUp(b []byte, start uint32) bool {
	sum := start + words(b)
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return sum == 0xffff
}

func words(b []byte) (sum uint32) {
	for i, octet := range b {
		sum += uint32(octet) << (8 * (1 - i%2))
	}
	return sum
}
