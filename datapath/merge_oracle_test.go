package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"sextant/te/srpolicy"
)

// copyOf returns a frame of one path of an instance, whose number and epoch can be written.
type copyOf struct {
	octets []byte
	number int // where it is
}

func newCopies(t testing.TB, instance Instance) []copyOf {
	t.Helper()
	s := newSender(t, rand.New(rand.NewPCG(1, 1)), srpolicy.TLV, instance)
	var copies []copyOf
	for _, h := range s.headers {
		octets, inner := slices.Clone(h.Octets), s.inners[0]
		protocol := uint8(4)
		if inner[0]>>4 == 6 {
			protocol = 41
		}
		h.Fill(octets, len(inner), protocol, 0, 1, 0, 0)
		octets[ipv6Header+3] = 0 // segments left: it has visited all
		copy(octets[24:40], octets[48:64])
		frame := slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, octets, inner)
		copies = append(copies, copyOf{frame, ethernetHeader + h.NumberAt[0]})
	}
	return copies
}

// of returns the frame with a number of an epoch.
func (c copyOf) of(number uint32, epoch uint8) []byte {
	octets := slices.Clone(c.octets)
	octets[c.number-5] = epoch
	binary.BigEndian.PutUint32(octets[c.number:], number)
	return octets
}

// longReset is longer than a machine, however busy, keeps a flow of packets waiting.
const longReset = 30 * time.Second

// pause makes an instance believe that its latest packet was accepted so long before it was.
func (m *Merge) pause(t testing.TB, instance uint32, pause time.Duration) {
	t.Helper()
	var slot recoverySlot
	must(t, m.maps["recoveries"].Lookup(instance, &slot))
	slot.Recovery.Accepted -= uint64(pause) >> 16 // in ticks of 2^16 ns, below the generation
	must(t, m.maps["recoveries"].Put(instance, slot))
}

// TestIntermittentFlow: a flow that pauses for longer than the reset after each 10 packets loses
// none of them, however long that goes on. The reference is the set of the numbers that have
// passed.
func TestIntermittentFlow(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	instance := mergeInstances[0]
	instance.Rules.Reset = longReset
	must(t, merges.program.SetInstance(0, instance))
	copies := newCopies(t, instance)
	run := newRunner(merges.program.programs["merge"], w.near)
	passed := map[uint32]bool{}
	number := ^uint32(0) - 50_000 // over the end of the numbers
	for range 12_000 {
		for range 10 {
			for path := range copies[:2] {
				verdict, _ := run.run(t, copies[path].of(number, 3))
				if want := !passed[number]; (verdict == xdpPass) != want {
					t.Fatalf("packet %d, copy %d: verdict %d, want it passed: %v", len(passed)+1,
						path, verdict, want)
				}
				passed[number] = true
			}
			number++
		}
		merges.program.pause(t, 0, longReset+time.Second)
	}
	stats, err := merges.program.Stats(0, 3)
	must(t, err)
	if stats.Passed != uint64(len(passed)) || stats.Missing() != 0 || stats.Rogue != 0 ||
		stats.Duplicate != stats.Passed {
		t.Errorf("%d numbers: %+v", len(passed), stats)
	}
}

// meeting lets two workers go on together.
type meeting struct {
	sync.Mutex
	turn    int
	waiting chan struct{}
}

// wait returns when both are here. The later one does something first.
func (m *meeting) wait(first func()) {
	m.Lock()
	if m.turn++; m.turn%2 == 1 {
		m.waiting = make(chan struct{})
		other := m.waiting
		m.Unlock()
		<-other
		return
	}
	first()
	close(m.waiting)
	m.Unlock()
}

// TestTwoCPUsReset: two CPUs have the copies of one flow at once, while its sender is restarted all
// the time, or pauses and goes on far ahead. Whichever CPU begins a generation while the other
// enters a number: each packet passes once. The reference is the set of all packets that passed.
func TestTwoCPUsReset(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	instance := mergeInstances[0]
	instance.Rules.Reset = longReset
	must(t, merges.program.SetInstance(0, instance))
	type packet struct {
		life   int
		number uint32
	}
	const lives = 6_000
	var passed [2][]packet
	var total, missing uint64
	var meet meeting
	w.onTwoCPUs(t, func(worker int) {
		run := newRunner(merges.program.programs["merge"], w.near)
		path := newCopies(t, instance)[worker]
		random := rand.New(rand.NewPCG(9, 9)) // the same for both
		life, epoch, number := 0, uint8(200), uint32(0)
		for turn := range lives {
			switch {
			case turn%16 == 15: // and neither gets ahead by more epochs than can be told apart
				meet.wait(func() { merges.program.pause(t, 0, longReset+time.Second) })
				number += 5000
				if worker == 0 {
					missing += 5000
				}
			case random.IntN(3) > 0:
				life, epoch, number = life+1, epoch+1, 0
			}
			for range 1 + random.IntN(60) {
				if verdict, _ := run.run(t, path.of(number, epoch)); verdict == xdpPass {
					passed[worker] = append(passed[worker], packet{life, number})
				}
				number++
				if worker == 0 {
					total++
				}
			}
		}
	})
	seen := map[packet]bool{}
	for _, p := range slices.Concat(passed[0], passed[1]) {
		if seen[p] {
			t.Errorf("%+v passed twice", p)
		}
		seen[p] = true
	}
	stats, err := merges.program.Stats(0, 3)
	must(t, err)
	if uint64(len(seen)) != total || stats.Passed != total || stats.Missing() != missing ||
		stats.Contended != 0 {
		t.Errorf("%d of %d packets passed, %d are missing: %+v", len(seen), total, missing, stats)
	}
	t.Logf("CPU 0 was first %d times, CPU 1 %d times, with %d resets", len(passed[0]),
		len(passed[1]), stats.Resets)
}

// TestFirstCopyWithAFault: a copy that is dropped for another fault has not entered its number: the
// next copy passes.
func TestFirstCopyWithAFault(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	copies := newCopies(t, mergeInstances[0])
	run := newRunner(merges.program.programs["merge"], w.near)
	congested := slices.Clone(copies[0].of(7, 1))
	// CE around a packet that is not ECN-capable (RFC 6040 section 4.2)
	congested[ethernetHeader+1] |= 3 << 4
	for at, step := range []struct {
		frame []byte
		want  uint32
	}{{copies[1].of(6, 1), xdpPass}, {congested, xdpDrop}, {copies[1].of(7, 1), xdpPass},
		{copies[2].of(7, 1), xdpDrop}, {congested, xdpDrop}} {
		want := merges.model.Process(uint32(w.near), 0, step.frame)
		verdict, after := run.run(t, step.frame)
		if verdict != step.want || !agree(t, step.frame, verdict, after, want) {
			t.Errorf("step %d: verdict %d, want %d", at, verdict, step.want)
		}
	}
	if got := dropped(t, merges.program.collection, "ecn"); got != 2 {
		t.Errorf("%d dropped for their ECN field, want 2", got)
	}
	if got := dropped(t, merges.program.collection, "duplicate"); got != 1 {
		t.Errorf("%d dropped as duplicates, want 1", got)
	}
}
