package linkemu

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/lab/netem"
)

// experimental is the EtherType for local experiments (IEEE 802).
const experimental = 0x88b5

// makeFrames makes numbered frames of random lengths and content.
func makeFrames(count, most int) [][]byte {
	random := rand.New(rand.NewPCG(1, 0))
	frames := make([][]byte, count)
	for i := range frames {
		f := make([]byte, 60+random.IntN(most-59))
		for j := range f {
			f[j] = byte(random.Uint32())
		}
		f[0] = 2 // to one, not to all
		binary.BigEndian.PutUint16(f[12:], experimental)
		binary.BigEndian.PutUint32(f[14:], uint32(i))
		frames[i] = f
	}
	return frames
}

// pass sends frames from near to far, and returns those that come until the wire has had all and
// none comes for a while, with the kernel's times of arrival.
func pass(t *testing.T, r rig, frames [][]byte) (came [][]byte, at []time.Duration) {
	t.Helper()
	out, in := open(t, r.near), open(t, r.far)
	defer unix.Close(out)
	defer unix.Close(in)
	end, deadline := near(t, r).Counters.Packets+uint64(len(frames)), time.Now().Add(patience)
	for _, f := range frames {
		if _, err := unix.Write(out, f); err != nil {
			t.Fatal(err)
		}
	}
	memory := newBatch()
	rooms := make([][]byte, batchMost)
	for i := range rooms {
		rooms[i] = make([]byte, rigMTU+frameOverhead)
		memory.put(i, rooms[i])
	}
	poll := []unix.PollFd{{Fd: int32(in), Events: unix.POLLIN}}
	for {
		d := near(t, r) // before nothing is found
		n, err := unix.Poll(poll, 1000)
		if n == 0 && err == nil && (d.Counters.Packets == end && d.UnderWay == 0 ||
			time.Now().After(deadline)) {
			return came, at
		}
		n, _ = memory.receive(in, batchMost) // nothing there: polled again
		for i := range n {
			came = append(came, bytes.Clone(rooms[i][:memory.messages[i].length]))
			at = append(at, memory.at(i, 0))
		}
	}
}

func near(t *testing.T, r rig) DirectionStatus {
	t.Helper()
	links, err := r.client.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return links[0].Directions[0]
}

// Frames of all lengths come as they were sent, in order, not before their delay.
func TestFramesPass(t *testing.T) {
	const delay = 20 * time.Millisecond
	const hair = time.Millisecond // by which the wall clock may be put back meanwhile
	r := newRig(t, [2]netem.Profile{{Delay: delay, RateBits: 100_000_000, QueueTime: time.Second},
		{}})
	frames := makeFrames(500, frameBytes)
	began := time.Duration(time.Now().UnixNano())
	came, at := pass(t, r, frames)
	if len(came) != len(frames) {
		t.Fatalf("%d of %d frames came: %+v", len(came), len(frames), near(t, r))
	}
	bits := 0
	for i := range frames {
		if !bytes.Equal(came[i], frames[i]) {
			t.Fatalf("frame %d is another one, or changed", i)
		}
		bits += 8 * len(frames[i])
		if least := began + delay + time.Duration(bits*10) - hair; at[i] < least { // 10 ns a bit
			t.Fatalf("frame %d came %v too early", i, least-at[i])
		}
	}
}

// What is lost, and what comes twice, is what the seed says, frame for frame.
func TestFramesAreLostAndDoubled(t *testing.T) {
	p := netem.Profile{Delay: 2 * time.Millisecond, Loss: 0.2, Duplicate: 0.3}
	r := newRig(t, [2]netem.Profile{p, {}})
	frames := makeFrames(1000, 200)
	came, _ := pass(t, r, frames)
	times := make([]int, len(frames))
	for _, f := range came {
		times[binary.BigEndian.Uint32(f[14:])]++
	}
	replay := netem.NewStream(1, "near", p)
	for i := range frames {
		if want := replay.Arrive(0, len(frames[i])).Copies; times[i] != want {
			t.Fatalf("frame %d came %d times, the seed says %d", i, times[i], want)
		}
	}
	if d := near(t, r); d.Counters != replay.Counters() || d.UnderWay != 0 || d.LateMost == 0 {
		t.Errorf("the wire says %+v, want %+v", d, replay.Counters())
	}
}

// Frames that skip the delay overtake, and all come.
func TestFramesOvertake(t *testing.T) {
	r := newRig(t, [2]netem.Profile{{Delay: 50 * time.Millisecond, Reorder: 0.5}, {}})
	frames := makeFrames(100, 100)
	came, _ := pass(t, r, frames)
	descents := 0
	for i := 1; i < len(came); i++ {
		if binary.BigEndian.Uint32(came[i][14:]) < binary.BigEndian.Uint32(came[i-1][14:]) {
			descents++
		}
	}
	if len(came) != len(frames) || descents == 0 {
		t.Errorf("%d of %d frames came, with %d out of order; want all, some out of order",
			len(came), len(frames), descents)
	}
}

// A change counts from the next frame on; a cut lets nothing pass.
func TestChanges(t *testing.T) {
	r := newRig(t, [2]netem.Profile{})
	frames := makeFrames(10, 100)
	for _, cut := range []bool{true, false} {
		if err := r.client.Set(t.Context(), 0, 0, netem.Profile{Cut: cut}, nil); err != nil {
			t.Fatal(err)
		}
		came, _ := pass(t, r, frames)
		if cut && len(came) != 0 || !cut && len(came) != len(frames) {
			t.Errorf("cut %v: %d of %d frames came", cut, len(came), len(frames))
		}
	}
	if err := r.client.Set(t.Context(), 1, 0, netem.Profile{}, nil); err == nil {
		t.Error("a link that is not there was changed")
	}
}
