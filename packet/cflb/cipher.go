package cflb

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// KeyLength is the length of a network's key in octets. Skip32 uses the first 10.
const KeyLength = 16

// A Cipher names the invertible function that spreads path selectors over the controllable bits. It
// hides nothing from anyone who can send packets and see their paths: it is there for even shares.
type Cipher uint8

// The ciphers. RC5 and Skip32 have blocks of 32 bits, so they fit two ports; the Feistel network
// fits every size.
const (
	Feistel Cipher = iota // six rounds of one multiplication, the default
	RC5                   // RC5-16/12/16: Rivest, "The RC5 encryption algorithm", 1994
	Skip32                // Rose, 1999: Skipjack's G on two halves of 16 bits
)

var cipherNames = []string{"feistel", "rc5", "skip32"}

// ParseCipher returns the cipher with a name: feistel, rc5 or skip32.
func ParseCipher(name string) (Cipher, error) {
	for i, known := range cipherNames {
		if known == name {
			return Cipher(i), nil
		}
	}
	return 0, fmt.Errorf("cipher %q: it is one of %s", name, strings.Join(cipherNames, ", "))
}

// String returns the name that ParseCipher reads.
func (c Cipher) String() string {
	if int(c) >= len(cipherNames) {
		return fmt.Sprintf("cipher %d", uint8(c))
	}
	return cipherNames[c]
}

// A permutation of the numbers below a size.
type permutation interface {
	encrypt(x uint64) uint64
	decrypt(x uint64) uint64
}

const blockBits = 32 // of RC5-16 and Skip32

func newPermutation(cipher Cipher, width int, key [KeyLength]byte) (permutation, error) {
	switch {
	case cipher == Feistel:
		return newFeistel(1<<width, key), nil
	case cipher != RC5 && cipher != Skip32:
		return nil, fmt.Errorf("there is no %s: it is one of %s", cipher,
			strings.Join(cipherNames, ", "))
	case width != blockBits:
		return nil, fmt.Errorf("%s has blocks of %d bits and the controllable fields have %d: "+
			"use %s, which fits them",
			cipher, blockBits, width, Feistel)
	case cipher == RC5:
		return newRC5(key[:], rc5Rounds), nil
	}
	return newSkip32([skip32KeyLength]byte(key[:skip32KeyLength])), nil
}

// FeistelRounds is the number of rounds of the Feistel network.
const FeistelRounds = 6

// A FeistelRound is the key of one round: half numbers go in, are changed by Add, and multiplied by
// the odd Multiply; the upper bits of the product come out.
type FeistelRound struct {
	Add      uint64
	Multiply uint64
}

// feistel permutes the numbers below size: a balanced network over the least even number of bits
// that holds them, walked along its cycle until the result is below size (Black and Rogaway,
// "Ciphers with arbitrary finite domains", 2002). A power of four needs no walk.
type feistel struct {
	size   uint64
	half   int // bits
	rounds [FeistelRounds]FeistelRound
}

func newFeistel(size uint64, key [KeyLength]byte) *feistel {
	return &feistel{size: size, half: max(1, (bits.Len64(size-1)+1)/2), rounds: feistelRounds(key)}
}

// feistelRounds draws the round keys from the key: outputs of SplitMix64 that begins at each half
// of it.
func feistelRounds(key [KeyLength]byte) (rounds [FeistelRounds]FeistelRound) {
	a, b := keyWords(key)
	for i := range rounds {
		a, b = a+golden, b+golden
		rounds[i] = FeistelRound{Add: mix(a), Multiply: mix(b) | 1}
	}
	return rounds
}

func (f *feistel) round(i int, x uint64) uint64 {
	return (x + f.rounds[i].Add) * f.rounds[i].Multiply >> (64 - f.half)
}

func (f *feistel) encrypt(x uint64) uint64 {
	for {
		left, right := x>>f.half, x&(1<<f.half-1)
		for i := range FeistelRounds {
			left, right = right, left^f.round(i, right)
		}
		if x = left<<f.half | right; x < f.size {
			return x
		}
	}
}

