package flow

import (
	"encoding/binary"
	"fmt"

	"sextant/packet/syntax"
)

// Function is how a flow's hash is computed. All edges and hosts of a cluster use the same one.
// What each is worth against clients who aim flows: docs/explanation/hash.md.
type Function uint8

// The functions.
const (
	BySipHash Function = iota // SipHash-1-3 of the 5-tuple
	ByNH                      // universal hashing to 128 bits, then SipHash's finalization
)

var functionNames = [...]string{BySipHash: "siphash", ByNH: "nh"}

// FunctionNames returns the names of all functions.
func FunctionNames() []string { return functionNames[:] }

// ParseFunction reads a function's name.
func ParseFunction(text string) (Function, error) {
	for f, name := range functionNames {
		if name == text {
			return Function(f), nil
		}
	}
	return 0, syntax.Wrong("write siphash or nh", "no flow hash is called %q", text)
}

// String returns the function's name.
func (f Function) String() string {
	if int(f) < len(functionNames) {
		return functionNames[f]
	}
	return fmt.Sprintf("Function(%d)", uint8(f))
}

// Sums and words of NH, as in bpf/include/flow.h.
const (
	nhSums = 2
	nhKeys = 10
)

// NHKey is what NH needs of a secret: a 32-bit key for each word and sum, and the state that the
// sums are added to. Programs get it from the loader.
type NHKey struct {
	Words [nhSums][nhKeys]uint32
	State [4]uint64
}

// NHKey derives the key: SipHash-2-4, a pseudo-random function, of counters.
func (s Secret) NHKey() (k NHKey) {
	label := []byte("flow hash NH 0")
	next := func() uint64 {
		label[len(label)-1]++
		return sipHash(2, 4, s, label)
	}
	for i := range k.Words {
		for j := 0; j < nhKeys; j += 2 {
			pair := next()
			k.Words[i][j], k.Words[i][j+1] = uint32(pair), uint32(pair>>32)
		}
	}
	for i := range k.State {
		k.State[i] = next()
	}
	return k
}

// Signing returns the secret with which nodes that hash this way sign what they tell each other of
// buckets: those that hash in another way, to which it would mean something else, do not believe
// it.
func (f Function) Signing(s Secret) (signing Secret) {
	if f == BySipHash {
		return s // as before there was another one
	}
	for i := range 2 {
		label := fmt.Sprintf("signing by %v %d", f, i)
		binary.LittleEndian.PutUint64(signing[8*i:], sipHash(2, 4, s, []byte(label)))
	}
	return signing
}

// Hash returns the flow hash of t under s.
func (f Function) Hash(s Secret, t Tuple) uint64 {
	if f == BySipHash {
		return s.Hash(t)
	}
	return s.NHKey().Hash(t)
}

// Hash returns the NH flow hash of t: see the constants.
func (k NHKey) Hash(t Tuple) uint64 {
	var sums [nhSums]uint64
	src, dst, ports := t.Src.As16(), t.Dst.As16(), [4]byte{}
	binary.BigEndian.PutUint16(ports[:], t.SrcPort)
	binary.BigEndian.PutUint16(ports[2:], t.DstPort)
	last := uint32(t.Protocol)
	ipv4 := t.Src.Is4() && t.Dst.Is4()
	if ipv4 {
		last |= 1 << 8
	}
	for i := range sums {
		pair := func(at int, words []byte) uint64 {
			return nhPair(k.Words[i][at:], binary.LittleEndian.Uint32(words),
				binary.LittleEndian.Uint32(words[4:]))
		}
		sums[i] = pair(0, dst[:]) + pair(2, dst[8:]) + pair(6, src[8:]) +
			nhPair(k.Words[i][8:], binary.LittleEndian.Uint32(ports[:]), last)
		if !ipv4 {
			sums[i] += pair(4, src[:])
		}
	}
	state := sipState{k.State[0] ^ sums[0], k.State[1], k.State[2] ^ sums[1], k.State[3]}
	state.rounds(nhRounds)
	return state.v0 ^ state.v1 ^ state.v2 ^ state.v3
}

// nhRounds are those of SipHash-1-3's finalization.
const nhRounds = 3

// nhPair is NH of two words: each is added to its key in 32 bits, the product has 64.
func nhPair(keys []uint32, first, second uint32) uint64 {
	return uint64(first+keys[0]) * uint64(second+keys[1])
}
