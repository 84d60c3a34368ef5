package model_test

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/config"
	"sextant/datapath/model"
	"sextant/datapath/packettest"
)

// deadPathWorld is a host with paths of which one dies, in virtual time. What it knows of segments
// and acknowledgements is TCP's, and nothing of what the model notes.
type deadPathWorld struct {
	t       *testing.T
	rng     *rand.Rand
	host    *model.Flowlets
	now     time.Duration
	due     deadPathEvents
	paths   []model.FlowletPath
	trips   map[netip.Addr]time.Duration // round trips
	jitter  float64                      // how much longer one may take, as a part
	dead    netip.Addr                   // from died on
	died    time.Duration
	began   time.Duration // when it was sent to, after a round trip without
	last    time.Duration // and for the last time
	longest time.Duration // that it was sent to in a row
	after   int           // segments that were sent to it since it died
	revived int           // how often it was taken for alive when it brought nothing any more
}

type deadPathEvent struct {
	at time.Duration
	do func()
}

type deadPathEvents []deadPathEvent

func (e deadPathEvents) Len() int           { return len(e) }
func (e deadPathEvents) Less(i, j int) bool { return e[i].at < e[j].at }
func (e deadPathEvents) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *deadPathEvents) Push(x any)        { *e = append(*e, x.(deadPathEvent)) }
func (e *deadPathEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *deadPathWorld) in(wait time.Duration, do func()) {
	heap.Push(&w.due, deadPathEvent{w.now + wait, do})
}

// trip is a round trip over a path, whose queue fills and empties slowly enough that nothing is
// overtaken in it.
func (w *deadPathWorld) trip(sid netip.Addr) time.Duration {
	least := w.trips[sid]
	part := float64(w.now%(20*least)) / float64(20*least)
	return least + time.Duration(float64(least)*w.jitter*2*min(part, 1-part))
}

// until lets all happen before a time.
func (w *deadPathWorld) until(end time.Duration) {
	for len(w.due) > 0 && w.due[0].at < end {
		e := heap.Pop(&w.due).(deadPathEvent)
		w.now = e.at
		e.do()
	}
	w.now = end
}

// clock is the model's; it does not begin with 0, which means never.
func (w *deadPathWorld) clock() uint64 { return uint64(w.now + time.Hour) }

const (
	deadPathSegment = 1000
	deadPathBurst   = 6                     // segments
	deadPathWaits   = 40 * time.Millisecond // until one segment is acknowledged
)

// deadPathFlow is a connection that sends a burst again and again.
type deadPathFlow struct {
	*deadPathWorld
	port                             uint16
	segment, acknowledgement, answer []byte          // frames
	next                             uint32          // to send
	lost                             uint32          // the first that is not acknowledged
	came                             map[uint32]bool // out of order
	wanted                           uint32          // by the receiver
	repeated                         int             // acknowledgements of the same
	waiting                          int             // segments that no acknowledgement is for yet
}

// frames are those of a flow, with sequence numbers of 0: the host's with octets, and the other
// end's with and without.
func (f *deadPathFlow) frames() {
	p := packettest.Packet{Src: netip.MustParseAddr("2001:db8:a::1"), SrcPort: f.port,
		Dst: netip.MustParseAddr("2001:db8:b::1"), DstPort: 80, Flags: "A"}
	frame := func(octets int) []byte {
		p.Payload = make([]byte, octets)
		return slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, p.Bytes(f.t))
	}
	f.segment = frame(deadPathSegment)
	p.Src, p.Dst, p.SrcPort, p.DstPort = p.Dst, p.Src, p.DstPort, p.SrcPort
	f.acknowledgement, f.answer = frame(0), frame(deadPathSegment)
}

const deadPathTCP = 14 + 40 // where TCP's header begins in a frame

// send gives the host a segment, which arrives if its path lives when it is in the middle of it.
func (f *deadPathFlow) send(sequence uint32) {
	binary.BigEndian.PutUint32(f.segment[deadPathTCP+4:], sequence)
	sent := f.host.Send(f.segment, 0, f.clock())
	trip := f.trip(sent.Path)
	if sent.Path == f.dead && f.now >= f.died {
		if f.after == 0 || f.now-f.last > f.trips[f.dead] {
			f.began = f.now
		}
		f.last = f.now
		f.longest = max(f.longest, f.last-f.began)
		f.after++
	}
	f.in(trip/4, func() {
		if sent.Path != f.dead || f.now < f.died {
			f.in(trip/4, func() { f.received(sequence, trip/2) })
		}
	})
}

// received is the other end: it acknowledges each second segment, the last one after a while, and
// at once what is out of order.
func (f *deadPathFlow) received(sequence uint32, back time.Duration) {
	inOrder := sequence == f.wanted
	if sequence >= f.wanted {
		f.came[sequence] = true
	}
	for f.came[f.wanted] {
		delete(f.came, f.wanted)
		f.wanted += deadPathSegment
	}
	if f.waiting++; !inOrder || f.waiting >= 2 || len(f.came) > 0 {
		f.acknowledge(back, f.acknowledgement)
		return
	}
	f.in(deadPathWaits, func() {
		if f.waiting > 0 {
			f.acknowledge(back, f.acknowledgement)
		}
	})
}