func (f *feistel) decrypt(x uint64) uint64 {
	for {
		left, right := x>>f.half, x&(1<<f.half-1)
		for i := FeistelRounds - 1; i >= 0; i-- {
			left, right = right^f.round(i, left), left
		}
		if x = left<<f.half | right; x < f.size {
			return x
		}
	}
}

const (
	rc5Rounds = 12
	rc5P      = 0xb7e1 // Odd((e-2) * 2^16)
	rc5Q      = 0x9e37 // Odd((golden ratio - 1) * 2^16)
)

// rc5 has words of 16 bits, little-endian in the block, whose octets are the number's in network
// order.
type rc5 struct{ subkeys []uint16 }

func newRC5(key []byte, rounds int) *rc5 {
	words := make([]uint16, (len(key)+1)/2)
	for i, k := range slices.Backward(key) {
		words[i/2] = words[i/2]<<8 | uint16(k)
	}
	s := make([]uint16, 2*(rounds+1))
	s[0] = rc5P
	for i := 1; i < len(s); i++ {
		s[i] = s[i-1] + rc5Q
	}
	var a, b uint16
	for k := range 3 * max(len(s), len(words)) {
		i, j := k%len(s), k%len(words)
		a = bits.RotateLeft16(s[i]+a+b, 3)
		s[i] = a
		b = bits.RotateLeft16(words[j]+a+b, int(a+b)&15)
		words[j] = b
	}
	return &rc5{s}
}

func (r *rc5) encrypt(x uint64) uint64 {
	a, b := bits.ReverseBytes16(uint16(x>>16)), bits.ReverseBytes16(uint16(x))
	a, b = a+r.subkeys[0], b+r.subkeys[1]
	for i := 2; i < len(r.subkeys); i += 2 {
		a = bits.RotateLeft16(a^b, int(b&15)) + r.subkeys[i]
		b = bits.RotateLeft16(b^a, int(a&15)) + r.subkeys[i+1]
	}
	return uint64(bits.ReverseBytes16(a))<<16 | uint64(bits.ReverseBytes16(b))
}

func (r *rc5) decrypt(x uint64) uint64 {
	a, b := bits.ReverseBytes16(uint16(x>>16)), bits.ReverseBytes16(uint16(x))
	for i := len(r.subkeys) - 2; i >= 2; i -= 2 {
		b = bits.RotateLeft16(b-r.subkeys[i+1], -int(a&15)) ^ a
		a = bits.RotateLeft16(a-r.subkeys[i], -int(b&15)) ^ b
	}
	a, b = a-r.subkeys[0], b-r.subkeys[1]
	return uint64(bits.ReverseBytes16(a))<<16 | uint64(bits.ReverseBytes16(b))
}

const (
	skip32KeyLength = 10
	skip32Rounds    = 24
)

type skip32 struct{ key [skip32KeyLength]byte }

func newSkip32(key [skip32KeyLength]byte) *skip32 { return &skip32{key} }

// g is Skipjack's permutation of 16 bits in round k.
func (s *skip32) g(k int, w uint16) uint16 {
	g1, g2 := byte(w>>8), byte(w)
	g3 := skipjackF[g2^s.key[4*k%10]] ^ g1
	g4 := skipjackF[g3^s.key[(4*k+1)%10]] ^ g2
	g5 := skipjackF[g4^s.key[(4*k+2)%10]] ^ g3
	g6 := skipjackF[g5^s.key[(4*k+3)%10]] ^ g4
	return uint16(g5)<<8 | uint16(g6)
}

func (s *skip32) encrypt(x uint64) uint64 { return s.run(x, 0, 1) }

func (s *skip32) decrypt(x uint64) uint64 { return s.run(x, skip32Rounds-1, -1) }

func (s *skip32) run(x uint64, k, step int) uint64 {
	left, right := uint16(x>>16), uint16(x)
	for range skip32Rounds / 2 {
		right ^= s.g(k, left) ^ uint16(k)
		k += step
		left ^= s.g(k, right) ^ uint16(k)
		k += step
	}
	return uint64(right)<<16 | uint64(left)
}
