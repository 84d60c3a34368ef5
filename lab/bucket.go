package lab

import (
	"math"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	// defaultLatency bounds the queue of a link with a rate.
	defaultLatency = 50 * time.Millisecond
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
	latency := spec.Latency
	if latency == 0 {
		latency = defaultLatency
	}
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

// burstOf is the size of the bucket in bytes. A packet larger than the bucket
// would never pass.
func burstOf(spec *LinkSpec) uint32 {
	mtu := spec.MTU
	if mtu == 0 {
		mtu = defaultMTU
	}
	if spec.BurstBytes > 0 {
		return max(spec.BurstBytes, uint32(mtu+ethernetHeader))
	}
	return max(uint32(float64(spec.RateBits)/8*burstTime.Seconds()), minBurstPackets*uint32(mtu+ethernetHeader))
}
