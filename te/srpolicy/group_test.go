package srpolicy

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Lists are drawn by their weights, and of eight the one is taken over which the least goes out.
func TestChoose(t *testing.T) {
	shares := Shares([]uint32{1, 2, 5})
	random := rand.New(rand.NewPCG(1, 2))
	const flows = 100000
	var even, least [3]float64
	for range flows {
		hash := random.Uint64()
		even[Choose(shares, hash, func(int) uint64 { return 7 })]++
		least[Choose(shares, hash, func(list int) uint64 { return uint64(list) })]++
	}
	for i, want := range []float64{1. / 8, 2. / 8, 5. / 8} {
		if got := even[i] / flows; math.Abs(got-want) > 0.01 {
			t.Errorf("list %d gets %.3f of the flows, not %.3f", i, got, want)
		}
	}
	// The least number of eight: 1-(7/8)^8, (7/8)^8-(5/8)^8, (5/8)^8.
	none, neither := math.Pow(7./8, 8), math.Pow(5./8, 8)
	for i, want := range []float64{1 - none, none - neither, neither} {
		if got := least[i] / flows; math.Abs(got-want) > 0.01 {
			t.Errorf("list %d gets %.3f of the flows, not %.3f", i, got, want)
		}
	}
}

// A steady rate is read as it is, however often somebody asks, and a change of it within the time
// constant; a rate that was read stands for an eighth of that.
func TestMeter(t *testing.T) {
	const constant = 160 * time.Microsecond
	random := rand.New(rand.NewPCG(3, 4))
	var m Meter
	now, octets, read := time.Hour, uint64(1<<40), 0.0
	step := func(perNanosecond float64) {
		passes := time.Duration(1 + random.IntN(int(constant)))
		now += passes
		octets += uint64(perNanosecond * float64(passes))
		read = float64(m.Read(octets, now, constant)) / (1 << MeterUnit)
	}
	for range 100 {
		step(1.25) // 10 Gb/s
	}
	if math.Abs(read-1.25) > 0.0125 {
		t.Errorf("1.25 octets per nanosecond are read as %.4f", read)
	}
	stands := m.Read(octets+1<<30, now+constant/8, constant)
	if got := float64(stands) / (1 << MeterUnit); got != read {
		t.Errorf("an eighth of the time constant later %.4f is read, not %.4f", got, read)
	}
	begin := now
	for now-begin < constant {
		step(0)
	}
	// 1/(1+x) is about exp(-x): what is left after one to two time constants
	if part := read / 1.25; part > 0.55 || part < 0.1 {
		t.Errorf("%.2f of the rate is left %v after the last octet", part, now-begin)
	}
	for range 100 {
		step(0)
	}
	if read > 0.0001 {
		t.Errorf("long after the last octet %.6f is read", read)
	}
}

// Long pauses make no long memory, whose product with a rate would not fit 64 bits.
func TestWayMemory(t *testing.T) {
	for flowlet, want := range map[time.Duration]time.Duration{0: 500 * time.Microsecond,
		100 * time.Microsecond: 50 * time.Microsecond, time.Hour: time.Second} {
		if got := WayMemory(flowlet); got != want {
			t.Errorf("flowlets of %v: %v", flowlet, got)
		}
	}
}
