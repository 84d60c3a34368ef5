package rib

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unique"

	"sextant/linux/rtnetlink"
)

// MaxBuckets bounds the parts of a group that is written leg by leg.
const MaxBuckets = 1024

// Draw gives each bucket of a set one of its hops, by weighted rendezvous hashing: a hop that
// leaves or joins moves its own buckets and no others, whatever came before. Unlike the buckets of
// a resilient group of the kernel, which depend on what happened to it, drawn ones can be copied to
// another table. A set without buckets is what it was.
func (s Set) Draw() Set {
	if s.Buckets() == 0 || s.drawn() {
		return s
	}
	hops := s.Hops()
	texts, digests := make([]string, len(hops)), make([]uint64, len(hops))
	for i, h := range hops {
		texts[i] = textOf(h)
		digests[i] = digest(texts[i])
	}
	buckets := min(s.Buckets(), MaxBuckets)
	b := head(buckets, true)
	for bucket := range buckets {
		best, highest := 0, math.Inf(-1)
		for i, h := range hops {
			// In (0, 1), from the 53 bits that a float64 holds.
			chance := (float64(mix(digests[i]^mix(uint64(bucket)+1))>>11) + 0.5) / (1 << 53)
			if score := -float64(h.Weight) / math.Log(chance); score > highest {
				best, highest = i, score
			}
		}
		b = appendHop(b, 1, texts[best])
	}
	return Set{unique.Make(string(b))}
}

// Drawn is the set whose buckets have these hops, each of weight 1.
func Drawn(hops []rtnetlink.Hop) Set {
	b := head(len(hops), true)
	for _, h := range hops {
		b = appendHop(b, 1, textOf(h))
	}
	return Set{unique.Make(string(b))}
}

// digest and mix spread bits as splitmix64 does (Steele et al., 2014). Nobody but routing chooses
// what is hashed.
func digest(text string) uint64 {
	sum := uint64(len(text))
	for len(text) >= 8 {
		sum, text = mix(bits.RotateLeft64(sum, 17)^binary.LittleEndian.Uint64([]byte(text[:8]))),
			text[8:]
	}
	for i := range len(text) {
		sum = mix(bits.RotateLeft64(sum, 17) ^ uint64(text[i]))
	}
	return sum
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
