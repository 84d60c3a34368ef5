package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

// onTwoCPUs runs f in the world's namespace twice at once, on two processors if there are two.
func (w *world) onTwoCPUs(t *testing.T, f func(worker int)) {
	t.Helper()
	var before unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &before))
	var wait sync.WaitGroup
	for worker := range 2 {
		wait.Go(func() {
			runtime.LockOSThread()
			if err := unix.Setns(w.netns, unix.CLONE_NEWNET); err != nil {
				t.Error(err)
				return
			}
			var one unix.CPUSet
			one.Set(worker % runtime.NumCPU())
			_ = unix.SchedSetaffinity(0, &one) // where that CPU is not ours, they share one
			f(worker)
		})
	}
	wait.Wait()
}

// TestTwoCPUsNumberOneFlow: no two packets of a policy get the same number, on whatever CPUs they
// arrive.
func TestTwoCPUsNumberOneFlow(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	ends := newTwoHeadends(t, w, Internal)
	frame := packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t, packettest.Packet{
		Src: netip.MustParseAddr("2001:db8:c1::7"), Dst: netip.MustParseAddr("2001:db8:80::80"),
		SrcPort: 4000, DstPort: 80, Flags: "A",
	}.Bytes(t))
	const each = 20_000
	var numbers [2][]uint64
	w.onTwoCPUs(t, func(worker int) {
		run := newRunner(ends.program.programs[Internal], w.near)
		for range each {
			verdict, after := run.run(t, frame)
			if verdict != xdpRedirect {
				t.Errorf("the packet was not copied: verdict %d", verdict)
				return
			}
			// struct copy_note
			numbers[worker] = append(numbers[worker], binary.NativeEndian.Uint64(after[24:]))
		}
	})
	all := slices.Concat(numbers[0], numbers[1])
	slices.Sort(all)
	for i, number := range all {
		if number != uint64(i) {
			t.Fatalf("number %d of %d is %d: one was given twice, or left out", i, len(all), number)
		}
	}
}

// TestTwoCPUsEliminate: of two copies that are looked at on two CPUs at once, one passes.
func TestTwoCPUsEliminate(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	const packets = 30_000
	sent := newSender(t, rand.New(rand.NewPCG(2, 2)), srpolicy.TLV, mergeInstances[0])
	var passed [2][]uint32
	frame := [2][]byte{slices.Clone(sent.next()), slices.Clone(sent.next())}
	at := ethernetHeader + sent.headers[0].NumberAt[0]
	for _, f := range frame {
		f[at-5] = 1 // the same epoch
	}
	w.onTwoCPUs(t, func(worker int) {
		run := newRunner(merges.program.programs["merge"], w.near)
		for number := range uint32(packets) {
			binary.BigEndian.PutUint32(frame[worker][at:], number)
			if verdict, _ := run.run(t, frame[worker]); verdict == xdpPass {
				passed[worker] = append(passed[worker], number)
			}
			if number%512 == 0 { // neither gets ahead of the other by more than the history
				waitFor(merges.program, uint64(number))
			}
		}
	})
	all := slices.Concat(passed[0], passed[1])
	slices.Sort(all)
	if unique := slices.Compact(slices.Clone(all)); len(unique) != packets || len(all) != packets {
		t.Errorf("%d passed, %d different ones; want %d", len(all), len(unique), packets)
	}
	stats, err := merges.program.Stats(0, 3)
	must(t, err)
	if stats.Passed != packets || stats.Duplicate != packets || stats.Missing() != 0 {
		t.Errorf("%+v", stats)
	}
	t.Logf("CPU 0 was first %d times, CPU 1 %d times", len(passed[0]), len(passed[1]))
}

// waitFor returns when both workers have had all packets up to a number.
func waitFor(m *Merge, number uint64) {
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); time.Sleep(
		100 * time.Microsecond) {
		if stats, err := m.Stats(0, 3); err != nil || stats.Passed+stats.Duplicate >= 2*number {
			return
		}
	}
}

// TestCutsLoseNothing cuts paths under a stream of 1,000 packets per second: with two copies any
// one, with three any two.
func TestCutsLoseNothing(t *testing.T) {
	routers := []string{"r2", "r3", "r5"}
	for copies := 2; copies <= 3; copies++ {
		n := newNetwork(t, routers[:copies]...)
		var lists []srpolicy.List
		for i, r := range routers[:copies] {
			via := netip.MustParseAddr("fcbb:0:" + r[1:] + "::e")
			lists = append(lists, srpolicy.List{
				Name: r, Segments: []netip.Addr{via, mergeSID1.Addr()}, Redundancy: srpolicy.TLV,
				Flow: uint32(i + 1),
			})
		}
		rules, policy := mirrorPolicy(lists)
		n.openHeadend(rules, policy)
		m := n.openMerge(tlvSettings, routers[:copies]...)
		must(t, m.SetInstance(0, Instance{SID: mergeSID1, Flows: []uint32{1, 2, 3},
			Rules: frer.Settings{
				HistoryLog2: 10, Bits: frer.BitsTLV, Reset: time.Hour,
			}}))
		const packets = 300
		cut := 0
		got := n.paced("[2001:db8:2::2]:4433", packets, func(sent int) {
			if sent%100 == 50 && cut < copies-1 {
				n.ip(routers[cut], "link set pe2 down")
				cut++
			}
		})
		if got != packets || cut != copies-1 {
			t.Errorf("%d copies, %d paths cut: %d of %d datagrams arrived", copies, cut, got,
				packets)
		}
		n.remove()
	}
}
