package packettest

import "net/netip"

// LearnSID is the edge's End.LEARN.
var LearnSID = addr("fd00:5e:0:1ea::1")

// Learn returns the outer packet in which a host sends a SYN-ACK to its client by way of the edge.
// Owner is the SID at which it took the SYN.
func Learn(ip []byte, owner netip.Addr) Outer {
	o := To(LearnSID).With(rout, SRH(ProtocolOf(ip), 0, 1, LearnSID, owner))
	o.Src, o.HopLimit = HostAddr, 64
	return o
}

// LearnCase is an outer packet to End.LEARN, and what becomes of it.
type LearnCase struct {
	Name  string
	Outer Outer
	IP    []byte
	Want  string // outcome or reason
	Cache string // what the flow cache does
}

// LearnCases are packets to End.LEARN which are not what a host sends. ip is a SYN-ACK, owner the
// SID of a backend.
func LearnCases(ip []byte, owner netip.Addr) []LearnCase {
	next := ProtocolOf(ip)
	flags := func(bits byte) []byte {
		at := 20
		if next == ip6 {
			at = 40
		}
		return Patched(ip, at+13, bits)
	}
	port := 20
	if next == ip6 {
		port = 40
	}
	bare := Learn(ip, owner)
	bare.Extensions = nil
	return []LearnCase{
		{"from outside", Learn(ip, owner).From("2001:db8::1"), ip, "outside_domain", ""},
		{"segments left", Learn(ip, owner).With(rout, SRH(next, 1, 1, LearnSID, owner)), ip,
			"segments_left", ""},
		{"more entries than there are",
			Learn(ip, owner).With(rout, SRH(next, 0, 2, LearnSID, owner)), ip, "bad_srh", ""},
		{"SYN", Learn(ip, owner), flags(0x02), "upper_layer", ""},
		{"ACK", Learn(ip, owner), flags(0x10), "upper_layer", ""},
		{"another port", Learn(ip, owner), Patched(ip, port, 0, 81), "no_service", ""},
		{"no packet inside", Learn(ip, owner).With(rout, SRH(59, 0, 1, LearnSID, owner)), ip,
			"upper_layer", ""},
		{"congestion", congested(Learn(ip, owner)), ip, "ecn", ""},
		{"without an SRH", bare, ip, "learned", "refused_unnamed"},
		{"one segment", Learn(ip, owner).With(rout, SRH(next, 0, 0, LearnSID)), ip, "learned",
			"refused_unnamed"},
		{"a stranger", Learn(ip, addr("fcbb:bb00:7777::")), ip, "learned", "refused_stranger"},
		{"more segments", Learn(ip, owner).With(rout, SRH(next, 0, 2, LearnSID, owner, LearnSID)),
			ip, "learned", "stored"},
		{"behind options", Learn(ip, owner).With(dst, Extension(rout, 1),
			SRH(next, 0, 1, LearnSID, owner)), ip, "learned", "stored"},
	}
}

func congested(o Outer) Outer {
	o.TrafficClass = 3
	return o
}
