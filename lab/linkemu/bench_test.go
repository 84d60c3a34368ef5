package linkemu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/lab/netem"
)

// frameBytes is a full Ethernet frame.
const frameBytes = rigMTU + 14

// BenchmarkDelay sends full frames at a rate over a wire, and reports how much later than the
// link's delay they arrive: from before the system call that sends a frame to the kernel's time
// stamp at the other end. A machine that others use stands still now and then, for a thread of any
// priority; so besides the 99th percentile of all frames there is the median of those of 40 slices
// of time.
func BenchmarkDelay(b *testing.B) {
	for _, rate := range []int{1_000, 10_000, 50_000, 100_000} {
		for _, delay := range []time.Duration{time.Millisecond, 10 * time.Millisecond} {
			b.Run(fmt.Sprintf("%dpps/%s", rate, delay),
				func(b *testing.B) { benchmarkDelay(b, rate, delay) })
		}
	}
}

func benchmarkDelay(b *testing.B, rate int, delay time.Duration) {
	const lasts = 2 * time.Second
	r := newRig(b, [2]netem.Profile{{Delay: delay}, {}})
	out, in := open(b, r.near), open(b, r.far)
	defer unix.Close(out)
	defer unix.Close(in)
	for b.Loop() {
		count := int(lasts.Seconds() * float64(rate))
		came := make(chan []time.Duration, 1)
		go func() { came <- collect(in, count, delay) }()
		begun := time.Now()
		pace(out, rate, count)
		took := time.Since(begun)
		late := <-came
		b.ReportMetric(float64(count)/took.Seconds(), "packets/s")
		b.ReportMetric(float64(count-len(late)), "missing")
		var slices99 []time.Duration
		for slice := range slices.Chunk(late, max(1, len(late)/40)) {
			slices99 = append(slices99, quantile(slice, 0.99))
		}
		b.ReportMetric(microseconds(quantile(slices99, 0.5)), "us-p99-of-slices")
		b.ReportMetric(microseconds(quantile(late, 0.5)), "us-p50")
		b.ReportMetric(microseconds(quantile(late, 0.99)), "us-p99")
		b.ReportMetric(0, "ns/op")
	}
}

// quantile is the least value that at least this share of all does not exceed.
func quantile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// pace sends frames that carry the time, evenly, or as fast as it can if it lags.
func pace(fd, rate, count int) {
	f := make([]byte, frameBytes)
	f[0], f[12], f[13] = 0x02, 0x88, 0xb5 // EtherType for local experiments (IEEE 802)
	begun := time.Now()
	for i := range count {
		for wait := time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(
			rate))); wait > 0; {
			if wait > 100*time.Microsecond {
				time.Sleep(wait)
			}
			wait = time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate)))
		}
		binary.BigEndian.PutUint64(f[14:], uint64(time.Now().UnixNano()))
		_, _ = unix.Write(fd, f) // what is not sent is missing
	}
}

// collect reads frames until all have come or none comes for a second, and returns how late they
// were.
func collect(fd, count int, delay time.Duration) (late []time.Duration) {
	memory := newBatch()
	rooms := make([][]byte, batchMost)
	for i := range rooms {
		rooms[i] = make([]byte, rigMTU+frameOverhead)
		memory.put(i, rooms[i])
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for len(late) < count {
		if n, err := unix.Poll(poll, 1000); n == 0 || err != nil && err != unix.EINTR {
			return late
		}
		n, _ := memory.receive(fd, batchMost) // nothing there: polled again
		for i := range n {
			sent := time.Duration(binary.BigEndian.Uint64(rooms[i][14:]))
			late = append(late, memory.at(i, 0)-sent-delay)
		}
	}
	return late
}
