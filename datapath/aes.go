package datapath

import (
	"encoding/binary"
	"math/bits"
)

const (
	aesRounds  = 10
	aesDecrypt = 1 // AES_DECRYPT
)

// The first column of MixColumns and of its inverse (FIPS 197 sections 5.1.3 and 5.3.3).
var (
	mixColumn        = [4]byte{2, 1, 1, 3}
	inverseMixColumn = [4]byte{0x0e, 0x09, 0x0d, 0x0b}
)

// gfMultiply multiplies in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
func gfMultiply(a, b byte) (product byte) {
	for ; b > 0; b >>= 1 {
		if b&1 != 0 {
			product ^= a
		}
		a = a<<1 ^ a>>7*0x1b
	}
	return product
}

// substitution is SubBytes: the inverse in GF(2^8), then an affine map (FIPS 197 section 5.1.1).
func substitution() (box [256]byte) {
	// 3 generates the field: p runs over all but 0, and q over their inverses (f6 is that of 3).
	p, q := byte(1), byte(1)
	for range 255 {
		box[p] = q ^ bits.RotateLeft8(q, 1) ^ bits.RotateLeft8(q, 2) ^ bits.RotateLeft8(q,
			3) ^ bits.RotateLeft8(q, 4) ^ 0x63
		p, q = gfMultiply(p, 3), gfMultiply(q, 0xf6)
	}
	box[0] = 0x63
	return box
}

// newAESTables computes the tables of both directions, by AES_ENCRYPT and AES_DECRYPT.
func newAESTables() (tables [2]aesTables) {
	box := substitution()
	var inverse [256]byte
	for i, s := range box {
		inverse[s] = byte(i)
	}
	tables[0].Last, tables[aesDecrypt].Last = box, inverse
	for i := range 256 {
		tables[0].Mixed[i] = mixed(box[i], mixColumn)
		tables[aesDecrypt].Mixed[i] = mixed(inverse[i], inverseMixColumn)
	}
	return tables
}

func mixed(b byte, column [4]byte) uint32 {
	var out [4]byte
	for i, factor := range column {
		out[i] = gfMultiply(b, factor)
	}
	return binary.LittleEndian.Uint32(out[:])
}

// encryptionKey expands a key of 16 bytes (FIPS 197 section 5.2).
func encryptionKey(key []byte) (k aesKey) {
	box, constant := substitution(), byte(1)
	copy(k.Rounds[0][:], key)
	for round := 1; round <= aesRounds; round++ {
		before, now := &k.Rounds[round-1], &k.Rounds[round]
		for i := range 4 {
			now[i] = before[i] ^ box[before[12+(i+1)%4]]
		}
		now[0] ^= constant
		for i := 4; i < 16; i++ {
			now[i] = before[i] ^ now[i-4]
		}
		constant = gfMultiply(constant, 2)
	}
	return k
}

// decryptionKey is for the equivalent inverse cipher (FIPS 197 section 5.3.5), with the columns 1
// and 3 exchanged.
func decryptionKey(key []byte) (k aesKey) {
	forth := encryptionKey(key)
	k.Direction = aesDecrypt
	for round := range k.Rounds {
		from := forth.Rounds[aesRounds-round]
		for column := range 4 {
			c := [4]byte(from[4*column:])
			if round != 0 && round != aesRounds {
				c = unmixed(c)
			}
			copy(k.Rounds[round][4*((4-column)%4):], c[:])
		}
	}
	return k
}

// unmixed is InvMixColumns of one column.
func unmixed(column [4]byte) (out [4]byte) {
	for row := range out {
		for i, b := range column {
			out[row] ^= gfMultiply(b, inverseMixColumn[(row-i+4)%4])
		}
	}
	return out
}
