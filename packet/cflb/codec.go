package cflb

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
)

// RadixMax bounds B, the number of indexes that a digit can name.
const RadixMax = 256

// Range says what becomes of numbers in the controllable fields that no source encodes.
type Range uint8

const (
	// HashRange hashes those that are not below the greatest multiple of Radix^Length: in what is
	// left, all digits are equally frequent. If the radix is a power of two, nothing is out of
	// range.
	HashRange Range = iota
	// ModuloRange takes their digits as Algorithm 1 of the paper does, which skews the upper
	// positions if the radix is no power of two: Codec.Warnings says how much.
	ModuloRange
)

// Parameters are what all sources and routers of a network have to agree on.
type Parameters struct {
	Fields Fields
	// B, 2 to RadixMax: no router has more next hops for a destination that sources can choose from
	Radix  int
	Length int // L, the digits of a selector; 0 for as many as the fields hold
	Cipher Cipher
	Key    [KeyLength]byte
	Range  Range
}

// Defaults returns parameters without skew for routers of up to nextHops next hops: the least power
// of two as radix, all positions that the fields hold, the Feistel network.
func Defaults(fields Fields, nextHops int, key [KeyLength]byte) Parameters {
	return Parameters{Fields: fields, Radix: 1 << max(1, bits.Len(uint(max(1, nextHops)-1))),
		Key: key}
}

// A Codec encodes and decodes the path selectors of a network. It is immutable.
type Codec struct {
	fields Fields
	radix  uint64
	powers []uint64 // B^i for each position, and B^L
	tops   uint64   // how many times B^L the fields hold: what stands above the digits is free
	cipher permutation
	seed   uint64 // of the hash
	modulo bool
}

// New checks the parameters and prepares a codec for them.
func New(p Parameters) (*Codec, error) {
	if !p.Fields.valid() {
		return nil, fmt.Errorf("the controllable fields are %s: name one of %v", p.Fields,
			fieldsNames)
	}
	a, b := keyWords(p.Key)
	c := &Codec{fields: p.Fields, seed: mix(a ^ mix(b)), modulo: p.Range == ModuloRange}
	if p.Fields == NoFields {
		c.radix = RadixMax
		return c, nil
	}
	if p.Radix < 2 || p.Radix > RadixMax {
		return nil, fmt.Errorf("radix %d: it has to be 2 to %d, at least the greatest number of "+
			"next hops",
			p.Radix, RadixMax)
	}
	greatest := LengthMax(p.Fields, p.Radix)
	if p.Length < 0 || p.Length > greatest {
		return nil, fmt.Errorf("length %d: the %d bits of %s hold 1 to %d digits of radix %d",
			p.Length, p.Fields.Bits(), p.Fields, greatest, p.Radix)
	}
	cipher, err := newPermutation(p.Cipher, p.Fields.Bits(), p.Key)
	if err != nil {
		return nil, err
	}
	p.Length = cmp.Or(p.Length, greatest)
	c.radix, c.powers, c.cipher = uint64(p.Radix), []uint64{1}, cipher
	for range p.Length {
		c.powers = append(c.powers, c.powers[len(c.powers)-1]*c.radix)
	}
	c.tops = 1 << p.Fields.Bits() / c.powers[p.Length]
	return c, nil
}

// LengthMax returns the greatest L for these fields and this radix: floor(log_B 2^X), computed
// without rounding.
func LengthMax(fields Fields, radix int) int {
	length := 0
	for power := uint64(1); power <= 1<<fields.Bits()/uint64(radix); power *= uint64(radix) {
		length++
	}
	return length
}

// Length returns L, the number of positions; 0 without controllable fields.
func (c *Codec) Length() int { return max(0, len(c.powers)-1) }

// limit is the number from which on a decoded number is no selector: a multiple of B^L.
func (c *Codec) limit() uint64 { return c.tops * c.powers[c.Length()] }

// Position returns the position in the selector of a router that receives a packet with this hop
// limit.
func (c *Codec) Position(hopLimit uint8) int { return int(hopLimit) % max(1, c.Length()) }

// A Hop is one choice on a path: the router that receives the packet with HopLimit takes its next
// hop number Index.
type Hop struct {
	HopLimit uint8
	Index    int // from 0
}

// digits returns the digits that a path asks for by position, and -1 for those that it leaves free,
// as they stand in the selector: E_i of equation 3.
func (c *Codec) digits(p Packet, path []Hop) ([]int64, error) {
	if c.fields == NoFields {
		return nil, errors.New("the network has no controllable fields, so it hashes all packets")
	}
	if c.fields.HasLabel() && p.Src.Is4() {
		return nil, errors.New("IPv4 packets have no flow label: let the network control ports " +
			"for IPv4")
	}
	spread := c.spread(c.uncontrolled(p))
	digits := make([]int64, c.Length())
	for i := range digits {
		digits[i] = -1
	}
	for _, hop := range path {
		if hop.Index < 0 || uint64(hop.Index) >= c.radix {
			return nil,
				fmt.Errorf("next hop %d at hop limit %d: selectors of radix %d name 0 to %d",
					hop.Index, hop.HopLimit, c.radix, c.radix-1)
		}
		digit := int64((uint64(hop.Index) + spread) % c.radix)
		at := c.Position(hop.HopLimit)
		if digits[at] >= 0 && digits[at] != digit {
			return nil, fmt.Errorf("hop limit %d: position %d of the %d has another next hop "+
				"already; "+
				"a selector controls %d hops in a row", hop.HopLimit, at, c.Length(), c.Length())
		}
		digits[at] = digit
	}
	return digits, nil
}

