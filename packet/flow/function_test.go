package flow_test

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/packet/flow"
)

var functions = []flow.Function{flow.BySipHash, flow.ByNH}

func TestParseFunction(t *testing.T) {
	for _, f := range functions {
		if got, err := flow.ParseFunction(f.String()); err != nil || got != f {
			t.Errorf("ParseFunction(%q) = %v, %v", f, got, err)
		}
	}
	if _, err := flow.ParseFunction("sha1"); err == nil {
		t.Error("sha1 is taken for a flow hash")
	}
}

// nhByIntegers is the NH flow hash in whole numbers of any size and in steps of single bits, as
// docs/explanation/hash.md has it.
func nhByIntegers(k flow.NHKey, t flow.Tuple) uint64 {
	word := func(b []byte) *big.Int { // least octet first
		n := new(big.Int)
		for i := range b {
			n.Or(n, new(big.Int).Lsh(big.NewInt(int64(b[i])), uint(8*i)))
		}
		return n
	}
	modulo := func(n *big.Int, bits uint) *big.Int {
		return n.Mod(n, new(big.Int).Lsh(big.NewInt(1), bits))
	}
	source, destination := t.Src.As16(), t.Dst.As16()
	ports := binary.BigEndian.AppendUint16(nil, t.SrcPort)
	ports = binary.BigEndian.AppendUint16(ports, t.DstPort)
	kind := []byte{t.Protocol, 0}
	if t.Src.Is4() {
		kind[1] = 1
	}
	words := []*big.Int{word(destination[:4]), word(destination[4:8]), word(destination[8:12]),
		word(destination[12:]), word(source[:4]), word(source[4:8]), word(source[8:12]),
		word(source[12:]), word(ports), word(kind)}
	var sums [2]uint64
	for i := range sums {
		sum := new(big.Int)
		for at := 0; at < len(words); at += 2 {
			if at == 4 && t.Src.Is4() {
				continue // half of an IPv4 address that all have
			}
			a := modulo(new(big.Int).Add(words[at], big.NewInt(int64(k.Words[i][at]))), 32)
			b := modulo(new(big.Int).Add(words[at+1], big.NewInt(int64(k.Words[i][at+1]))), 32)
			sum.Add(sum, a.Mul(a, b))
		}
		sums[i] = modulo(sum, 64).Uint64()
	}
	// SipHash's finalization, as its paper draws it.
	v := [4]uint64{k.State[0] ^ sums[0], k.State[1], k.State[2] ^ sums[1], k.State[3]}
	turn := func(x uint64, by int) uint64 { return x<<by | x>>(64-by) }
	for range 3 {
		v[0] += v[1]
		v[2] += v[3]
		v[1] = turn(v[1], 13) ^ v[0]
		v[3] = turn(v[3], 16) ^ v[2]
		v[0] = turn(v[0], 32)
		v[2] += v[1]
		v[0] += v[3]
		v[1] = turn(v[1], 17) ^ v[2]
		v[3] = turn(v[3], 21) ^ v[0]
		v[2] = turn(v[2], 32)
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func TestNHByIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tuple := drawTuple(t)
		if got, want := flow.ByNH.Hash(testSecret, tuple), nhByIntegers(testSecret.NHKey(),
			tuple); got != want {
			t.Errorf("NH of %v = %#x, want %#x", tuple, got, want)
		}
	})
}

// The keys come from SipHash-2-4 of counters, and no two of a secret are the same by construction.
func TestNHKey(t *testing.T) {
	k := testSecret.NHKey()
	var all []uint64
	for _, words := range k.Words {
		for i := 0; i < len(words); i += 2 {
			all = append(all, uint64(words[i])|uint64(words[i+1])<<32)
		}
	}
	all = append(all, k.State[:]...)
	for i, got := range all {
		text := append([]byte("flow hash NH "), '1'+byte(i))
		if want := flow.SipHash(2, 4, testSecret, text); got != want {
			t.Errorf("key %d is %#x, want %#x", i, got, want)
		}
	}
}

const (
	sequence = "addresses in sequence"
	against  = "ports against the address"
	twoWords = "two words of the address"
)

