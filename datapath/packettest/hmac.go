package packettest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
)

// Signing is a key for the HMAC TLV (RFC 8754 section 2.1.2), by octets.
type Signing struct {
	ID     uint32
	Secret string
	Linux  bool // the text as Linux makes it
}

// tlv returns the SRH with something behind its segments, and its length to match.
func tlv(srh []byte, octets ...byte) []byte {
	return Patched(append(slices.Clone(srh), octets...), 1, uint8((len(srh)+len(octets))/8-1))
}

// SRH returns a segment routing header without TLVs with an HMAC TLV behind it, for a packet of a
// source.
func (s Signing) SRH(source netip.Addr, srh []byte) []byte {
	const left, last, flags, segments = 3, 4, 5, 8
	d := []byte{0, 0}
	if srh[left] > srh[last] {
		d[0] = 0x80
	}
	if s.Linux {
		srh = Patched(srh, flags, 0x08)
	}
	id := binary.BigEndian.AppendUint32(nil, s.ID)
	mac := hmac.New(sha256.New, []byte(s.Secret))
	mac.Write(source.AsSlice())
	mac.Write(srh[last:segments][:2])
	if !s.Linux {
		mac.Write(d)
	}
	mac.Write(id)
	mac.Write(srh[segments:])
	return tlv(srh, slices.Concat([]byte{5, 38}, d, id, mac.Sum(nil))...)
}

// Encapsulated is the function Encapsulated with a signed SRH. A carrier can't be signed; a list of
// one segment is not reduced.
func (s Signing) Encapsulated(t testing.TB, encapsulation string, ids []uint16, label uint32,
	class uint8, ip []byte) []byte {
	t.Helper()
	if len(ids) == 1 {
		encapsulation = FullSRH
	}
	o := outerOf(encapsulation, ids, label, class, ProtocolOf(ip))
	o.Extensions = s.SRH(o.Src, o.Extensions)
	return o.Around(t, Forwarded(ip))
}

// HMACCases are frames to the host of HostCases if it insists on HMACs in all segment routing
// headers, under this key.
func (s Signing) HMACCases(t testing.TB) []Case {
	t.Helper()
	syn4, other, on := Web4("S").Bytes(t), addr("fcbb:bb00:2::"), FromClient().onto(t)
	whole := func(left uint8) []byte { return SRH(ip4, left, 1, other, OfferSID) }
	signed := s.SRH(EdgeAddr, whole(1))
	list, hmac := signed[:40], signed[40:]
	to := func(srh []byte) []byte { return on(To(OfferSID).With(rout, srh).Around(t, syn4)) }
	last := SRH(ip4, 0, 1, OfferSID, other)
	wrong, unknown := s, s
	wrong.Secret += "!"
	unknown.ID++
	otherForm := s
	otherForm.Linux = !s.Linux
	nobody := s
	nobody.ID = 0
	many := make([]netip.Addr, 12)
	for i := range many {
		many[i] = other
	}
	many[11] = OfferSID
	return from(External, []row{
		{"signed", to(signed), "redirect"},
		{"signed, at its last segment", to(s.SRH(EdgeAddr, last)), "take"},
		{"signed, reduced, at its first", to(s.SRH(EdgeAddr, SRH(ip4, 2, 1, OfferSID, other))),
			"redirect"},
		{"signed, of one segment", to(s.SRH(EdgeAddr, SRH(ip4, 0, 0, OfferSID))), "take"},
		{"signed, of 12 segments", to(s.SRH(EdgeAddr, SRH(ip4, 11, 11, many...))), "redirect"},
		{"signed, of 13 segments", to(s.SRH(EdgeAddr,
			SRH(ip4, 12, 12, append([]netip.Addr{other}, many...)...))), "hmac_wrong"},
		{"signed, with another tag", to(Patched(signed, 6, 1, 2)), "redirect"},
		{"no SRH", on(To(OfferSID).Around(t, syn4)), "take"},
		{"no TLV", to(whole(1)), "hmac_missing"},
		{"no HMAC among TLVs", to(tlv(whole(1), 4, 4, 0, 0, 0, 0, 0, 0)), "hmac_missing"},
		{"another key", to(unknown.SRH(EdgeAddr, whole(1))), "hmac_key"},
		{"key 0", to(nobody.SRH(EdgeAddr, whole(1))), "hmac_key"},
		{"another secret", to(wrong.SRH(EdgeAddr, whole(1))), "hmac_wrong"},
		{"another form", to(otherForm.SRH(EdgeAddr, whole(1))), "hmac_wrong"},
		{"another source", to(s.SRH(HostAddr, whole(1))), "hmac_wrong"},
		{"another flag", to(Patched(signed, 5, signed[5]|0x20)), "hmac_wrong"},
		{"another segment", to(Patched(signed, 8, 0x20)), "hmac_wrong"},
		{"the digest's last bit", to(Patched(signed, 79, signed[79]^1)), "hmac_wrong"},
		{"the segment is not the destination", to(Patched(signed, 3, 0)), "hmac_wrong"},
		{"segments left as if reduced", to(Patched(signed, 3, 2)), "hmac_wrong"},
		{"HMAC of 24 bytes", to(tlv(list, slices.Concat([]byte{5, 30}, hmac[2:32])...)), "bad_srh"},
		{"a length that counts the digest", to(Patched(signed, 41, 32)), "bad_srh"},
		{"HMAC behind the header", to(tlv(list, hmac[:32]...)), "bad_srh"},
		{"a TLV behind the header", to(Patched(tlv(signed, make([]byte, 8)...), 80, 124, 7)),
			"bad_srh"},
		{"PadN of 6", to(tlv(list, slices.Concat([]byte{4, 6}, make([]byte, 6), hmac)...)),
			"bad_srh"},
		{"two HMACs", to(tlv(signed, hmac...)), "bad_srh"},
		{"7 TLVs before the HMAC", to(tlv(list, slices.Concat(make([]byte, 6), []byte{124, 8},
			make([]byte, 8), hmac)...)), "redirect"},
		{"8 TLVs before the HMAC", to(tlv(list, slices.Concat(make([]byte, 8), hmac)...)),
			"bad_srh"},
		{"128 bytes of TLVs", to(tlv(list, slices.Concat([]byte{124, 86}, make([]byte, 86),
			hmac)...)), "redirect"},
		{"136 bytes of TLVs", to(tlv(list, slices.Concat([]byte{124, 94}, make([]byte, 94),
			hmac)...)), "bad_srh"},
		{"from outside of the domain",
			on(To(OfferSID).From("2001:db8::1").With(rout, whole(1)).Around(t, syn4)),
			"outside_domain"},
		{"another host's", on(To(other).With(rout, whole(0)).Around(t, syn4)), "pass"},
		{"DT46 without a TLV", on(To(DT46SID).With(rout, SRH(ip4, 0, 0, DT46SID)).Around(t, syn4)),
			"hmac_missing"},
		{"DT46, signed", on(To(DT46SID).With(rout,
			s.SRH(EdgeAddr, SRH(ip4, 0, 0, DT46SID))).Around(t, syn4)), "take"},
	})
}
