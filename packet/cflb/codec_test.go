package cflb

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var allFields = []Fields{SourcePort, FlowLabel, BothPorts, FlowLabelSourcePort, FlowLabelBothPorts}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func randomKey(rng *rand.Rand) (key [KeyLength]byte) {
	binary.BigEndian.PutUint64(key[:8], rng.Uint64())
	binary.BigEndian.PutUint64(key[8:], rng.Uint64())
	return key
}

func randomPacket(rng *rand.Rand) Packet {
	var src, dst [16]byte
	for _, octets := range [][]byte{src[:8], src[8:], dst[:8], dst[8:]} {
		binary.BigEndian.PutUint64(octets, rng.Uint64())
	}
	return Packet{
		Src: netip.AddrFrom16(src), Dst: netip.AddrFrom16(dst), Protocol: 6, HasPorts: true,
		SrcPort: uint16(rng.Uint32()), DstPort: uint16(rng.Uint32()),
		FlowLabel: 1 + rng.Uint32N(1<<labelBits-1),
		HopLimit:  uint8(rng.Uint32()),
	}
}

// G3: every path comes back from its selectors, for every set of fields, radix, length, cipher and
// initial hop limit.
func TestRoundTrip(t *testing.T) {
	rng := newRand(1)
	for _, fields := range allFields {
		for _, radix := range []int{2, 3, 4, 5, 7, 8, 10, 16, 17, 64, 255, 256} {
			for length := 1; length <= LengthMax(fields, radix); length++ {
				cipher := Feistel
				if fields == BothPorts {
					cipher = Cipher(length % 3)
				}
				c := mustNew(t, Parameters{Fields: fields, Radix: radix, Length: length,
					Cipher: cipher, Key: randomKey(rng)})
				checkRoundTrip(t, rng, c)
			}
		}
	}
}

func checkRoundTrip(t *testing.T, rng *rand.Rand, c *Codec) {
	t.Helper()
	group, err := c.NewGroup(slices.Repeat([]uint32{1}, int(c.radix)))
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		p := randomPacket(rng)
		first := rng.IntN(256)
		var path []Hop
		for i := range min(1+rng.IntN(c.Length()), first+1) {
			if rng.IntN(3) > 0 {
				path = append(path, Hop{HopLimit: uint8(first - i), Index: rng.IntN(int(c.radix))})
			}
		}
		value, err := c.Encode(p, path, rng.Uint64N(c.Variants(path)))
		if err != nil {
			t.Fatal(err)
		}
		p = c.fields.Set(p, value)
		if got, ok := c.fields.Get(p); got != value || ok == (c.fields == FlowLabel && value == 0) {
			t.Fatalf("%s: set %d, got %d, %v", c.fields, value, got, ok)
		}
		for _, hop := range path {
			p.HopLimit = hop.HopLimit
			index, choice := c.NextHop(p, rng.Uint32(), group)
			if value != 0 && (index != hop.Index || choice != Controlled) {
				t.Fatalf("%s, radix %d, length %d: path %v, router at %d takes %d, %s",
					c.fields, c.radix, c.Length(), path, hop.HopLimit, index, choice)
			}
		}
	}
}

// Each variant is another selector of the same path, none is missing, and there is none behind the
// last.
func TestVariants(t *testing.T) {
	c := mustNew(t, Parameters{Fields: SourcePort, Radix: 4, Key: randomKey(newRand(2))})
	p := randomPacket(newRand(3))
	path := []Hop{{64, 3}, {63, 0}, {61, 2}}
	found := map[uint64]bool{}
	for variant := range c.Variants(path) {
		value, err := c.Encode(p, path, variant)
		if err != nil {
			t.Fatal(err)
		}
		found[value] = true
	}
	var brute int // every source port, asked one after the other
	for port := range 1 << portBits {
		p.SrcPort = uint16(port)
		fits := true
		for _, hop := range path {
			p.HopLimit = hop.HopLimit
			digit, choice, _ := c.Digit(p, 0)
			fits = fits && digit == hop.Index && choice == Controlled
		}
		if fits {
			brute++
			if !found[uint64(port)] {
				t.Errorf("port %d takes the path and is no variant", port)
			}
		}
	}
	if brute != 1<<10 || len(found) != brute || c.Variants(path) != 1<<10 {
		t.Errorf("%d ports take the path, %d selectors of %d variants; want 1024", brute,
			len(found), c.Variants(path))
	}
	if _, err := c.Encode(p, path, 1<<10); err == nil || !strings.Contains(err.Error(),
		"selector 1024 of 1024") {
		t.Errorf("a variant too many: %v", err)
	}
}