// acknowledge is a segment of the other end, with or without octets of its own.
func (f *deadPathFlow) acknowledge(back time.Duration, frame []byte) {
	f.waiting = 0
	wanted, missing := f.wanted, f.missing()
	f.in(back, func() {
		binary.BigEndian.PutUint32(frame[deadPathTCP+8:], wanted)
		f.hears(frame)
		switch {
		case wanted > f.lost:
			f.lost, f.repeated = wanted, 0
		case wanted == f.lost && f.lost < f.next && len(frame) == len(f.acknowledgement):
			if f.repeated++; f.repeated == 3 {
				for _, sequence := range missing {
					f.send(sequence)
				}
			}
		}
	})
}

// missing are segments that the other end has not, below one that it has.
func (f *deadPathFlow) missing() (list []uint32) {
	highest := f.wanted
	for sequence := range f.came {
		highest = max(highest, sequence)
	}
	for sequence := f.wanted; sequence < highest; sequence += deadPathSegment {
		if !f.came[sequence] {
			list = append(list, sequence)
		}
	}
	return list
}

// hears gives the host a frame, and counts it if the dead path is heard of by it although the last
// that it brought was acknowledged before.
func (w *deadPathWorld) hears(frame []byte) {
	dead, silent := w.host.Measures[w.dead], uint64(0)
	if dead != nil {
		silent = dead.Silent
	}
	w.host.Heard(frame, w.clock())
	longest := time.Duration(float64(w.trips[w.dead]) * (1 + w.jitter))
	if silent != 0 && dead.Silent != silent && w.now > w.died+longest+deadPathWaits {
		w.revived++
	}
}

func (f *deadPathFlow) bursts(pause time.Duration) {
	for range deadPathBurst {
		f.send(f.next)
		f.next += deadPathSegment
	}
	f.in(time.Duration(float64(pause)*(0.5+f.rng.Float64())), func() { f.bursts(pause) })
}

// speak has the other end send a segment again and again.
func (f *deadPathFlow) speak(pause time.Duration) {
	f.acknowledge(f.trips[f.paths[0].SID]/2, f.answer)
	f.in(pause, func() { f.speak(pause) })
}

// newDeadPathWorld has so many flows send over four paths for a second.
func newDeadPathWorld(t *testing.T, seed uint64, jitter float64, answers bool) *deadPathWorld {
	w := &deadPathWorld{t: t, rng: rand.New(rand.NewPCG(seed, 21)), jitter: jitter,
		trips: map[netip.Addr]time.Duration{},
		host: &model.Flowlets{Choice: model.FlowletByMeasure, Gap: 5 * time.Millisecond,
			Source:        netip.MustParseAddr("2001:db8:a::1"),
			FlowletsOuter: config.FlowletsOuter{HopLimit: 64},
			Measures:      map[netip.Addr]*model.FlowletMeasure{},
			Flows:         map[model.FlowletEnds]*model.FlowletFlow{}}}
	for i := range 4 {
		p := model.FlowletPath{MTU: 1500,
			SID: netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%d::", i+1))}
		w.paths = append(w.paths, p)
		w.trips[p.SID] = time.Duration(20+w.rng.IntN(60)) * time.Millisecond
		w.host.Measures[p.SID] = &model.FlowletMeasure{}
	}
	w.host.Groups = []model.FlowletGroup{{Paths: w.paths,
		Destinations: []netip.Prefix{netip.MustParsePrefix("2001:db8:b::/48")}}}
	for i := range 4 + w.rng.IntN(12) {
		f := &deadPathFlow{deadPathWorld: w, port: uint16(40000 + i), came: map[uint32]bool{}}
		f.frames()
		w.in(time.Duration(w.rng.Int64N(int64(time.Second/5))), func() {
			pause := time.Duration(4+w.rng.IntN(12)) * time.Millisecond
			f.bursts(pause)
			if answers {
				f.speak(pause)
			}
		})
	}
	return w
}

// A path that dies is left by all flows that send over it, nearly always within two round trips.
// docs/results/together.md has the numbers.
func TestFlowletsLeaveDeadPath(t *testing.T) {
	for _, c := range []struct {
		jitter, median, most float64
		answers              bool // the other end sends all the time
	}{{0, 1.5, 3, false}, {0.5, 1.3, 2.5, false}, {0, 1.5, 2.5, true}} {
		var took []float64 // round trips
		revived := 0
		for seed := range uint64(14) {
			w := newDeadPathWorld(t, seed, c.jitter, c.answers)
			w.until(time.Second + time.Duration(w.rng.Int64N(int64(time.Second/2))))
			w.died, w.dead = w.now, w.paths[w.rng.IntN(4)].SID
			w.until(w.died + 500*time.Millisecond) // a second later one burst may try it
			revived += w.revived
			if w.after > 0 {
				took = append(took, float64(w.longest)/float64(w.trips[w.dead])/(1+c.jitter))
			}
		}
		slices.Sort(took)
		median, most := took[len(took)/2], took[len(took)-1]
		t.Logf("%+v: %d paths died in use, left after %.2f round trips (median), %.2f (most); "+
			"%d times one was heard of later", c, len(took), median, most, revived)
		if len(took) < 10 || median > c.median || most > c.most || revived > 2 {
			t.Errorf("%d paths died in use: left after %.2f, heard of %d times later", len(took),
				took, revived)
		}
	}
}
