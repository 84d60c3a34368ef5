package cflb

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"

	"sextant/experiment"
	"sextant/packet/cflb"
)

func addrOf(ip net.IP) (netip.Addr, bool) {
	a, ok := netip.AddrFromSlice(ip)
	return a.Unmap(), ok
}

// A balancer chooses among next hops that are up and weigh the same.
type balancer struct {
	name   string
	choose func(p cflb.Packet, router uint32) int
}

// chance is the balancer to which methods are compared: a random choice for each flow and router.
const chance = "chance"

// balancersFor are chance and the methods that the figures compare, for routers of so many next
// hops. All hashes include the router's number, without which routers in a row repeat each other's
// choice.
func balancersFor(hops int) ([]balancer, error) {
	rng := rand.New(rand.NewPCG(7, 0))
	all := []balancer{
		{chance, func(cflb.Packet, uint32) int { return rng.IntN(hops) }},
		{"crc16", func(p cflb.Packet, router uint32) int {
			return int(crc16(identity(p, router))) % hops
		}},
		{"md5", func(p cflb.Packet, router uint32) int {
			sum := md5.Sum(identity(p, router))
			return int(binary.BigEndian.Uint32(sum[:]) % uint32(hops))
		}},
	}
	for _, one := range []struct {
		name   string
		fields cflb.Fields
		cipher cflb.Cipher
	}{{"hash", cflb.NoFields, 0}, {"rc5", cflb.BothPorts, cflb.RC5},
		{"skip32", cflb.BothPorts, cflb.Skip32}, {"feistel", cflb.BothPorts, cflb.Feistel}} {
		p := cflb.Defaults(one.fields, hops, balanceKey)
		p.Cipher = one.cipher
		b, err := controllable(one.name, p, hops)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

var balanceKey = [cflb.KeyLength]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// controllable is a balancer as a router of a CFLB network is one.
func controllable(name string, p cflb.Parameters, hops int) (balancer, error) {
	codec, err := cflb.New(p)
	if err != nil {
		return balancer{}, fmt.Errorf("balancer %s: %w", name, err)
	}
	group, err := codec.NewGroup(slices.Repeat([]uint32{1}, hops))
	if err != nil {
		return balancer{}, fmt.Errorf("balancer %s: %w", name, err)
	}
	return balancer{name, func(p cflb.Packet, router uint32) int {
		index, _ := codec.NextHop(p, router, group)
		return index
	}}, nil
}

// identity is what a hash is over: the router's number and the 5-tuple.
func identity(p cflb.Packet, router uint32) []byte {
	b := make([]byte, 0, 48)
	b = binary.BigEndian.AppendUint32(b, router)
	b = append(append(b, p.Src.AsSlice()...), p.Dst.AsSlice()...)
	b = append(b, p.Protocol)
	b = binary.BigEndian.AppendUint16(b, p.SrcPort)
	return binary.BigEndian.AppendUint16(b, p.DstPort)
}

// crc16 is CRC-16/ARC: polynomial x^16+x^15+x^2+1, bits from the lowest on.
func crc16(b []byte) (sum uint16) {
	for _, octet := range b {
		sum ^= uint16(octet)
		for range 8 {
			low := sum & 1
			sum >>= 1
			if low != 0 {
				sum ^= 0xa001
			}
		}
	}
	return sum
}

// shares are the packets that each router of a tree sends to each next hop, by router, bin and next
// hop.
type shares map[uint32][][]int

// spread sends traffic through a tree of balancers and returns the shares at those of the given
// level, from 1. Each balancer has its own number, and counts a hop.
func (t *traffic) spread(b balancer, hops, level, width int) shares {
	at := make([]uint32, len(t.flows)) // the router, by its place in a heap of the tree
	last := make([]int, len(t.flows))
	for i, p := range t.flows {
		place := uint32(0)
		for step := range level {
			if step > 0 {
				place = place*uint32(hops) + 1 + uint32(last[i])
				p.HopLimit--
			}
			last[i] = b.choose(p, place+1)
		}
		at[i] = place
	}
	bins := (t.bins + width - 1) / width
	found := shares{}
	for _, l := range t.loads {
		of := found[at[l.flow]]
		if of == nil {
			of = make([][]int, bins)
			for i := range of {
				of[i] = make([]int, hops)
			}
			found[at[l.flow]] = of
		}
		of[int(l.bin)/width][last[l.flow]] += int(l.packets)
	}
	return found
}

// leastPackets is how many a balancer must have in a bin for its shares to count: of fewer, chance
// alone is more than 5 %.
const leastPackets = 100

// deviations are, for each router and bin, by how much the share of a next hop differs most from an
// equal one, in percent of the packets.
func (s shares) deviations() (all []float64) {
	for _, bins := range s {
		for _, counts := range bins {
			total := sum(counts)
			if total < leastPackets {
				continue
			}
			most := 0.
			for _, n := range counts {
				d := 100*float64(n)/float64(total) - 100/float64(len(counts))
				most = max(most, d, -d)
			}
			all = append(all, most)
		}
	}
	slices.Sort(all)
	return all
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// balanceTraffic is the capture that the user gave, or synthetic traffic.
func balanceTraffic(r *experiment.Recorder) (*traffic, error) {
	if name := r.Capture(); name != "" {
		t, err := readCapture(name)
		if err == nil {
			r.Note("traffic of the capture %s: %d packets of %d flows in %.1f s", name, t.packets,
				len(t.flows), float64(t.bins)/binsPerSecond)
		}
		return t, err
	}
	packets := trafficPackets
	if r.Quick() {
		packets /= 20
	}
	t, err := synthesize(packets, 1)
	if err == nil {
		r.Note("synthetic traffic: %d packets of %d flows in %d s; sizes of flows as measured at "+
			"web servers of Facebook (%s, mean %.0f octets), rates spread evenly from %d to %d "+
			"packets per second", t.packets, len(t.flows), trafficSeconds, trafficSizes, meanSize(),
			slowest, fastest)
		r.Note("with --capture FILE the packets of a capture take their place; the source has " +
			"those of CAIDA of July 2008, which may not be passed on")
	}
	return t, err
}