// adversarial are flows that differ in little: what a client can do most easily, or what a linear
// function would take for the same.
var adversarial = map[string]func(tuple *flow.Tuple, n uint32){
	"ports in sequence": func(t *flow.Tuple, n uint32) { t.SrcPort += uint16(n) },
	sequence: func(t *flow.Tuple, n uint32) {
		addTo(&t.Src, 4, n)
	},
	"upper halves of words": func(t *flow.Tuple, n uint32) { addTo(&t.Src, 4, n<<16) },
	against: func(t *flow.Tuple, n uint32) {
		t.SrcPort += uint16(n)
		addTo(&t.Src, 4, -n)
	},
	twoWords: func(t *flow.Tuple, n uint32) {
		addTo(&t.Src, 4, n&0xff)
		addTo(&t.Src, 8, n>>8)
	},
}

// addTo adds n to the 32 bits of an address that end so many octets before its end; of IPv4, to
// all.
func addTo(a *netip.Addr, end int, n uint32) {
	octets := a.AsSlice()
	at := max(0, len(octets)-end)
	word := binary.BigEndian.Uint32(octets[at:])
	binary.BigEndian.PutUint32(octets[at:], word+n)
	*a, _ = netip.AddrFromSlice(octets)
}

// Flows that differ in little spread evenly over the buckets: the statistic of the chi-square test
// with n-1 degrees of freedom stays within 5 standard deviations of its mean.
func TestAdversarialFlowsSpreadEvenly(t *testing.T) {
	const buckets, flows = 101, 1 << 16
	for name, change := range adversarial {
		for _, function := range functions {
			for _, client := range []string{"192.0.2.1", "2001:db8::1"} {
				if name == twoWords && client == "192.0.2.1" {
					continue // it has one
				}
				hash := hashing(function)
				var counts [buckets]float64
				for n := range uint32(flows) {
					tuple := flow.Tuple{Src: netip.MustParseAddr(client), DstPort: 80, Protocol: 6}
					tuple.Dst = tuple.Src.Next()
					change(&tuple, n)
					counts[flow.Bucket(hash(tuple), buckets)]++
				}
				if off := deviation(counts[:]); math.Abs(off) > 5 {
					t.Errorf("%s, %s, client %s: chi-square is %.1f standard deviations off", name,
						function, client, off)
				}
			}
		}
	}
}

// hashing is a function under the tests' secret, with its key derived once.
func hashing(f flow.Function) func(flow.Tuple) uint64 {
	if f == flow.BySipHash {
		return testSecret.Hash
	}
	return testSecret.NHKey().Hash
}

// deviation is how many standard deviations the chi-square statistic of counts is off its mean.
func deviation(counts []float64) float64 {
	total := 0.0
	for _, count := range counts {
		total += count
	}
	mean, chiSquare := total/float64(len(counts)), 0.0
	for _, count := range counts {
		chiSquare += (count - mean) * (count - mean) / mean
	}
	freedom := float64(len(counts) - 1)
	return (chiSquare - freedom) / math.Sqrt(2*freedom)
}

// Avalanche: each bit of the flow, flipped, flips each bit of the hash with a probability of one
// half, whatever the flow. So an address or a port says nothing about the bucket, the label or the
// path.
func TestNHAvalanche(t *testing.T) {
	const flows, inputs = 1024, (16 + 2) * 8
	var flips [inputs][64]int
	hash := hashing(flow.ByNH)
	for n := range flows {
		var key [18]byte
		binary.BigEndian.PutUint64(key[8:], uint64(n)*0x9e3779b97f4a7c15)
		before := hash(tupleFrom(key))
		for bit := range flips {
			changed := key
			changed[bit/8] ^= 1 << (bit % 8)
			for d := before ^ hash(tupleFrom(changed)); d != 0; d &= d - 1 {
				flips[bit][bits.TrailingZeros64(d)]++
			}
		}
	}
	// 6 standard deviations of a binomial distribution: 1 in 500 million, for 9,216 pairs of bits.
	const mean, bound = flows / 2, 6 * 16
	for in := range flips {
		for out, count := range flips[in] {
			if count < mean-bound || count > mean+bound {
				t.Errorf("bit %d of the flow flips bit %d of the hash %d times of %d", in, out,
					count, flows)
			}
		}
	}
}

// tupleFrom is the flow of an IPv6 source and port.
func tupleFrom(key [18]byte) flow.Tuple {
	return flow.Tuple{
		Src: netip.AddrFrom16([16]byte(key[:16])), Dst: netip.MustParseAddr("2001:db8:80::80"),
		SrcPort: binary.BigEndian.Uint16(key[16:]), DstPort: 443, Protocol: 6,
	}
}
