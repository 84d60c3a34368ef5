package flow_test

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"sextant/packet/flow"
)

var testSecret = flow.Secret(countingOctets(16))

func drawAddr(t *rapid.T, size int, label string) netip.Addr {
	addr, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, label))
	return addr
}

func drawTuple(t *rapid.T) flow.Tuple {
	size := rapid.SampledFrom([]int{4, 16}).Draw(t, "address size")
	return flow.Tuple{
		Src: drawAddr(t, size, "source"), Dst: drawAddr(t, size, "destination"),
		SrcPort:  rapid.Uint16().Draw(t, "source port"),
		DstPort:  rapid.Uint16().Draw(t, "destination port"),
		Protocol: rapid.Byte().Draw(t, "protocol"),
	}
}

// The hashed octets are those of the specification: addresses, ports and protocol in network order,
// and nothing else.
func TestHashKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tuple := drawTuple(t)
		var key []byte
		key = append(key, tuple.Src.AsSlice()...)
		key = append(key, tuple.Dst.AsSlice()...)
		key = binary.BigEndian.AppendUint16(key, tuple.SrcPort)
		key = binary.BigEndian.AppendUint16(key, tuple.DstPort)
		key = append(key, tuple.Protocol)
		if got, want := testSecret.Hash(tuple), flow.SipHash13(testSecret, key); got != want {
			t.Errorf("Hash(%v) = %#x, want %#x", tuple, got, want)
		}
	})
}

// These values, computed by another implementation, pin the function: all edges of a cluster must
// agree, whatever release they run.
func TestHashGolden(t *testing.T) {
	tests := []struct {
		src, dst string
		dstPort  uint16
		protocol uint8
		want     uint64
	}{
		{"192.0.2.1", "203.0.113.80", 80, 6, 0x3040eaca7cd7f0b7},
		{"2001:db8::1", "2001:db8:80::80", 80, 6, 0x4a531e4018811f61},
		{"2001:db8::1", "2001:db8:80::80", 443, 17, 0x6ff28bb5542b55a9},
		{"::ffff:192.0.2.1", "::ffff:203.0.113.80", 80, 17, 0x8848bd786005b4f6}, // an IPv6 flow
	}
	for _, test := range tests {
		tuple := flow.Tuple{
			Src: netip.MustParseAddr(test.src), Dst: netip.MustParseAddr(test.dst),
			SrcPort: 40000, DstPort: test.dstPort, Protocol: test.protocol,
		}
		if got := testSecret.Hash(tuple); got != test.want {
			t.Errorf("Hash(%v) = %#016x, want %#016x", tuple, got, test.want)
		}
	}
}

func TestHashAllocatesNothing(t *testing.T) {
	tuple := flow.Tuple{Src: netip.MustParseAddr("2001:db8::1"),
		Dst: netip.MustParseAddr("2001:db8::2"), Protocol: 6}
	if n := testing.AllocsPerRun(100, func() { testSecret.Hash(tuple) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestBucket(t *testing.T) {
	tests := map[string]struct {
		hash    uint64
		buckets uint32
		want    uint32
	}{
		"lowest":                    {0, 65537, 0},
		"highest":                   {math.MaxUint64, 65537, 65536},
		"half":                      {1 << 63, 65537, 32768},
		"one bucket":                {math.MaxUint64, 1, 0},
		"most buckets":              {math.MaxUint64, math.MaxUint32, math.MaxUint32 - 1},
		"lower half does not count": {math.MaxUint32, 65537, 0},
		"no buckets":                {math.MaxUint64, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := flow.Bucket(test.hash, test.buckets); got != test.want {
				t.Errorf("Bucket(%#x, %d) = %d, want %d", test.hash, test.buckets, got, test.want)
			}
		})
	}
}

func TestLabel(t *testing.T) {
	tests := map[string]struct {
		hash uint64
		want uint32
	}{
		"lower 20 bits": {0x123456789abcdef0, 0xcdef0},
		"never 0":       {0x1234567000000000, 1},
		"1 stays":       {1, 1},
		"highest":       {math.MaxUint64, 0xfffff},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := flow.Label(test.hash); got != test.want {
				t.Errorf("Label(%#x) = %#x, want %#x", test.hash, got, test.want)
			}
		})
	}
}

// Avalanche: each bit of the flow, flipped, flips each bit of the hash with a probability of one
// half. So an address or a port says nothing about the bucket, the label or the path.
func TestAvalanche(t *testing.T) {
	const flows = 1024
	var flips [37 * 8][64]int
	for n := range flows {
		key := countingOctets(37)
		binary.BigEndian.PutUint64(key, uint64(n)*0x9e3779b97f4a7c15)
		hash := flow.SipHash13(testSecret, key)
		for bit := range flips {
			key[bit/8] ^= 1 << (bit % 8)
			for changed := hash ^ flow.SipHash13(testSecret,
				key); changed != 0; changed &= changed - 1 {
				flips[bit][bits.TrailingZeros64(changed)]++
			}
			key[bit/8] ^= 1 << (bit % 8)
		}
	}
	// 6 standard deviations of a binomial distribution: 1 in 500 million, for 18,944 pairs of bits.
	const mean, bound = flows / 2, 6 * 16
	for in := range flips {
		for out, count := range flips[in] {
			if count < mean-bound || count > mean+bound {
				t.Errorf("bit %d of the flow flips bit %d of the hash in %d of %d flows", in, out,
					count, flows)
			}
		}
	}
}

// Another secret is another function: nothing is learnt about one cluster from another.
func TestSecretsAreIndependent(t *testing.T) {
	const flows, buckets = 1 << 16, 64
	other := testSecret
	other[15] ^= 0x80
	same := 0
	for n := range flows {
		tuple := flow.Tuple{Src: netip.MustParseAddr("192.0.2.1"),
			Dst: netip.MustParseAddr("203.0.113.80"), SrcPort: uint16(n), Protocol: 6}
		if flow.Bucket(testSecret.Hash(tuple), buckets) == flow.Bucket(other.Hash(tuple), buckets) {
			same++
		}
	}
	if same < flows/buckets*8/10 || same > flows/buckets*12/10 {
		t.Errorf("%d of %d flows in the same bucket under both secrets, want about %d", same, flows,
			flows/buckets)
	}
}

func BenchmarkHash(b *testing.B) {
	for name, addr := range map[string]string{"IPv4": "192.0.2.1", "IPv6": "2001:db8::1"} {
		b.Run(name, func(b *testing.B) {
			tuple := flow.Tuple{Src: netip.MustParseAddr(addr), Dst: netip.MustParseAddr(addr),
				DstPort: 80, Protocol: 6}
			for b.Loop() {
				testSecret.Hash(tuple)
				tuple.SrcPort++
			}
		})
	}
}