// spread is H(u_f) mod B, which equation 3 adds to each digit.
func (c *Codec) spread(h uint64) uint64 { return h >> 32 % c.radix }

// ErrNoVariant says that a path has fewer selectors than were asked for.
var ErrNoVariant = errors.New("the path has no selector of this number")

// Parts are what a data plane needs of a Codec to decode.
type Parts struct {
	Fields Fields
	Radix  uint64
	// the number from which on a decoded number is no selector; 2^64-1 if there is none
	Limit   uint64
	Powers  []uint64 // B^i for each position; none without controllable fields
	Seed    uint64   // of the hash
	Cipher  Cipher
	Feistel [FeistelRounds]FeistelRound // if it is the cipher
	RC5     []uint16                    // subkeys, if it is the cipher
	Skip32  []byte                      // key, if it is the cipher
}

// Parts returns them.
func (c *Codec) Parts() Parts {
	p := Parts{Fields: c.fields, Radix: c.radix, Limit: math.MaxUint64, Seed: c.seed}
	if c.Length() > 0 {
		p.Powers = c.powers[:c.Length()]
		if !c.modulo && bits.OnesCount64(c.radix) > 1 {
			p.Limit = c.limit()
		}
	}
	switch cipher := c.cipher.(type) {
	case *feistel:
		p.Cipher, p.Feistel = Feistel, cipher.rounds
	case *rc5:
		p.Cipher, p.RC5 = RC5, cipher.subkeys
	case *skip32:
		p.Cipher, p.Skip32 = Skip32, cipher.key[:]
	}
	return p
}

// Variants returns how many selectors name the path: one for each way to fill the free positions
// and what is above them.
func (c *Codec) Variants(path []Hop) uint64 {
	if c.Length() == 0 {
		return 0
	}
	used := map[int]bool{}
	for _, hop := range path {
		used[c.Position(hop.HopLimit)] = true
	}
	return c.powers[c.Length()-len(used)] * c.tops
}

// Encode is Algorithm 2: it returns the controllable fields with which a packet takes the path, of
// the other fields of p. The digits of variant, 0 to Variants(path)-1, fill the positions that the
// path leaves free; with 0 they are 0, as in the paper. A caller who cannot use the result, because
// the port is taken or the flow label is 0, takes another variant.
func (c *Codec) Encode(p Packet, path []Hop, variant uint64) (uint64, error) {
	digits, err := c.digits(p, path)
	if err != nil {
		return 0, err
	}
	if variant >= c.Variants(path) {
		return 0, fmt.Errorf("selector %d of %d: %w", variant, c.Variants(path), ErrNoVariant)
	}
	var selector uint64
	for i, digit := range digits {
		if digit < 0 {
			digit = int64(variant % c.radix)
			variant /= c.radix
		}
		selector += uint64(digit) * c.powers[i]
	}
	return c.cipher.encrypt(selector + variant*c.powers[c.Length()]), nil
}

// Selectors yields packets that take the path: p with the controllable fields of each variant,
// beginning with the variant first modulo their number. The flow label is never 0 if it is
// controllable, and no port is. The error is that of Encode.
func (c *Codec) Selectors(p Packet, path []Hop, first uint64) (iter.Seq[Packet], error) {
	if _, err := c.Encode(p, path, 0); err != nil {
		return nil, err
	}
	count := c.Variants(path)
	return func(yield func(Packet) bool) {
		for i := range count {
			value, err := c.Encode(p, path, (first%count+i)%count)
			if err != nil {
				return
			}
			if found := c.fields.Set(p, value); c.usable(found) && !yield(found) {
				return
			}
		}
	}, nil
}

func (c *Codec) usable(p Packet) bool {
	return (!c.fields.HasLabel() || p.FlowLabel != 0) &&
		(!c.fields.hasSourcePort() || p.SrcPort != 0) &&
		(!c.fields.hasDestinationPort() || p.DstPort != 0)
}

// A Choice is how a router came to its next hop.
type Choice uint8

// The choices.
const (
	Controlled Choice = iota // the selector names it
	Beyond                   // hashed: the selector's digit names no next hop, or one that is down
	OutOfRange               // hashed: the controllable fields hold no selector
	Unreadable               // hashed: the packet lacks controllable fields
)

// String says how, as status and explain print it.
func (c Choice) String() string {
	return [...]string{"controlled", "beyond the next hops", "no selector",
		"no controllable fields"}[c]
}

// Digit is equations 2, 5 and 6: what the packet's selector says at a router, before this is
// compared with the number of next hops. The hash is what a router that does not follow it chooses
// by.
func (c *Codec) Digit(p Packet, router uint32) (digit int, choice Choice, hash uint32) {
	value, ok := c.fields.Get(p)
	if !ok {
		return 0, Unreadable, fallback(c.whole(p), 0, router)
	}
	h := c.uncontrolled(p)
	hash = fallback(h, value, router)
	selector := c.cipher.decrypt(value)
	if selector >= c.limit() && !c.modulo {
		return 0, OutOfRange, hash
	}
	raw := selector / c.powers[c.Position(p.HopLimit)] % c.radix
	return int((raw + c.radix - c.spread(h)) % c.radix), Controlled, hash
}

// NextHop is Algorithm 1 for a router: the index of the next hop, and how it was chosen. It returns
// -1 if no next hop is up.
func (c *Codec) NextHop(p Packet, router uint32, group *Group) (int, Choice) {
	digit, choice, hash := c.Digit(p, router)
	if choice == Controlled {
		if group.up(digit) {
			return digit, choice
		}
		return group.hashed(group.beyond, hash), Beyond
	}
	return group.hashed(group.plain, hash), choice
}
