package datapath

import (
	"fmt"
	"math/bits"

	"sextant/datapath/model"
	"sextant/packet/cflb"
)

const (
	cflbNextHops  = 64   // CFLB_NEXT_HOPS
	cflbGroupsMax = 1024 // CFLB_GROUPS
	cflbPositions = 256  // CFLB_POSITIONS
	cflbSubkeys   = 26   // CFLB_RC5_SUBKEYS
	cflbSkip32Key = 10   // SKIP32_KEY
	cflbFamilies  = 2    // CFLB_FAMILIES
	cflbChoices   = 4    // CFLB_CHOICES
)

type cflbSettings struct {
	Networks [cflbFamilies]cflbNetwork
	Router   uint32
	Reserved uint32
}

type cflbNetwork struct {
	Seed     uint64
	Limit    uint64
	Add      [cflb.FeistelRounds]uint64
	Multiply [cflb.FeistelRounds]uint64
	Power    [cflbPositions]uint64
	Shift    [cflbPositions]uint8
	RC5      [cflbSubkeys]uint16
	Skip32   [cflbSkip32Key]byte
	Radix    uint16
	Fields   uint8
	Cipher   uint8
	Half     uint8
	Shifts   uint8
	Reserved [12]byte
}

func cflbNetworkOf(c *cflb.Codec) (n cflbNetwork) {
	parts := c.Parts()
	n = cflbNetwork{
		Seed: parts.Seed, Limit: parts.Limit, Radix: uint16(parts.Radix),
		Fields: uint8(parts.Fields),
		Cipher: uint8(parts.Cipher), Half: uint8(parts.Fields.Bits() / 2),
	}
	for i, round := range parts.Feistel {
		n.Add[i], n.Multiply[i] = round.Add, round.Multiply
	}
	copy(n.RC5[:], parts.RC5)
	copy(n.Skip32[:], parts.Skip32)
	if bits.OnesCount64(parts.Radix) == 1 {
		n.Shifts = 1
	}
	if len(parts.Powers) > 0 {
		for hopLimit := range cflbPositions {
			n.Power[hopLimit] = parts.Powers[c.Position(uint8(hopLimit))]
			n.Shift[hopLimit] = uint8(bits.TrailingZeros64(n.Power[hopLimit]))
		}
	}
	return n
}

type cflbNextHop struct {
	Interface   uint32
	MTU         uint16
	Ready       uint8
	Reserved    uint8
	Destination [6]byte
	Source      [6]byte
}

type cflbGroup struct {
	Count      uint32
	Last       uint32
	Equal      uint32
	Plain      [cflbNextHops]uint32
	Beyond     [cflbNextHops]uint32
	KernelHash [cflbNextHops]uint32
	Hops       [cflbNextHops]cflbNextHop
}

// cflbGroupOf is how the programs know a group. One without a next hop that is up has the count 0:
// the kernel refuses its packets.
func cflbGroupOf(codec *cflb.Codec, hops []model.CFLBNextHop) (g cflbGroup, err error) {
	if len(hops) > cflbNextHops {
		return g, fmt.Errorf("%d next hops: %d can be used", len(hops), cflbNextHops)
	}
	group, err := model.CFLBGroup(codec, hops)
	if err != nil {
		return g, err
	}
	plain, beyond := group.Bounds()
	if plain == nil {
		return g, nil
	}
	g.Count, g.Equal = uint32(len(hops)), 1
	copy(g.Plain[:], plain)
	copy(g.Beyond[:], beyond)
	for i, hop := range hops {
		if hop.Weight != hops[0].Weight {
			g.Equal = 0
		}
		g.KernelHash[i] = hop.KernelHash
		g.Hops[i] = cflbNextHop{MTU: hop.MTU, Destination: hop.Destination, Source: hop.Source}
		if hop.Weight > 0 {
			g.Last, g.Hops[i].Interface = uint32(i), hop.Interface
		}
		if hop.Ready {
			g.Hops[i].Ready = 1
		}
	}
	return g, nil
}

type cflbRoute4 struct {
	Bits    uint32
	Address [4]byte
}

type cflbRoute6 struct {
	Bits    uint32
	Address [16]byte
}