// Selectors yields all variants from any of them on, without fields of 0.
func TestSelectors(t *testing.T) {
	c := mustNew(t, Parameters{Fields: FlowLabel, Radix: 16, Key: randomKey(newRand(4))})
	p := randomPacket(newRand(5))
	// The path that a packet with the flow label 0 would take: Get calls such a packet unlabelled.
	zero := c.cipher.decrypt(0)
	index := int((zero + c.radix - c.spread(c.uncontrolled(p))) % c.radix)
	path := []Hop{{65, index}} // position 0
	packets, err := c.Selectors(p, path, 12345)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[uint32]bool{}
	var first uint32
	for found := range packets {
		if len(labels) == 0 {
			first = found.FlowLabel
		}
		labels[found.FlowLabel] = true
	}
	if want, _ := c.Encode(p, path, 12345); uint64(first) != want {
		t.Errorf("it begins with %d, want %d", first, want)
	}
	if want := 1<<16 - 1; len(labels) != want || labels[0] {
		t.Errorf("%d labels, 0 among them: %v; want %d", len(labels), labels[0], want)
	}
}

// Bad parameters and paths are refused, with what would make them work.
func TestRefusals(t *testing.T) {
	parameters := map[string]Parameters{
		"name one of":                     {Fields: 6, Radix: 2},
		"radix 1: it has to be 2 to 256":  {Fields: SourcePort, Radix: 1},
		"radix 257":                       {Fields: SourcePort, Radix: 257},
		"length 9: the 16 bits of":        {Fields: SourcePort, Radix: 4, Length: 9},
		"length -1":                       {Fields: SourcePort, Radix: 4, Length: -1},
		"rc5 has blocks of 32 bits":       {Fields: SourcePort, Radix: 4, Cipher: RC5},
		"there is no cipher 9: it is one": {Fields: SourcePort, Radix: 4, Cipher: 9},
	}
	for want, p := range parameters {
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
	c := mustNew(t, Parameters{Fields: SourcePort, Radix: 4})
	paths := map[string][]Hop{
		"next hop 4 at hop limit 64": {{64, 4}},
		"next hop -1":                {{64, -1}},
		"another next hop already":   {{64, 1}, {56, 2}},
	}
	for want, path := range paths {
		if _, err := c.Encode(randomPacket(newRand(1)), path, 0); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", path, err, want)
		}
		if _, err := c.Selectors(randomPacket(newRand(1)), path, 0); err == nil {
			t.Errorf("%v: no error", path)
		}
	}
	if _, err := c.Encode(randomPacket(newRand(1)), []Hop{{64, 1}, {56, 1}}, 0); err != nil {
		t.Errorf("the same next hop twice at a position: %v", err)
	}
	label := mustNew(t, Parameters{Fields: FlowLabel, Radix: 4})
	v4 := Packet{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2")}
	if _, err := label.Encode(v4, []Hop{{64, 1}}, 0); err == nil || !strings.Contains(err.Error(),
		"no flow label") {
		t.Errorf("IPv4 and flow labels: %v", err)
	}
	if _, err := c.NewGroup(make([]uint32, 5)); err == nil || !strings.Contains(err.Error(),
		"radix 4 name 4") {
		t.Errorf("5 next hops: %v", err)
	}
	if _, err := c.NewGroup([]uint32{1 << 17}); err == nil {
		t.Error("a weight of 2^17 is taken")
	}
	none := mustNew(t, Parameters{})
	if _, err := none.Encode(randomPacket(newRand(1)), []Hop{{64, 1}}, 0); err == nil ||
		!strings.Contains(err.Error(), "no controllable fields") {
		t.Errorf("no fields: %v", err)
	}
	for _, name := range []string{"", "port", "ports "} {
		if _, err := ParseFields(name); err == nil {
			t.Errorf("fields %q are taken", name)
		}
		if _, err := ParseCipher(name); err == nil {
			t.Errorf("cipher %q is taken", name)
		}
	}
}

// A Feistel network is a permutation of any size, power of two or not.
func TestFeistelPermutes(t *testing.T) {
	for _, size := range []uint64{1, 2, 3, 5, 8, 100, 1 << 10, 59049, 64512, 1 << 16, 1 << 17} {
		f := newFeistel(size, randomKey(newRand(size)))
		seen := make([]bool, size)
		for x := range size {
			y := f.encrypt(x)
			if y >= size || seen[y] {
				t.Fatalf("size %d: %d goes to %d, which is beyond or taken", size, x, y)
			}
			seen[y] = true
			if back := f.decrypt(y); back != x {
				t.Fatalf("size %d: %d comes back as %d", size, x, back)
			}
		}
	}
}

// G4: one bit of the controllable fields changes half of the selector's bits, and each of them
// about as often as not.
func TestAvalanche(t *testing.T) {
	const samples = 20000
	for _, fields := range allFields {
		for cipher := Feistel; cipher <= Skip32; cipher++ {
			if cipher != Feistel && fields != BothPorts {
				continue
			}
			rng, width := newRand(uint64(fields)), fields.Bits()
			p, err := newPermutation(cipher, width, randomKey(rng))
			if err != nil {
				t.Fatal(err)
			}
			changed := make([]int, width)
			total := 0
			for range samples {
				x := rng.Uint64N(1 << width)
				difference := p.decrypt(x) ^ p.decrypt(x^1<<rng.IntN(width))
				total += bits.OnesCount64(difference)
				for i := range changed {
					changed[i] += int(difference >> i & 1)
				}
			}
			if mean, want := float64(total)/samples,
				float64(width)/2; math.Abs(mean-want) > 0.02*want {
				t.Errorf("%s on %s: %.2f of %d bits change, want %.0f", cipher, fields, mean, width,
					want)
			}
			for i, n := range changed {
				if share := float64(n) / samples; math.Abs(share-0.5) > 0.03 {
					t.Errorf("%s on %s: bit %d changes with %.3f of the inputs", cipher, fields,
						i, share)
				}
			}
		}
	}
}

// chiSquareMax is exceeded by a true random choice with a probability of about 1e-6 for the given
// degrees of freedom (Wilson and Hilferty's approximation).
func chiSquareMax(freedom int) float64 {
	d := 2 / (9 * float64(freedom))
	return float64(freedom) * math.Pow(1-d+4.75*math.Sqrt(d), 3)
}

func chiSquare(counts []int, shares []float64) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	var sum float64
	for i, n := range counts {
		want := shares[i] * float64(total)
		sum += (float64(n) - want) * (float64(n) - want) / want
	}
	return sum
}

