package datapath

import (
	"fmt"
	"math/bits"

	"sextant/datapath/model"
	"sextant/packet/cflb"
)

const (
	cflbNextHops  = len(cflbGroup{}.Hops)
	cflbGroupsMax = 1024 // CFLB_GROUPS
	cflbPositions = len(cflbNetwork{}.Power)
	cflbChoices   = 4 // CFLB_CHOICES
)

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
