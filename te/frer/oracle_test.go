package frer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sent is a packet of a simulated sender, by what it truly is: no number of it wraps.
type sent struct {
	life  int   // of the sender
	index int64 // within that life
}

// arrival is a copy of a packet that comes to the egress.
type arrival struct {
	sent
	at time.Duration
}

// oracle is what docs/reference/dataplane.md says of elimination, by a plain set of what was seen
// since the reset. It shares nothing with the ring: no words, no tags, no numbers of so many bits.
type oracle struct {
	history  int64
	reset    time.Duration
	begun    bool
	life     int
	highest  int64
	accepted time.Duration
	seen     map[int64]bool
}

func (o *oracle) receive(a arrival) Verdict {
	ahead := a.index - o.highest
	follows := a.life == o.life && ahead > 0 && ahead <= o.history
	switch silent := a.at-o.accepted > o.reset; {
	case !o.begun, a.life > o.life, silent && !follows:
		o.begun, o.life, o.highest, o.accepted = true, a.life, a.index, a.at
		o.seen = map[int64]bool{a.index: true}
		return Pass
	case a.life < o.life:
		return OldEpoch
	case ahead > o.history || ahead <= -o.history:
		return Rogue
	case o.seen[a.index]:
		return Duplicate
	}
	o.seen[a.index], o.accepted = true, a.at
	o.highest = max(o.highest, a.index)
	if len(o.seen) > 4*int(o.history) { // only to save memory: these are rogue
		for index := range o.seen {
			if index <= o.highest-o.history {
				delete(o.seen, index)
			}
		}
	}
	return Pass
}

// lossCount is the count of an observer who sees all that is sent and all that passes: what is lost
// of a life from its first packet, of the first life from the first one that came, to the last one.
type lossCount map[int]*lifeCount

type lifeCount struct {
	first, last int64
	passed      map[int64]bool
}

func (c lossCount) pass(s sent) {
	l := c[s.life]
	if l == nil {
		l = &lifeCount{first: s.index, last: s.index, passed: map[int64]bool{}}
		c[s.life] = l
	}
	l.first, l.last = min(l.first, s.index), max(l.last, s.index)
	l.passed[s.index] = true
}

func (c lossCount) lost(history int64) (lost int64) {
	for life, l := range c {
		first := l.first
		if life > 0 && first < history {
			first = 0 // a sender begins with 0; what is more than a history is not known
		}
		lost += l.last - first + 1 - int64(len(l.passed))
	}
	return lost
}

// traffic is how a simulated sender behaves.
type traffic struct {
	name      string
	settings  Settings
	span      time.Duration // of simulated time
	start     int64         // index that the first packet has
	burst     int           // packets, at most
	spacing   time.Duration // between them
	pause     time.Duration // at most
	restarts  float64       // probability after a burst
	loss      float64       // of a copy
	outage    float64       // probability that a burst is lost as a whole
	skew      time.Duration // of the second path, at most
	wantLives int           // at least
}