func equalShares(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }

// The digits that routers read of what nobody controls are even at every position, for everything
// that the defaults produce: many flows of one pair of hosts, and one flow each of many pairs.
func TestDigitsAreEven(t *testing.T) {
	for _, fields := range allFields {
		for nextHops := 2; nextHops <= RadixMax; nextHops *= 2 {
			rng := newRand(uint64(fields)<<10 | uint64(nextHops))
			c := mustNew(t, Defaults(fields, nextHops, randomKey(rng)))
			for position := range c.Length() {
				for _, spread := range []string{"ports in a row", "addresses in a row"} {
					counts := digitCounts(rng, c, position, spread)
					if x := chiSquare(counts, equalShares(len(counts))); x > chiSquareMax(
						len(counts)-1) {
						t.Errorf("%s, radix %d, position %d, %s: chi-square %.1f with %d degrees "+
							"of freedom",
							fields, c.radix, position, spread, x, len(counts)-1)
					}
				}
			}
		}
	}
}

// The test of evenness finds the skew that Algorithm 1 has as printed.
func TestSkewIsFound(t *testing.T) {
	c := mustNew(t, Parameters{Fields: BothPorts, Radix: 3, Range: ModuloRange})
	counts := digitCounts(newRand(9), c, c.Length()-1, "ports in a row")
	if x := chiSquare(counts, equalShares(3)); x < 2*chiSquareMax(2) {
		t.Errorf("digits %v: chi-square %.1f", counts, x)
	}
}

