package model

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
)

// HMACRule says which packets to a host's SIDs have to have an HMAC TLV (RFC 8754 section 2.1.2).
type HMACRule uint8

// The rules.
const (
	HMACNone    HMACRule = iota // HMAC TLVs are not looked at
	HMACPresent                 // those that are there have to be right
	HMACSRH                     // all with a segment routing header
	HMACAll                     // all
)

// What a program can look at.
const (
	maxSignedSegments = 12
	maxSignedTLVs     = 8
	maxTLVBytes       = 128 // of all TLVs
	hmacTLVBytes      = 40
)

// checkHMAC verifies a packet to a SID, whose SRH the walk has checked.
func (h *Host) checkHMAC(p *packet) Reason {
	switch {
	case h.HMAC == HMACNone:
		return ReasonNone
	case p.srh == 0 && h.HMAC == HMACAll:
		return ReasonHMACMissing
	case p.srh == 0:
		return ReasonNone
	}
	octets := p.data[p.srh:]
	if tlvs := extensionUnit*int(octets[1]) - segmentLength*(int(octets[srhLastEntry])+
		1); tlvs > maxTLVBytes {
		return ReasonBadSRH
	}
	header, _, err := srv6.ParseSRH(octets)
	if err != nil || len(header.TLVs) > maxSignedTLVs {
		return ReasonBadSRH
	}
	err = srv6.VerifyHMAC(p.src, p.dst, header, func(id uint32) (srv6.HMACKey, bool) {
		key, ok := h.HMACKeys[id]
		return key, ok
	})
	switch {
	case errors.Is(err, srv6.ErrHMACTLV):
		return ReasonBadSRH
	case errors.Is(err, srv6.ErrNoHMAC) && h.HMAC == HMACPresent:
		return ReasonNone
	case errors.Is(err, srv6.ErrNoHMAC):
		return ReasonHMACMissing
	case errors.Is(err, srv6.ErrHMACKey):
		return ReasonHMACKey
	case err != nil || len(header.Segments) > maxSignedSegments:
		return ReasonHMACWrong
	}
	return ReasonNone
}

// appendHMAC appends the HMAC TLV to what ends with the SRH of a path.
func (e *Edge) appendHMAC(b []byte, source netip.Addr, path *path) []byte {
	const length, flags, tlvLength, reduced = 1, 5, 38, 0x80
	srh := b[len(b)-srhFixedLength-segmentLength*len(path.list):]
	srh[length] += hmacTLVBytes / extensionUnit
	if e.HMAC.Form == srv6.HMACLinux {
		srh[flags] = srv6.LinuxHMACFlag
	}
	header := srv6.SRH{LastEntry: srh[srhLastEntry], Flags: srh[flags],
		Segments: slices.Clone(path.list)}
	slices.Reverse(header.Segments)
	tlv := srv6.HMAC{KeyID: e.HMAC.ID, ReducedPath: path.left == len(path.list)}
	digest := e.HMAC.Digest(source, header, tlv)
	b = append(b, srv6.TLVHMAC, tlvLength, 0, 0)
	if tlv.ReducedPath {
		b[len(b)-2] = reduced
	}
	b = binary.BigEndian.AppendUint32(b, e.HMAC.ID)
	return append(b, digest[:]...)
}