// deliver adds the arrivals of one burst to those that are under way, in their order.
func (s traffic) deliver(random *rand.Rand, underWay []arrival, from sent, packets int,
	at time.Duration) []arrival {
	if random.Float64() < s.outage {
		return underWay
	}
	for i := range packets {
		for path := range 2 {
			if random.Float64() < s.loss {
				continue
			}
			delay := time.Duration(path) * time.Duration(random.Int64N(int64(s.skew)+1))
			sentAt := at + time.Duration(i)*s.spacing
			underWay = append(underWay, arrival{sent{from.life, from.index + int64(i)},
				sentAt + delay})
		}
	}
	slices.SortStableFunc(underWay, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return underWay
}

// TestWeeksOfTraffic compares verdict by verdict with the oracle, and what is missing with the
// observer's count, over weeks of bursts, pauses, losses, restarts and wraps.
func TestWeeksOfTraffic(t *testing.T) {
	const day = 24 * time.Hour
	tlv := Settings{HistoryLog2: 10, Bits: BitsTLV, Reset: DefaultReset}
	usual := tlv
	usual.HistoryLog2 = 13 // by default
	sid := usual
	sid.Bits = BitsSID
	largest := tlv
	largest.HistoryLog2 = MostHistoryLog2
	for _, s := range []traffic{
		{name: "10 datagrams and a pause", settings: usual, span: 7 * day, burst: 10,
			spacing: time.Millisecond, pause: 5 * time.Second},
		{name: "the same in SIDs", settings: sid, span: 7 * day, burst: 10,
			spacing: time.Millisecond, pause: 5 * time.Second},
		{name: "loss, skew, and the end of 32 bits", settings: tlv, span: 5 * day,
			start: 1<<32 - 1<<17, burst: 40,
			spacing: time.Millisecond, pause: 20 * time.Second, loss: 0.1,
			skew: 90 * time.Millisecond},
		{name: "restarts", settings: tlv, span: 36 * time.Hour, burst: 12,
			spacing: time.Millisecond, pause: 5 * time.Second,
			restarts: 0.8, loss: 0.2, skew: 30 * time.Millisecond, wantLives: 1 << 17},
		{name: "outages", settings: tlv, span: 30 * day, burst: 3000,
			spacing: 100 * time.Microsecond, pause: time.Hour,
			restarts: 0.03, loss: 0.05, outage: 0.3, skew: 20 * time.Millisecond, wantLives: 10},
		{name: "a history too small", settings: tlv, span: 14 * day, burst: 2000,
			spacing: 20 * time.Microsecond, pause: 2 * time.Hour,
			loss: 0.2, skew: 60 * time.Millisecond},
		{name: "the largest history", settings: largest, span: 14 * day, burst: 400,
			spacing: time.Microsecond, pause: 5 * time.Minute,
			restarts: 0.05, loss: 0.1, skew: time.Millisecond, wantLives: 100},
	} {
		t.Run(s.name, func(t *testing.T) { s.run(t) })
	}
}

func (s traffic) run(t *testing.T) {
	random := rand.New(rand.NewPCG(7, uint64(s.span)))
	recovery := NewRecovery(s.settings)
	reference := &oracle{history: int64(s.settings.History()), reset: s.settings.Reset}
	outside, next := lossCount{}, sent{index: s.start}
	var verdicts [OldEpoch + 1]int
	unused := 32 - s.settings.Bits
	var underWay []arrival
	for at := time.Duration(0); at < s.span; {
		packets := 1 + random.IntN(s.burst)
		underWay = s.deliver(random, underWay, next, packets, at)
		next.index += int64(packets)
		at += time.Duration(packets) * s.spacing
		if random.Float64() < s.restarts {
			next = sent{life: next.life + 1} // with copies of the earlier life still under way
		} else {
			at += s.skew + time.Duration(random.Int64N(int64(s.pause)))
		}
		come, _ := slices.BinarySearchFunc(underWay, at,
			func(a arrival, at time.Duration) int { return cmp.Compare(a.at, at) })
		for _, a := range underWay[:come] {
			got := recovery.Receive(uint32(a.index)<<unused>>unused, uint8(a.life), a.at)
			if want := reference.receive(a); got != want {
				t.Fatalf("at %s, packet %+v: verdict %d, the set says %d", a.at, a.sent, got, want)
			}
			if verdicts[got]++; got == Pass {
				outside.pass(a.sent)
			}
		}
		underWay = underWay[come:]
	}
	c := recovery.Counters()
	if lost := outside.lost(reference.history); int64(c.Missing()) != lost {
		t.Errorf("missing %d, an observer has counted %d: %+v", c.Missing(), lost, c)
	}
	if next.life < s.wantLives || verdicts[Pass] < 1000 || verdicts[Duplicate] < 1000 {
		t.Errorf("%d lives, verdicts %v: the simulation is too small", next.life, verdicts)
	}
	t.Logf("%d lives, verdicts %v, %+v, missing %d", next.life, verdicts, c, c.Missing())
}

// Tags of the ring come again: a generation after 2^16 resets, a round of the largest ring after
// 2^32 numbers. What was seen then is forgotten.
func TestTagsComeAgain(t *testing.T) {
	r := NewRecovery(Settings{HistoryLog2: 10, Bits: BitsTLV, Reset: time.Second})
	for life := range 3<<16 + 1 {
		packets := uint32(1)
		if life&0xffff == 0 { // other words of the ring are not met by the lives between
			packets = 1500
		}
		for number := range packets {
			if got := r.Receive(number, uint8(life), 0); got != Pass {
				t.Fatalf("life %d, number %d: %d", life, number, got)
			}
		}
	}
	largest := Settings{HistoryLog2: MostHistoryLog2, Bits: BitsTLV, Reset: time.Second}
	r = NewRecovery(largest)
	step := uint32(largest.History())
	// until numbers come again; they meet two words of the ring
	turns := int(uint64(1) << 32 / uint64(step))
	for turn := range 3 * turns {
		number := uint32(turn) * step
		if got := r.Receive(number, 0, 0); got != Pass {
			t.Fatalf("number %d for the %d. time: %d", number, turn/turns+1, got)
		}
		if turn%turns == 100 && r.Receive(number-1000, 0, 0) != Pass {
			t.Fatalf("number %d was taken for the one of 2^32 packets before", number-1000)
		}
	}
	if c := r.Counters(); c.Passed+c.Missing() != c.Expected || c.Rogue+c.Duplicate != 0 {
		t.Errorf("%+v", c)
	}
}

// What is expected stays right when the first number is 2^31 behind.
func TestMissingAfterManyNumbers(t *testing.T) {
	r := NewRecovery(Settings{HistoryLog2: MostHistoryLog2, Bits: BitsTLV, Reset: time.Second})
	step := uint32(1 << MostHistoryLog2)
	lost := uint64(0)
	r.Receive(0, 0, 0)
	for at := step; at < -step; at += step {
		r.Receive(at, 0, 0)
		r.Receive(at-1, 0, 0)
		lost += uint64(step) - 2
	}
	if c := r.Counters(); c.Missing() != lost {
		t.Errorf("missing %d, want %d: %+v", c.Missing(), lost, c)
	}
}
