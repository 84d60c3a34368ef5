package srpolicy

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// A flow chooses as docs/reference/dataplane.md says: the numbers are those of the page, and the
// rest of its paragraph is followed here.
func TestChooseAsSpecified(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/dataplane.md")
	if err != nil {
		t.Fatal(err)
	}
	_, group, _ := strings.Cut(string(page), "**Group**")
	group, _, _ = strings.Cut(group, "**Rule**")
	words := strings.Join(strings.Fields(group), " ")
	numbers := regexp.MustCompile(`n·0x([0-9a-f]+).* mix\(x \+ 0x([0-9a-f]+)\)`).
		FindStringSubmatch(words)
	if numbers == nil || !strings.Contains(words, "eight lists are drawn") {
		t.Fatalf("the page does not say how a flow chooses: %s", words)
	}
	turn, _ := strconv.ParseUint(numbers[1], 16, 64)
	step, _ := strconv.ParseUint(numbers[2], 16, 64)
	source, err := os.ReadFile("../../bpf/include/flow_groups.h")
	if err != nil {
		t.Fatal(err)
	}
	for name, number := range map[string]uint64{"GROUP_TURN": turn, "GROUP_STEP": step} {
		if want := fmt.Sprintf("#define %s 0x%xULL", name, number); !strings.Contains(
			string(source), want) {
			t.Errorf("the program has no %q", want)
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 10000 {
		weights, rates := make([]uint32, 1+random.IntN(16)), [16]uint64{}
		for i := range weights {
			weights[i], rates[i] = 1+random.Uint32N(9), random.Uint64N(4)
		}
		shares, hash := Shares(weights), random.Uint64()
		got := Choose(shares, hash, func(list int) uint64 { return rates[list] })
		var drawn []int
		for x := hash; len(drawn) < 8; {
			x += step
			x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
			x = (x ^ x>>27) * 0x94d049bb133111eb
			x ^= x >> 31
			for _, half := range []uint32{uint32(x >> 32), uint32(x)} {
				drawn = append(drawn, slices.IndexFunc(shares,
					func(end uint32) bool { return half <= end }))
			}
		}
		want := slices.MinFunc(drawn, func(a, b int) int { return cmp.Compare(rates[a], rates[b]) })
		if got != want {
			t.Fatalf("weights %v, rates %v: list %d of those drawn, %v; want %d", weights, rates,
				got, drawn, want)
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
