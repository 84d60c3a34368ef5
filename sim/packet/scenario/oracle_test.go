package scenario

import (
	"container/heap"
	"fmt"
	"math"
	"testing"

	"sextant/sim/packet"
)

// storeAndForward is another simulator, as plain as can be: events are functions in a heap, a link
// is the time from which on it is free, and there is no window: flows fit their first one.
type storeAndForward struct {
	events  []plainEvent
	free    map[string]int64
	perByte func(link string) int64 // in ps/1024
	delay   int64
	path    func(from, to int) []string
}

type plainEvent struct {
	at     int64
	serial int
	do     func(now int64)
}

func (s *storeAndForward) Len() int { return len(s.events) }
func (s *storeAndForward) Less(i, j int) bool {
	a, b := s.events[i], s.events[j]
	return a.at < b.at || a.at == b.at && a.serial < b.serial
}
func (s *storeAndForward) Swap(i, j int) { s.events[i], s.events[j] = s.events[j], s.events[i] }
func (s *storeAndForward) Push(x any)    { s.events = append(s.events, x.(plainEvent)) }
func (s *storeAndForward) Pop() any {
	last := s.events[len(s.events)-1]
	s.events = s.events[:len(s.events)-1]
	return last
}

func (s *storeAndForward) at(when int64, serial *int, do func(int64)) {
	*serial++
	heap.Push(s, plainEvent{when, *serial, do})
}

// send lets a packet pass links, one after the other, and then something happen.
func (s *storeAndForward) send(now int64, serial *int, links []string, size int64,
	then func(int64)) {
	if len(links) == 0 {
		then(now)
		return
	}
	link := links[0]
	s.free[link] = max(s.free[link], now) + size*s.perByte(link)>>10
	s.at(s.free[link]+s.delay, serial, func(now int64) {
		s.send(now, serial, links[1:], size, then)
	})
}

// play returns when the last byte of each flow arrives: after a handshake, all segments are sent at
// once, and each is acknowledged.
func (s *storeAndForward) play(flows []packet.Completed) []int64 {
	const payload, header, empty = 1448, 52, 64
	serial, ends := 0, make([]int64, len(flows))
	for i, f := range flows {
		forth, back := s.path(f.Flow.Src, f.Flow.Dst), s.path(f.Flow.Dst, f.Flow.Src)
		segments := func(now int64) {
			for left := f.Flow.Bytes; left > 0; left -= payload {
				s.send(now, &serial, forth, min(left, payload)+header, func(now int64) {
					ends[i] = now
					s.send(now, &serial, back, empty, func(int64) {})
				})
			}
		}
		s.at(int64(f.Flow.Start), &serial, func(now int64) {
			s.send(now, &serial, forth, empty, func(now int64) {
				s.send(now, &serial, back, empty, segments)
			})
		})
	}
	for s.Len() > 0 {
		e := heap.Pop(s).(plainEvent)
		e.do(e.at)
	}
	return ends
}

// Thousands of flows of up to ten segments over two racks, at a load of which queues are long, end
// at the picosecond at which the plain simulator has them. All links have other rates: what happens
// at one time, in an order that is nobody's, is rare.
func TestAgainstPlainSimulator(t *testing.T) {
	const text = `
topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts: 3}
links:
  delay: 3us
  slow: [%s]
queue: {packets: 400000}
transport: {control: reno}
traffic: {pattern: random, sizes: ./sizes, load: 0.65, until: 200ms}
duration: 20s
`
	rates, slow := map[string]float64{}, ""
	link := func(a, b string, rate float64) {
		rates[a+b], rates[b+a] = rate, rate
		slow += fmt.Sprintf("{from: %s, to: %s, rate: %.0f}, ", a, b, rate)
	}
	for leaf := range 2 {
		name := fmt.Sprint("leaf", leaf)
		link(name, "spine0", 1_400_000_123-float64(leaf)*17_001_003)
		for host := range 3 {
			link(fmt.Sprintf("host%d-%d", leaf, host), name,
				1_000_000_007-float64(3*leaf+host)*13_001_011)
		}
	}
	r := runWith(t, fmt.Sprintf(text, slow), files{"./sizes": "1 0\n14480 1\n"}, "ecmp", 1)
	plain := &storeAndForward{free: map[string]int64{}, delay: 3_000_000,
		perByte: func(link string) int64 {
			return int64(math.Round(8e12 * 1024 / rates[link]))
		},
		path: func(from, to int) []string {
			a, b := fmt.Sprint("leaf", from/3), fmt.Sprint("leaf", to/3)
			links := []string{fmt.Sprintf("host%d-%d%s", from/3, from%3, a)}
			if a != b {
				links = append(links, a+"spine0", "spine0"+b)
			}
			return append(links, fmt.Sprintf("%shost%d-%d", b, to/3, to%3))
		}}
	differ, longest := 0, 0.0
	for i, end := range plain.play(r.Ended) {
		f := r.Ended[i]
		longest = max(longest, (f.Finish - f.Flow.Start).Seconds())
		if end != int64(f.Finish) {
			if differ++; differ < 5 {
				t.Errorf("%+v ends at %d ps, in the plain simulator at %d", f.Flow, f.Finish, end)
			}
		}
	}
	t.Logf("%d flows, the longest %.2f ms; %d differ", r.Flows, longest*1000, differ)
	if r.Flows < 5000 || r.Unfinished+int(r.Drops) > 0 || longest < 2e-3 {
		t.Errorf("%d flows, %d unfinished, %d drops, the longest %g s", r.Flows, r.Unfinished,
			r.Drops, longest)
	}
}
