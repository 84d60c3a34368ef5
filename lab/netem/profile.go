package netem

import "time"

// Profile says what one direction of a link does to packets. The zero value passes everything at
// once.
type Profile struct {
	Delay time.Duration `json:"delay,omitempty"` // of each packet, ns
	// the delay varies by up to this, evenly, in both directions; packets may overtake
	Jitter time.Duration `json:"jitter,omitempty"`
	Loss   float64       `json:"loss,omitempty"` // share of packets, 0 to 1
	// LossBurst is how many packets are lost in a row on average (Gilbert's channel, Bell System
	// Technical Journal 39, 1960); up to 1, each is lost independently of the others.
	LossBurst float64 `json:"lossBurst,omitempty"`
	Duplicate float64 `json:"duplicate,omitempty"` // share of packets that arrive twice
	// share of packets that skip the delay, and so overtake
	Reorder float64 `json:"reorder,omitempty"`

	// per second, with Ethernet headers; 0: no limit
	RateBits uint64 `json:"rateBits,omitempty"`
	// sent at once after a pause; 0: each packet takes its time
	BurstBytes uint32 `json:"burstBytes,omitempty"`
	// that wait for the rate at most; 0: QueueTime counts
	QueuePackets int `json:"queuePackets,omitempty"`
	// longest wait for the rate; 0 with 0 packets: DefaultQueueTime
	QueueTime time.Duration `json:"queueTime,omitempty"`

	Cut bool `json:"cut,omitempty"` // nothing passes
}

// DefaultQueueTime bounds the wait for the rate if nothing else is said.
const DefaultQueueTime = 50 * time.Millisecond

// Passes tells that the profile passes everything at once.
func (p Profile) Passes() bool { return p == Profile{} }

// queueTime is the longest wait for the rate; negative: packets are counted instead.
func (p Profile) queueTime() time.Duration {
	switch {
	case p.QueuePackets > 0:
		return -1
	case p.QueueTime > 0:
		return p.QueueTime
	}
	return DefaultQueueTime
}
