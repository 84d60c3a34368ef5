package linux

import (
	"slices"
	"unsafe"

	"github.com/vishvananda/netlink"
)

// LinkUse is what an interface has sent since it came up, and how much it can send.
type LinkUse struct {
	Index      int
	SentOctets uint64
	RateKbps   int // 0: the driver does not tell
}

// ReadLinkUse asks the kernel about an interface in the current network namespace.
func ReadLinkUse(iface string) (LinkUse, error) {
	link, err := netlink.LinkByName(iface)
	if err != nil {
		return LinkUse{}, Failed(err, "read what interface %s has sent", iface)
	}
	use := LinkUse{Index: link.Attrs().Index, RateKbps: linkRate(iface)}
	if s := link.Attrs().Statistics; s != nil {
		use.SentOctets = s.TxBytes
	}
	return use, nil
}

// CountsSent says whether programs find the octets that an interface has sent at its root qdisc.
// Counters per CPU and queues per hardware queue are summed up only when asked, and noqueue counts
// nothing; no kind is trusted that is not known here.
func CountsSent(iface string) bool {
	device, err := netlink.LinkByName(iface)
	return err == nil && slices.Contains(countingQdiscs, rootQdisc(device))
}

// countingQdiscs are kinds of which one counter is kept for all that leaves.
var countingQdiscs = []string{"bfifo", "cake", "codel", "drr", "ets", "etf", "fq", "fq_codel",
	"fq_pie", "hfsc", "htb", "netem", "pfifo", "pie", "prio", "qfq", "red", "sfb", "sfq", "tbf"}

// linkRate is what the driver says to ETHTOOL_GSET (linux/ethtool.h), in kbit/s; 0: nothing.
func linkRate(iface string) int {
	const get, unknown = 1, 1<<32 - 1
	settings := struct {
		command, supported, advertised uint32
		speed                          uint16 // Mbit/s, the lower half
		_                              [14]byte
		speedHigh                      uint16
		_                              [14]byte
	}{command: get}
	if err := ethtool(iface, unsafe.Pointer(&settings)); err != nil {
		return 0
	}
	speed := uint32(settings.speedHigh)<<16 | uint32(settings.speed)
	if speed == unknown {
		return 0
	}
	return int(speed) * 1000
}
