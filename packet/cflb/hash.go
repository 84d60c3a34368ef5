package cflb

import "encoding/binary"

// Constants of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
// 2014), with Stafford's 13th mixer.
const (
	golden = 0x9e3779b97f4a7c15
	mixA   = 0xbf58476d1ce4e5b9
	mixB   = 0x94d049bb133111eb
)

// mix is a bijection of 64 bits in which each bit of the input changes half of the output.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * mixA
	x = (x ^ x>>27) * mixB
	return x ^ x>>31
}

// absorb adds a word to a hash. It is weaker than mix, which ends each hash.
func absorb(h, word uint64) uint64 {
	h = (h ^ word) * mixA
	return h ^ h>>32
}

// keyWords returns the 128-bit key as two big-endian words.
func keyWords(key [KeyLength]byte) (uint64, uint64) {
	return binary.BigEndian.Uint64(key[:8]), binary.BigEndian.Uint64(key[8:])
}

func absorbAddresses(h uint64, p Packet) uint64 {
	if p.Src.Is4() {
		src, dst := p.Src.As4(), p.Dst.As4()
		return absorb(h, uint64(binary.BigEndian.Uint32(src[:]))<<32|
			uint64(binary.BigEndian.Uint32(dst[:])))
	}
	src, dst := p.Src.As16(), p.Dst.As16()
	h = absorb(h, binary.BigEndian.Uint64(src[:8]))
	h = absorb(h, binary.BigEndian.Uint64(src[8:]))
	h = absorb(h, binary.BigEndian.Uint64(dst[:8]))
	return absorb(h, binary.BigEndian.Uint64(dst[8:]))
}

// uncontrolled is H(u_f) of a packet that has the controllable fields: over the addresses and,
// unless the flow label alone is controllable, the protocol and a destination port that is not
// controllable.
func (c *Codec) uncontrolled(p Packet) uint64 {
	var rest uint64
	if c.fields != FlowLabel {
		rest = uint64(p.Protocol)
		if !c.fields.hasDestinationPort() {
			rest |= uint64(p.DstPort) << 8
		}
	}
	return mix(absorbAddresses(c.seed, p) ^ rest)
}

// whole is the hash of a packet that lacks a controllable field: over all of the 5-tuple that it
// has.
func (c *Codec) whole(p Packet) uint64 {
	rest := uint64(p.Protocol)
	if p.HasPorts {
		rest |= uint64(p.DstPort)<<8 | uint64(p.SrcPort)<<24
	}
	return mix(absorbAddresses(c.seed, p) ^ rest)
}

// fallback is H(u_f || c_f || router), of which the upper 32 bits choose: the router's number keeps
// routers in a row from all making the same choice.
func fallback(h, controllable uint64, router uint32) uint32 {
	return uint32(mix((h^controllable)+uint64(router)*golden) >> 32)
}
