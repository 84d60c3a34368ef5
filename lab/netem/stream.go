package netem

import (
	"hash/fnv"
	"math"
	"time"
)

// Stream is one direction of a link: its profile, and what of its past matters to the next packet.
// It is not safe for concurrent use.
type Stream struct {
	profile Profile
	seed    uint64
	count   uint64 // packets that have come
	burst   bool   // Gilbert's channel is in its bad state

	// The token bucket in virtual time: the moment at which the bucket is, was or will be without
	// any token, as reckoned from what it has passed. A full bucket was empty BurstBytes/RateBits
	// ago.
	empty   time.Duration
	last    time.Duration   // when the last packet leaves the queue
	waiting []time.Duration // when those in the queue leave it, ascending
	counts  Counters
}

// Counters are what became of the packets of a direction.
type Counters struct {
	Packets    uint64 `json:"packets"` // that came
	Bytes      uint64 `json:"bytes"`
	Lost       uint64 `json:"lost"`       // by chance
	Dropped    uint64 `json:"dropped"`    // because the queue was full
	Cut        uint64 `json:"cut"`        // while the direction was cut
	Duplicated uint64 `json:"duplicated"` // that arrive twice
	Reordered  uint64 `json:"reordered"`  // that skipped the delay
}

// NewStream begins a direction. Directions with the same seed and different names have independent
// chance.
func NewStream(seed uint64, name string, p Profile) *Stream {
	h := fnv.New64a()
	h.Write([]byte(name)) // never fails
	return &Stream{profile: p, seed: mix(seed ^ mix(h.Sum64()))}
}

// Profile is what the direction does now.
func (s *Stream) Profile() Profile { return s.profile }

// Counters are the counts so far.
func (s *Stream) Counters() Counters { return s.counts }

// Set changes what the direction does to packets that come from now on; those under way keep what
// was decided.
func (s *Stream) Set(p Profile) { s.profile = p }

// Fate is what becomes of a packet: the times at which it arrives, Copies of them.
type Fate struct {
	Copies  int // 0: it does not
	Arrives [2]time.Duration
}

// The purposes of draws.
const (
	drawLoss = iota
	drawDuplicate
	drawReorder
	drawJitter
	drawJitterCopy
	draws
)

// Arrive decides about a packet of so many bytes, with its Ethernet header, that comes at now.
// Times have any origin, but must not go back.
func (s *Stream) Arrive(now time.Duration, bytes int) Fate {
	n := s.count
	s.count++
	s.counts.Packets++
	s.counts.Bytes += uint64(bytes)
	if s.profile.Cut {
		s.counts.Cut++
		return Fate{}
	}
	sent, fits := s.send(now, bytes)
	if !fits {
		s.counts.Dropped++
		return Fate{}
	}
	lost := s.loses(n)
	if lost {
		s.counts.Lost++
		return Fate{}
	}
	fate := Fate{Copies: 1}
	fate.Arrives[0] = sent + s.delay(n, drawJitter)
	if s.profile.Reorder > 0 && s.draw(n, drawReorder) < s.profile.Reorder {
		s.counts.Reordered++
		fate.Arrives[0] = sent
	}
	if s.profile.Duplicate > 0 && s.draw(n, drawDuplicate) < s.profile.Duplicate {
		s.counts.Duplicated++
		fate.Copies, fate.Arrives[1] = 2, sent+s.delay(n, drawJitterCopy)
	}
	return fate
}

// send is when the token bucket lets a packet go; not at all if the queue is full.
func (s *Stream) send(now time.Duration, bytes int) (at time.Duration, fits bool) {
	p := &s.profile
	if p.RateBits == 0 {
		s.last, s.waiting = max(s.last, now), s.waiting[:0]
		return s.last, true
	}
	for len(s.waiting) > 0 && s.waiting[0] <= now {
		s.waiting = s.waiting[1:]
	}
	start := max(now, s.last)
	empty := max(s.empty, start-p.lasts(int(p.BurstBytes))) + p.lasts(bytes)
	at = max(start, empty)
	if most := p.queueTime(); most >= 0 && start-now > most || most < 0 &&
		len(s.waiting) > p.QueuePackets {
		return 0, false
	}
	s.empty, s.last = empty, at
	if p.QueuePackets > 0 {
		s.waiting = append(s.waiting, at)
	}
	return at, true
}

// lasts is how long the rate takes for so many bytes.
func (p *Profile) lasts(bytes int) time.Duration {
	return time.Duration(math.Round(float64(bytes) * 8 * float64(time.Second) / float64(
		p.RateBits)))
}

// loses decides whether the wire loses packet n. Of Gilbert's channel, bad follows good with
// probability p and good follows bad with probability r: a burst lasts 1/r packets, and p/(p+r) of
// all are bad.
func (s *Stream) loses(n uint64) bool {
	share := s.profile.Loss
	if share <= 0 {
		s.burst = false
		return false
	}
	u := s.draw(n, drawLoss)
	if s.profile.LossBurst <= 1 || share >= 1 {
		return u < share
	}
	r := 1 / s.profile.LossBurst
	if s.burst {
		s.burst = u >= r
	} else {
		s.burst = u < min(1, r*share/(1-share))
	}
	return s.burst
}

// delay draws how long a packet is under way.
func (s *Stream) delay(n uint64, purpose uint64) time.Duration {
	p := &s.profile
	if p.Jitter == 0 {
		return p.Delay
	}
	return max(0, p.Delay+time.Duration((2*s.draw(n, purpose)-1)*float64(p.Jitter)))
}

// draw is a number of [0, 1), a function of seed, packet and purpose.
func (s *Stream) draw(n, purpose uint64) float64 {
	return float64(mix(s.seed+(n*draws+purpose)*golden)>>11) / (1 << 53)
}

// golden is 2^64 by the golden ratio, the step of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// mix is the output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
