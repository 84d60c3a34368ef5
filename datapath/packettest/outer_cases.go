package packettest

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"
)

// The encapsulations, by the names that configurations use.
const (
	Carrier    = "carrier"
	FullSRH    = "srh"
	ReducedSRH = "srh-reduced"
)

// Encapsulated returns the Outer packet around ip, for a chain of ids.
func Encapsulated(t testing.TB, encapsulation string, ids []uint16, label uint32, class uint8,
	ip []byte) []byte {
	t.Helper()
	return outerOf(encapsulation, ids, label, class, ProtocolOf(ip)).Around(t, Forwarded(ip))
}

// outerOf returns it without what is in it.
func outerOf(encapsulation string, ids []uint16, label uint32, class uint8,
	next layers.IPProtocol) Outer {
	o := Outer{Src: EdgeAddr, FlowLabel: label, TrafficClass: class, HopLimit: 63}
	n := len(ids)
	var wire []netip.Addr // last segment first
	for i := n - 1; i >= 0; i-- {
		wire = append(wire, SID(ids[i]))
	}
	switch encapsulation {
	case Carrier:
		carrier := [16]byte{0xfc, 0xbb, 0xbb, 0x00}
		for i, id := range ids {
			carrier[4+2*i], carrier[5+2*i] = byte(id>>8), byte(id)
		}
		o.Dst = netip.AddrFrom16(carrier)
	case FullSRH:
		o.Dst = SID(ids[0])
		o.Extensions = SRH(next, uint8(n-1), uint8(n-1), wire...)
	case ReducedSRH:
		o.Dst = SID(ids[0])
		if n > 1 {
			o.Extensions = SRH(next, uint8(n-1), uint8(n-2), wire[:n-1]...)
		}
	}
	return o
}

// PassOnCases are outer packets around ip, before and after one candidate.
func PassOnCases(ip []byte) map[string][2]Outer {
	next := ProtocolOf(ip)
	s := addrs("fd00:c0de::d1", "fd00:c0de::d2", "fcbb:bb00:5:6::", "fd00:c0de::d4",
		"fd00:c0de::d5", "fd00:c0de::d6")
	step := func(before, after Outer, headers func(left uint8) []byte, left uint8) [2]Outer {
		before.Extensions, after.Extensions = headers(left), headers(left-1)
		return [2]Outer{before, after}
	}
	cases := map[string][2]Outer{
		"carrier of 2": {To(addr("fcbb:bb00:1:2::")), To(addr("fcbb:bb00:2::"))},
		"carrier of 3": {To(addr("fcbb:bb00:1:2:3::")), To(addr("fcbb:bb00:2:3::"))},
		"carrier of 4": {To(addr("fcbb:bb00:1:2:3:4::")), To(addr("fcbb:bb00:2:3:4::"))},
		"carrier of 5": {To(addr("fcbb:bb00:1:2:3:4:5::")), To(addr("fcbb:bb00:2:3:4:5::"))},
		"carrier of 6": {To(addr("fcbb:bb00:1:2:3:4:5:6")), To(addr("fcbb:bb00:2:3:4:5:6:0"))},
		"last bit":     {To(addr("fcbb:bb00:1::1")), To(addr("fcbb:bb00::1:0"))},
	}
	// Candidates that are the same host, by this SID or another one, are passed over.
	cases["carrier to itself"] = [2]Outer{To(addr("fcbb:bb00:1:1:1:2:3::")),
		To(addr("fcbb:bb00:2:3::"))}
	cases["SRH to itself"] = step(To(OfferSID), To(s[0]), func(left uint8) []byte {
		if left == 0 {
			return SRH(next, 0, 2, s[0], ClassicSID, OfferSID)
		}
		return SRH(next, 2, 2, s[0], ClassicSID, OfferSID)
	}, 1)
	for n := uint8(2); n <= 6; n++ {
		list := s[:n]
		cases[fmt.Sprintf("first of %d in an SRH", n)] = step(To(OfferSID), To(list[n-2]),
			func(left uint8) []byte {
				return SRH(next, left, n-1, list...)
			}, n-1)
		cases[fmt.Sprintf("first of %d in a reduced SRH", n)] = step(To(ClassicSID), To(list[n-2]),
			func(left uint8) []byte {
				return SRH(next, left, n-2, list[:n-1]...)
			}, n-1)
	}
	cases["last but one of 6 in an SRH"] = step(To(ClassicSID), To(s[0]), func(left uint8) []byte {
		return SRH(next, left, 5, s...)
	}, 1)
	cases["SRH behind other headers"] = step(To(OfferSID), To(s[1]), func(left uint8) []byte {
		return append(Extension(rout, 2), SRH(next, left, 2, s[:3]...)...)
	}, 2)
	first := cases["SRH behind other headers"]
	first[0].ExtensionNow, first[1].ExtensionNow = dst, dst
	cases["SRH behind other headers"] = first
	// A carrier comes to its end before the next segment's turn.
	mixture := [2]Outer{To(addr("fcbb:bb00:1:2::")), To(addr("fcbb:bb00:2::"))}
	for i := range mixture {
		mixture[i].Extensions = SRH(next, 1, 1, s[:2]...)
	}
	cases["carrier in an SRH"] = mixture
	return cases
}

// TakenCases are outer packets around ip, which a host takes as the last candidate. Their traffic
// class is as an edge makes it.
func TakenCases(ip []byte, class uint8) map[string]Outer {
	other, next := addr("fcbb:bb00:9::"), ProtocolOf(ip)
	cases := map[string]Outer{
		"carrier":       To(OfferSID),
		"whole address": To(ClassicSID),
		"SRH":           To(OfferSID).With(rout, SRH(next, 0, 2, other, other, other)),
		"SRH at DT46":   To(DT46SID).With(rout, SRH(next, 0, 0, other)),
		"itself":        To(addr("fcbb:bb00:1:1:1::")),
		"itself in an SRH": To(ClassicSID).With(rout,
			SRH(next, 2, 2, OfferSID, ClassicSID, other)),
		"itself in a carrier and an SRH": To(addr("fcbb:bb00:1:1::")).With(rout,
			SRH(next, 1, 1, ClassicSID, other)),
		"headers around": To(DT46SID).With(hop,
			Extension(dst, 3), Extension(rout, 0), SRH(dst, 0, 1, other, other),
			Extension(next, 1)),
	}
	for name, outer := range cases {
		outer.TrafficClass = class
		cases[name] = outer
	}
	return cases
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, addr(text))
	}
	return all
}
