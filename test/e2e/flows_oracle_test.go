package e2e_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"slices"
)

// What follows is docs/explanation/hash.md and docs/explanation/pcc.md in code of their own: where
// a packet of a flow goes, from the secret, the flow, and what has become of its service. It has
// nothing in common with what the edge does.

func sipRounds(v *[4]uint64, n int) {
	for range n {
		v[0] += v[1]
		v[2] += v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 13)^v[0], bits.RotateLeft64(v[3], 16)^v[2]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[1]
		v[0] += v[3]
		v[1], v[3] = bits.RotateLeft64(v[1], 17)^v[2], bits.RotateLeft64(v[3], 21)^v[0]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
}

// flowOracle knows the secret, and what the flow hash has as keys under it.
type flowOracle struct {
	secret [2]uint64
	keys   [2][10]uint32
	state  [4]uint64
}

func newFlowOracle(secret [16]byte) *flowOracle {
	o := &flowOracle{secret: [2]uint64{binary.LittleEndian.Uint64(secret[:]),
		binary.LittleEndian.Uint64(secret[8:])}}
	next := byte('0')
	word := func() uint64 {
		next++
		return o.sip(2, 4, "flow hash NH "+string(rune(next)))
	}
	for sum := range o.keys {
		for i := 0; i < 10; i += 2 {
			both := word()
			o.keys[sum][i], o.keys[sum][i+1] = uint32(both), uint32(both>>32)
		}
	}
	for i := range o.state {
		o.state[i] = word()
	}
	return o
}

