package cflb

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"

	"golang.org/x/sys/unix"

	"sextant/packet/cflb"
	sim "sextant/sim/packet"
)

// traffic is what comes to a balancer: flows, and how many packets each has in which bin of time.
// In which order packets of one bin come makes no difference to shares.
type traffic struct {
	flows   []cflb.Packet
	loads   []load
	bins    int
	packets int
}

// load is what a flow sends in a bin.
type load struct{ flow, bin, packets uint32 }

// binsPerSecond are the bins of half a second in which the paper looks at four balancers.
const binsPerSecond = 2

// Of the synthetic traffic.
const (
	trafficSeconds   = 25 // as long as the paper's 10 million packets at its rate
	trafficPackets   = 10_000_000
	trafficSizes     = "web-server"
	trafficClients   = 2000
	trafficServers   = 64
	segmentOctets    = 1448
	slowest, fastest = 10, 1000 // packets of a flow per second
)

// synthesize makes traffic of so many packets: flows arrive at random times, their sizes are those
// of a measured distribution, and their rates spread evenly over two decades. Addresses and ports
// have the patterns of hosts: neighbouring addresses, few well-known ports, and source ports that a
// client takes in steps of two, as Linux does.
func synthesize(packets int, seed uint64) (*traffic, error) {
	sizes, err := sim.NamedSizes(trafficSizes)
	if err != nil {
		return nil, fmt.Errorf("synthetic traffic: %w", err)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	t := &traffic{bins: trafficSeconds * binsPerSecond}
	next := make([]uint16, trafficClients) // source ports
	for i := range next {
		next[i] = uint16(32768 + rng.IntN(28232))
	}
	for t.packets < packets {
		client := rng.IntN(trafficClients)
		next[client] = 32768 + (next[client]-32768+2)%28232
		flow := uint32(len(t.flows))
		t.flows = append(t.flows, newFlow(rng, client, next[client]))
		count := 1 + sizes.Draw(rng)/segmentOctets
		rate := slowest * math.Pow(fastest/slowest, rng.Float64())
		// from before the beginning on, so that long flows are under way when it begins
		t.send(flow, trafficSeconds*(2*rng.Float64()-1), float64(count), rate)
	}
	return t, nil
}

func newFlow(rng *rand.Rand, client int, port uint16) cflb.Packet {
	server := rng.IntN(trafficServers)
	p := cflb.Packet{Src: netip.AddrFrom4([4]byte{10, byte(client / 1000), byte(client / 250),
		byte(1 + client%250)}), Dst: netip.AddrFrom4([4]byte{192, 0, 2, byte(server)}),
		Protocol: unix.IPPROTO_TCP, HasPorts: true, SrcPort: port, DstPort: 443, HopLimit: 64}
	switch u := rng.IntN(10); {
	case u < 1:
		p.Protocol, p.DstPort = unix.IPPROTO_UDP, 53
	case u < 3:
		p.DstPort = 80
	}
	p.HopLimit -= uint8(client % 5)
	return p
}

// send counts packets of a flow that begins at a time, in seconds, into bins.
func (t *traffic) send(flow uint32, begin, count, rate float64) {
	const width = 1. / binsPerSecond
	sent := 0. // before the bin
	for bin := math.Floor(begin / width); sent < count && bin < float64(t.bins); bin++ {
		until := min(count, math.Ceil(((bin+1)*width-begin)*rate))
		if bin >= 0 {
			t.add(flow, uint32(bin), uint32(until-sent))
		}
		sent = until
	}
}

func (t *traffic) add(flow, bin, packets uint32) {
	if packets > 0 {
		t.loads = append(t.loads, load{flow, bin, packets})
		t.packets += int(packets)
	}
}
