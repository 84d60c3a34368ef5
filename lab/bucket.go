package lab

import (
	"cmp"
	"math"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/lab/netem"
)

const (
	// burstTime is how much of its rate a link may send at once by default.
	burstTime = time.Millisecond
	// minBurstPackets is the least that the default burst holds.
	minBurstPackets = 10
	ethernetHeader  = 14
	defaultMTU      = 1500
)

// tokenBucket is the queueing discipline of a link with a rate: TBF, the same
// as "tc qdisc add dev PORT root tbf rate R burst B latency L".
func tokenBucket(link netlink.Link, spec *LinkSpec) *netlink.Tbf {
	bytesPerSecond := spec.RateBits / 8
	burst := burstOf(spec)
	latency := cmp.Or(spec.Latency, netem.DefaultQueueTime)
	queue := float64(bytesPerSecond)*latency.Seconds() + float64(burst)
	return &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: link.Attrs().Index,
			Handle:    netlink.MakeHandle(1, 0),
			Parent:    netlink.HANDLE_ROOT,
		},
		Rate:   bytesPerSecond,
		Limit:  uint32(min(queue, math.MaxUint32)),
		Buffer: netlink.Xmittime(bytesPerSecond, burst),
	}
}

// netemPackets is the queue of netem for packets that are under way; the kernel's default of 1000
// is less than 120 ms at 100 Mbit/s.
const netemPackets = 100_000

// netemQdisc is the queueing discipline of a port of a kernel wire.
func netemQdisc(index int, p netem.Profile) *netlink.Netem {
	attributes := netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0),
		Parent: netlink.HANDLE_ROOT}
	loss := p.Loss
	if p.Cut {
		loss = 1
	}
	limit := uint32(netemPackets)
	if p.RateBits > 0 {
		limit = netemLimit(p)
	}
	return netlink.NewNetem(attributes, netlink.NetemQdiscAttrs{
		Latency: uint32(p.Delay.Microseconds()), Jitter: uint32(p.Jitter.Microseconds()),
		Limit: limit, Rate64: p.RateBits / 8,
		Loss: percent(loss), Duplicate: percent(p.Duplicate), ReorderProb: percent(p.Reorder),
	})
}

func percent(share float64) float32 { return float32(100 * share) }

// netemLimit is how many packets of full size wait for the rate and are under way: netem counts
// both.
func netemLimit(p netem.Profile) uint32 {
	perSecond := float64(p.RateBits) / 8 / (defaultMTU + ethernetHeader)
	queue := float64(p.QueuePackets)
	if queue == 0 {
		wait := cmp.Or(p.QueueTime, netem.DefaultQueueTime)
		queue = wait.Seconds() * perSecond
	}
	return uint32(math.Ceil(max(1, queue+(p.Delay+p.Jitter).Seconds()*perSecond)))
}

// burstOf is the size of the bucket in bytes. A packet larger than the bucket
// would never pass.
func burstOf(spec *LinkSpec) uint32 {
	mtu := cmp.Or(spec.MTU, defaultMTU)
	if spec.BurstBytes > 0 {
		return max(spec.BurstBytes, uint32(mtu+ethernetHeader))
	}
	return max(uint32(float64(spec.RateBits)/8*burstTime.Seconds()),
		minBurstPackets*uint32(mtu+ethernetHeader))
}
