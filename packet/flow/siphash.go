package flow

import (
	"encoding/binary"
	"math/bits"
)

// SipHash13 is SipHash with one compression and three finalisation rounds (Aumasson and Bernstein,
// "SipHash: a fast short-input PRF", 2012) of b under the key k. One and three rounds are what
// Linux, CPython and Rust settled on for hash tables: an attacker who sees no hash values cannot
// aim at a bucket.
func SipHash13(k Secret, b []byte) uint64 {
	return sipHash(1, 3, k, b)
}

// SipHash24 is SipHash-2-4 of b under the key k, which its authors propose as a code of messages'
// authenticity: who does not have the key finds the code of a message by chance, one in 2^64.
func SipHash24(k Secret, b []byte) uint64 { return sipHash(2, 4, k, b) }

// sipHash is SipHash-c-d: c rounds per 8-octet word of the message, d rounds at the end.
func sipHash(c, d int, k Secret, b []byte) uint64 {
	s := newSipState(k)
	last := uint64(len(b)) << 56
	for ; len(b) >= 8; b = b[8:] {
		s.compress(c, binary.LittleEndian.Uint64(b))
	}
	for i, octet := range b {
		last |= uint64(octet) << (8 * i)
	}
	s.compress(c, last)
	s.v2 ^= 0xff
	s.rounds(d)
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3
}

// sipState is the four-word state. Its initial value spells "somepseudorandomlygeneratedbytes".
type sipState struct{ v0, v1, v2, v3 uint64 }

func newSipState(k Secret) sipState {
	k0 := binary.LittleEndian.Uint64(k[:8])
	k1 := binary.LittleEndian.Uint64(k[8:])
	return sipState{
		v0: k0 ^ 0x736f6d6570736575,
		v1: k1 ^ 0x646f72616e646f6d,
		v2: k0 ^ 0x6c7967656e657261,
		v3: k1 ^ 0x7465646279746573,
	}
}

func (s *sipState) compress(c int, word uint64) {
	s.v3 ^= word
	s.rounds(c)
	s.v0 ^= word
}

func (s *sipState) rounds(n int) {
	v0, v1, v2, v3 := s.v0, s.v1, s.v2, s.v3
	for range n {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	s.v0, s.v1, s.v2, s.v3 = v0, v1, v2, v3
}