// sip is SipHash-c-d.
func (o *flowOracle) sip(c, d int, text string) uint64 {
	v := [4]uint64{o.secret[0] ^ 0x736f6d6570736575, o.secret[1] ^ 0x646f72616e646f6d,
		o.secret[0] ^ 0x6c7967656e657261, o.secret[1] ^ 0x7465646279746573}
	p := []byte(text)
	for len(p)%8 != 7 {
		p = append(p, 0)
	}
	for p = append(p, byte(len(text))); len(p) > 0; p = p[8:] {
		word := binary.LittleEndian.Uint64(p)
		v[3] ^= word
		sipRounds(&v, c)
		v[0] ^= word
	}
	v[2] ^= 0xff
	sipRounds(&v, d)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// hash is that of a flow.
func (o *flowOracle) hash(src, dst netip.Addr, srcPort, dstPort uint16, protocol uint32) uint64 {
	var text [36]byte
	from, to := src.As16(), dst.As16()
	copy(text[copy(text[:], to[:]):], from[:])
	binary.BigEndian.PutUint16(text[32:], srcPort)
	binary.BigEndian.PutUint16(text[34:], dstPort)
	var w [10]uint32
	for i := range 9 {
		w[i] = binary.LittleEndian.Uint32(text[4*i:])
	}
	if w[9] = protocol; dst.Is4() {
		w[9] += 256
	}
	var sums [2]uint64
	for i, k := range o.keys {
		for p := 0; p < 10; p += 2 {
			if p != 4 || dst.Is6() {
				sums[i] += uint64(w[p]+k[p]) * uint64(w[p+1]+k[p+1])
			}
		}
	}
	v := [4]uint64{o.state[0] ^ sums[0], o.state[1], o.state[2] ^ sums[1], o.state[3]}
	sipRounds(&v, 3)
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

// splitMix is the output function of SplitMix64.
func splitMix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// bucketsOf is how many buckets a service has that says so many backends at most, or nothing.
func bucketsOf(maxBackends int) int {
	if maxBackends == 0 {
		maxBackends = 64
	}
	n := max(1021, 100*maxBackends)
	for slices.ContainsFunc([]int{2, 3, 5, 7}, func(p int) bool { return n%p == 0 }) ||
		hasDivisor(n) {
		n++
	}
	return n
}

func hasDivisor(n int) bool {
	for d := 11; d*d <= n; d += 2 {
		if n%d == 0 {
			return true
		}
	}
	return false
}

// expected is what may become of a packet of a flow: the ids that leave the edge, in order.
type expected struct {
	ids        [6]uint16
	candidates int // to which a SYN goes
	length     int // to which the others go
}

func (e *expected) push(id uint16, depth int) {
	if e.length < depth && !slices.Contains(e.ids[:e.length], id) {
		e.ids[e.length] = id
		e.length++
	}
}

// closeScores is how far apart scores must be for their order to be sure, since the edge has its
// logarithms to 26 bits.
const closeScores = 1e-7

type scoredBackend struct {
	id       uint16
	score    float64
	unsure   float64
	up, gone bool
}

// order is that of a bucket's backends, who have a weight: the lowest score first. It is unsure if
// two of the first ones are close.
func (v *flowVersion) order(seed uint64, bucket, buckets int) (order []scoredBackend, unsure bool) {
	for _, b := range v.backends {
		if b.weight == 0 {
			continue
		}
		draw := splitMix(seed ^ splitMix(uint64(bucket)<<16^uint64(b.id)))
		if buckets >= 100_000 {
			draw = largeDraw(draw, splitMix(seed^uint64(b.id)), uint64(bucket), buckets)
		}
		order = append(order, scoredBackend{b.id,
			(64 - math.Log2(float64(draw)+1)) / float64(b.weight), closeScores / float64(b.weight),
			b.state == "up", b.state == "down"})
	}
	slices.SortFunc(order, func(a, b scoredBackend) int {
		if a.score < b.score {
			return -1
		}
		return 1
	})
	for i := range min(len(order)-1, 12) {
		a, b := order[i], order[i+1]
		unsure = unsure || b.score-a.score < a.unsure+b.unsure
	}
	return order, unsure
}

// largeDraw is a draw of a large table, from that of another one.
func largeDraw(draw, key, bucket uint64, buckets int) uint64 {
	size := bits.Len(uint(buckets - 1))
	half := size / 2
	high, low := bucket>>half, bucket&(1<<half-1)
	for round := uint64(0); round < 4; round += 2 {
		high ^= splitMix(key^round<<32^low) & (1<<(size-half) - 1)
		low ^= splitMix(key^(round+1)<<32^high) & (1<<half - 1)
	}
	return (1<<size-1-(high<<half|low))<<(64-size) | draw>>size
}

// chains are those of a bucket in all versions of its service. Not sure: see order.
func (s *flowService) chains(bucket int) (chains []expected, sure bool) {
	sure = true
	var owners []uint16 // the candidates, and behind them those before, the latest first
	present := 0        // of these, the candidates
	for i := range s.versions {
		v := &s.versions[i]
		if v.absent {
			chains = append(chains, expected{})
			owners, present = nil, 0
			continue
		}
		if s.table == "modulo" {
			chains = append(chains, v.modulo(bucket))
			continue
		}
		order, unsure := v.order(s.seed, bucket, s.buckets)
		sure = sure && !unsure
		owners = slices.DeleteFunc(owners, func(id uint16) bool { return !v.alive(id) })
		var c expected
		for _, b := range order {
			if b.up {
				c.push(b.id, s.candidates)
			}
		}
		strangers := 0
		for _, id := range c.ids[:c.length] {
			if !slices.Contains(owners, id) {
				strangers++
			}
		}
		if present > 0 && s.depth > s.candidates && strangers > s.depth-len(owners) {
			if s.candidates > 1 {
				panic("a candidate waits beside another one: leave this out of the plan")
			}
			c = expected{} // a chain that is full of those who had the bucket takes nobody else
			c.push(owners[0], 1)
		}
		c.candidates = c.length
		for _, id := range owners {
			c.push(id, s.depth)
		}
		owners, present = slices.Clone(c.ids[:c.length]), c.candidates
		for _, b := range order {
			if !b.gone {
				c.push(b.id, s.depth)
			}
		}
		chains = append(chains, c)
	}
	return chains, sure
}

// alive says whether a chain may name the backend.
func (v *flowVersion) alive(id uint16) bool {
	state := v.state(id)
	return state != "" && state != "down"
}

// modulo is the one owner of a bucket with table modulo: the backends that are up in the order of
// their ids, each as often as its weight says; weights have no common divisor.
func (v *flowVersion) modulo(bucket int) (e expected) {
	up := slices.DeleteFunc(slices.Clone(v.backends), func(b flowBackend) bool {
		return b.state != "up"
	})
	slices.SortFunc(up, func(a, b flowBackend) int { return int(a.id) - int(b.id) })
	var turns []uint16
	for _, b := range up {
		turns = append(turns, slices.Repeat([]uint16{b.id}, b.weight)...)
	}
	e.push(turns[bucket%len(turns)], 1)
	e.candidates = 1
	return e
}

// state is that of a backend; empty: it is not there.
func (v *flowVersion) state(id uint16) string {
	for _, b := range v.backends {
		if b.id == id {
			return b.state
		}
	}
	return ""
}
