package cflb

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// chiSquareMost is what chi-square of so many degrees of freedom exceeds with a probability of 1e-6
// (Wilson and Hilferty, 1931).
func chiSquareMost(degrees int) float64 {
	const z = 4.753
	d := float64(degrees)
	return d * math.Pow(1-2/(9*d)+z*math.Sqrt(2/(9*d)), 3)
}

// For every radix, length and position that Defaults gives, routers read each digit equally often
// in packets whose sources choose nothing: clients of a subnet with ports in sequence.
func TestDigitsAreEvenlySpread(t *testing.T) {
	positions := 0
	for fields := SourcePort; fields <= FlowLabelBothPorts; fields++ {
		for radix := 2; radix <= RadixMax; radix *= 2 {
			rng := rand.New(rand.NewPCG(uint64(fields), uint64(radix)))
			var key [KeyLength]byte
			binary.BigEndian.PutUint64(key[:], rng.Uint64())
			c, err := New(Defaults(fields, radix, key))
			if err != nil {
				t.Fatal(err)
			}
			if int(c.radix) != radix {
				t.Fatalf("%d next hops get radix %d", radix, c.radix)
			}
			counts := make([][]int, c.Length())
			for i := range counts {
				counts[i] = make([]int, radix)
			}
			packets := 64 * max(radix, 64)
			for number := range packets {
				src := [16]byte{0x20, 1, 0xd, 0xb8, 14: byte(number >> 8), 15: byte(number)}
				dst := [16]byte{0x20, 1, 0xd, 0xb8, 0, 1, 15: 1}
				p := Packet{Src: netip.AddrFrom16(src), Dst: netip.AddrFrom16(dst), Protocol: 6,
					HasPorts: true, SrcPort: uint16(32768 + number), DstPort: 443,
					FlowLabel: 1 + uint32(rng.IntN(1<<20-1))}
				for i := range counts {
					p.HopLimit = uint8(i)
					digit, choice, _ := c.Digit(p, 0)
					if choice != Controlled {
						t.Fatalf("%s, radix %d: %+v is %s", fields, radix, p, choice)
					}
					counts[i][digit]++
				}
			}
			want := float64(packets) / float64(radix)
			for i, digits := range counts {
				positions++
				sum := 0.0
				for _, n := range digits {
					sum += (float64(n) - want) * (float64(n) - want) / want
				}
				if most := chiSquareMost(radix - 1); sum > most {
					t.Errorf("%s, radix %d, position %d of %d: chi-square %.1f, at most %.1f",
						fields, radix, i, c.Length(), sum, most)
				}
			}
		}
	}
	if positions < 400 {
		t.Errorf("%d positions were looked at", positions)
	}
}