func digitCounts(rng *rand.Rand, c *Codec, position int, spread string) []int {
	counts := make([]int, c.radix)
	p := randomPacket(rng)
	p.HopLimit = uint8(position)
	p.SrcPort, p.DstPort, p.FlowLabel = 1024, 80, 1
	for range max(4000, 10*len(counts)) {
		if spread == "addresses in a row" {
			p.Src = p.Src.Next()
		} else {
			p.SrcPort++
			p.FlowLabel++
		}
		digit, _, _ := c.Digit(p, 1)
		counts[digit]++
	}
	return counts
}

// C3: with 2 next hops and B = 3, equation 7 shares evenly; a plain modulus would give the first
// two thirds.
func TestShares(t *testing.T) {
	cases := []struct {
		radix   int
		modulo  bool
		weights []uint32
	}{
		{radix: 3, weights: []uint32{1, 1}},
		{radix: 3, weights: []uint32{1, 1, 1}},
		{radix: 16, weights: []uint32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{radix: 16, weights: []uint32{5, 0, 3, 2}},
		{radix: 8, weights: []uint32{1, 0, 0, 1}},
		{radix: 7, weights: []uint32{3, 2, 2, 5}},
		{radix: 16, modulo: true, weights: []uint32{9, 5, 2}},
	}
	for _, fields := range allFields {
		for _, test := range cases {
			rng := newRand(uint64(fields))
			p := Parameters{Fields: fields, Radix: test.radix, Key: randomKey(rng)}
			if test.modulo {
				p.Range = ModuloRange
			}
			c := mustNew(t, p)
			g, err := c.NewGroup(test.weights)
			if err != nil {
				t.Fatal(err)
			}
			counts, shares := countNextHops(rng, c, g)
			if x := chiSquare(counts, shares); x > chiSquareMax(len(counts)-1) {
				t.Errorf("%s, radix %d, weights %v: packets %v, shares %.3f: chi-square %.1f",
					fields, test.radix, test.weights, counts, shares, x)
			}
		}
	}
}

// countNextHops returns the packets and the share of each next hop that is up. Every tenth packet
// lacks its ports.
func countNextHops(rng *rand.Rand, c *Codec, g *Group) (counts []int, shares []float64) {
	all := make([]int, len(g.weights))
	for i := range 100000 {
		p := randomPacket(rng)
		if i%10 == 0 {
			p.HasPorts, p.FlowLabel = false, 0
		}
		next, _ := c.NextHop(p, 7, g)
		all[next]++
	}
	var total float64
	for i, weight := range g.weights {
		if weight == 0 {
			if all[i] > 0 {
				return []int{1, 0}, []float64{0.5, 1e-9} // a next hop that is down was taken
			}
			continue
		}
		counts, shares = append(counts, all[i]), append(shares, float64(weight))
		total += float64(weight)
	}
	for i := range shares {
		shares[i] /= total
	}
	return counts, shares
}

// A packet that is controlled for next hops that are up is not moved when another goes down or
// comes up.
func TestOthersStayWhenOneGoesDown(t *testing.T) {
	c := mustNew(t, Defaults(BothPorts, 4, [KeyLength]byte{1}))
	before, _ := c.NewGroup([]uint32{1, 1, 1, 1})
	after, _ := c.NewGroup([]uint32{1, 0, 1, 1})
	none, _ := c.NewGroup([]uint32{0, 0, 0, 0})
	rng := newRand(6)
	for range 2000 {
		p := randomPacket(rng)
		was, _ := c.NextHop(p, 1, before)
		is, choice := c.NextHop(p, 1, after)
		if was != 1 && is != was || was == 1 && (is == 1 || choice != Beyond) {
			t.Fatalf("next hop %d became %d, %s", was, is, choice)
		}
		if got, _ := c.NextHop(p, 1, none); got != -1 {
			t.Fatalf("next hop %d of none", got)
		}
	}
}

// G6: four routers in a row, each with 3 next hops of which one leads on, see a third of a third of
// a third: neither their digits nor their hashes follow from one another.
func TestNoPolarisation(t *testing.T) {
	for _, radix := range []int{4, 16, 256} { // more and more is hashed
		c := mustNew(t, Parameters{Fields: BothPorts, Radix: radix, Key: randomKey(newRand(7))})
		g, err := c.NewGroup([]uint32{1, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		rng := newRand(8)
		counts := make([]int, 3)
		for range 400000 {
			p := randomPacket(rng)
			p.HopLimit = 64
			on := true
			var last int
			for router := uint32(1); router <= 4 && on; router++ {
				last, _ = c.NextHop(p, router, g)
				on = last == 0 || router == 4
				p.HopLimit--
			}
			if on {
				counts[last]++
			}
		}
		if x := chiSquare(counts, equalShares(3)); x > chiSquareMax(2) {
			t.Errorf("radix %d: the fourth router sends %v", radix, counts)
		}
		if total := counts[0] + counts[1] + counts[2]; math.Abs(float64(total)-400000/27.0) > 700 {
			t.Errorf("radix %d: %d packets reach the fourth router, want %d", radix, total,
				400000/27)
		}
	}
}

// G5: Algorithm 1 as printed skews the upper positions, by what counting all numbers finds; the
// default does not.
func TestSkew(t *testing.T) {
	modulo := mustNew(t, Parameters{Fields: SourcePort, Radix: 3, Range: ModuloRange})
	for position := range modulo.Length() {
		var counts [3]int
		for x := range 1 << portBits {
			counts[uint64(x)/modulo.powers[position]%3]++
		}
		for digit, n := range counts {
			if got, want := modulo.Skew(position, digit), float64(n)/(1<<portBits); got != want {
				t.Errorf("position %d, digit %d: share %v, want %v", position, digit, got, want)
			}
		}
	}
	ports := mustNew(t, Parameters{Fields: BothPorts, Radix: 3, Range: ModuloRange})
	if got := fmt.Sprintf("%.3f %.3f %.3f", ports.Skew(19, 0), ports.Skew(19, 1),
		ports.Skew(19, 2)); got != "0.459 0.271 0.271" {
		t.Errorf("X = 32, B = 3, position 19: %s", got)
	}
	warnings := ports.Warnings()
	if len(warnings) == 0 || !strings.Contains(warnings[len(warnings)-1],
		"position 19 of 20: one next hop of 3 gets 45.9 %") {
		t.Errorf("warnings of B = 3 without a range: %q", warnings)
	}
	for _, fields := range allFields {
		for nextHops := 1; nextHops <= RadixMax; nextHops++ {
			c := mustNew(t, Defaults(fields, nextHops, [KeyLength]byte{}))
			if c.radix < uint64(nextHops) || len(c.Warnings()) > 0 {
				t.Errorf("%s, %d next hops: radix %d, warnings %q", fields, nextHops, c.radix,
					c.Warnings())
			}
		}
	}
}

// FuzzCodec encodes what a codec can and asks routers; what it cannot is an error, not a panic.
func FuzzCodec(f *testing.F) {
	f.Add(uint8(3), 3, 0, uint8(1), uint64(5), uint64(99), uint8(64), 1, 2)
	f.Add(uint8(5), 256, 2, uint8(0), uint64(0), uint64(0), uint8(0), 255, 0)
	f.Fuzz(func(t *testing.T, fields uint8, radix, length int, cipher uint8, seed, variant uint64,
		hopLimit uint8, a, b int) {
		rng := newRand(seed)
		c, err := New(Parameters{
			Fields: Fields(fields), Radix: radix, Length: length, Cipher: Cipher(cipher),
			Key:   randomKey(rng),
			Range: Range(seed & 1),
		})
		if err != nil {
			return
		}
		p := randomPacket(rng)
		path := []Hop{{hopLimit, a}, {hopLimit - 1, b}}
		value, err := c.Encode(p, path, variant)
		if err != nil {
			return
		}
		if p = c.fields.Set(p, value); !c.usable(p) {
			return
		}
		for _, hop := range path {
			p.HopLimit = hop.HopLimit
			if digit, choice, _ := c.Digit(p, uint32(seed)); digit != hop.Index ||
				choice != Controlled {
				t.Fatalf("hop limit %d: %d, %s; want %d", hop.HopLimit, digit, choice, hop.Index)
			}
		}
	})
}
