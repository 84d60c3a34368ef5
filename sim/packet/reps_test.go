package packet

import (
	"testing"
	"unsafe"

	"sextant/te/topology/generate"
)

// The cache of REPS against a list: what is kept is taken in order, once; a path that is dropped
// does not come back; and frozen, the kept ones come round again.
func TestPathCache(t *testing.T) {
	if size := unsafe.Sizeof(pathCache{}); size > 25 {
		t.Errorf("REPS keeps %d bytes of a connection, want at most 25", size)
	}
	var k pathCache
	k.reset()
	takes := func(want ...int) {
		t.Helper()
		for _, w := range want {
			if path, ok := k.take(); ok != (w >= 0) || ok && int(path) != w {
				t.Fatalf("takes %d, %t; want %d (%+v)", path, ok, w, k)
			}
		}
	}
	takes(-1)
	for path := range uint8(10) {
		k.keep(path)
	}
	takes(2, 3, 4)
	k.drop(3) // used already
	k.drop(6)
	takes(5, 7, 8, 9, -1)
	k.keep(7)
	k.freeze(Millisecond, Millisecond)
	takes(7, 2, 4, 5, 7, 8, 9, 7, 2)
	k.keep(1)
	takes(1, 4)
	for path := range uint8(10) {
		k.drop(path)
	}
	takes(-1)
	k.returned(3, false)
	takes(3, 3)
	k.drop(3)
	takes(-1)
	k.keep(2)
	takes(2, 2)
	k.thaw(2*Millisecond - Microsecond)
	takes(2)
	k.thaw(2 * Millisecond)
	takes(-1)
}

// REPS around a failed link at 100 Gb/s: within 100 µs no packet is lost any more, although routing
// does not follow; hashed flows lose packets all the time.
func TestREPSAroundFailure(t *testing.T) {
	g, err := generate.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	// Hosts' queues mark, too: packets must not wait there long after their paths were chosen.
	n, err := NewNetwork(g, NetworkConfig{Rate: 100e9, Delay: 500 * Nanosecond,
		Queue: Queue{Bytes: 100 * 1500, Mark: 25 * 1500}})
	if err != nil {
		t.Fatal(err)
	}
	const failure, cases = 2 * Millisecond, 8
	var fabric []int
	for l := range n.links {
		if n.host[g.From(edge(l))] == none && n.host[n.links[l].to] == none {
			fabric = append(fabric, l)
		}
	}
	after := func(scheme Scheme, seed uint64, link int) Time {
		transport := DefaultTransport()
		transport.Control, transport.ECN = DCTCP, true
		transport.MinRTO, transport.DelayedAck = 20*Microsecond, 0
		s := begin(t, Config{Network: n, Transport: transport, Seed: seed,
			Paths: Paths{Scheme: scheme, Convergence: Second}})
		for src, dst := range permutation(len(n.Hosts), seed) {
			add(t, s, Flow{Src: src, Dst: dst, Bytes: Endless})
		}
		for _, l := range []int{link, int(g.Reverse(edge(link)))} {
			if err := s.Schedule(Change{At: failure, Link: l}); err != nil {
				t.Fatal(err)
			}
		}
		s.Run(3 * Millisecond)
		if lost := s.Totals().LastLost; lost != 0 {
			return lost - failure
		}
		return 0
	}
	hashed, lost := Time(0), Time(0)
	for seed := range uint64(cases) {
		link := fabric[int(seed)*len(fabric)/cases]
		last := after(REPS, seed, link)
		t.Logf("link %d: REPS lost the last packet %.1f µs after the failure", link,
			last.Seconds()*1e6)
		lost = max(lost, last)
		if last > 100*Microsecond {
			t.Errorf("link %d: REPS lost the last packet %.1f µs after the failure, want at most "+
				"100", link, last.Seconds()*1e6)
		}
		if seed < 2 {
			hashed = max(hashed, after(ECMP, seed, link))
		}
	}
	if hashed < Millisecond/2 || lost == 0 {
		t.Errorf("ECMP lost the last packet %.1f µs after the failure, REPS %.1f",
			hashed.Seconds()*1e6, lost.Seconds()*1e6)
	}
}
