package frer

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// numbers is from, from+1, ... up to the number before to, each given twice.
func twice(from, to uint32) []uint32 {
	var numbers []uint32
	for n := from; n != to; n++ {
		numbers = append(numbers, n, n)
	}
	return numbers
}

// TestKnownCases are known streams with the verdicts and counters of the standard.
func TestKnownCases(t *testing.T) {
	type counters struct{ passed, discarded, rogue, outOfOrder, lost uint64 }
	tests := []struct {
		name          string
		history, bits int
		numbers       []uint32
		want          string
		counters      counters
	}{
		{"each twice", 8, 16, twice(0, 20), strings.Repeat("10", 20), counters{20, 20, 0, 0, 7}},
		{"over the end of 16 bits", 8, 16, append(twice(65530, 65536), twice(0, 10)...),
			strings.Repeat("10", 16), counters{16, 16, 0, 0, 7}},
		{"at the bounds", 8, 16, []uint32{100, 108, 117, 101, 100, 109}, "110101",
			counters{4, 2, 2, 2, 7}},
		{"late", 8, 16, []uint32{10, 12, 11, 11, 10, 13, 9}, "1110011", counters{5, 2, 0, 3, 3}},
		{"far ahead", 64, 16, []uint32{5, 5000, 6, 7}, "1011", counters{3, 1, 1, 0, 2}},
		{"over the end of 28 bits", 32, 28, append(twice(1<<28-4, 1<<28), twice(0, 4)...),
			strings.Repeat("10", 8), counters{8, 8, 0, 0, 7}},
		{"over the end of 32 bits", 8, 32, append(twice(1<<32-6, 0), twice(0, 10)...),
			strings.Repeat("10", 16), counters{16, 16, 0, 0, 7}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRecovery(Settings{Bits: test.bits, Reset: DefaultReset}, test.history)
			if got := run(r, test.numbers); got != test.want {
				t.Errorf("verdicts %s, want %s", got, test.want)
			}
			reference := newStandard(test.history, test.bits)
			for _, n := range test.numbers {
				reference.receive(n)
			}
			if got := (counters{reference.passed, reference.discarded, reference.rogue,
				reference.outOfOrder, reference.lost}); got != test.counters {
				t.Errorf("the standard's counters are %+v, want %+v", got, test.counters)
			}
			compare(t, r, reference, test.numbers, test.want)
		})
	}
}

// TestVectors are longer streams with loss and skew.
func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/802.1cb-recovery.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, Algorithm string
		Params          struct{ H, Bits int }
		Seq             []uint32
		Accept          string
		Counters        struct{ Passed, Discarded, Rogue, Lost uint64 }
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, v := range vectors {
		if v.Algorithm != "vector" {
			continue
		}
		seen++
		t.Run(v.Name, func(t *testing.T) {
			bits := max(v.Params.Bits, 16)
			r, reference := newRecovery(Settings{Bits: bits, Reset: DefaultReset}, v.Params.H),
				newStandard(v.Params.H, bits)
			if got := run(r, v.Seq); got != v.Accept {
				t.Errorf("verdicts\n%s, want\n%s", got, v.Accept)
			}
			for _, n := range v.Seq {
				reference.receive(n)
			}
			if reference.passed != v.Counters.Passed || reference.lost != v.Counters.Lost ||
				reference.rogue != v.Counters.Rogue {
				t.Errorf("the standard counts %+v, the vector %+v", *reference, v.Counters)
			}
			compare(t, r, reference, v.Seq, v.Accept)
		})
	}
	if seen < 12 {
		t.Errorf("only %d vectors", seen)
	}
}

// TestAgreesWithStandard compares with the standard's shift register on random streams: histories
// of all lengths, up to four paths with loss and skew, and numbers over the end of their range.
func TestAgreesWithStandard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.IntRange(2, 300).Draw(t, "history")
		bits := rapid.SampledFrom([]int{16, 28, 32}).Draw(t, "bits")
		numbers := stream(t, bits, history)
		r, reference := newRecovery(Settings{Bits: bits, Reset: DefaultReset}, history),
			newStandard(history, bits)
		verdicts := run(r, numbers)
		for i, n := range numbers {
			if want := reference.receive(n); want != (verdicts[i] == '1') {
				t.Fatalf("packet %d, number %d: %c, the standard says %v", i, n, verdicts[i], want)
			}
		}
		compare(t, r, reference, numbers, verdicts)
	})
}

// stream draws what arrives of a flow sent over some paths, each with a skew and a loss of its own.
func stream(t *rapid.T, bits, history int) []uint32 {
	start := rapid.Uint32().Draw(t, "start")
	paths := rapid.IntRange(1, 4).Draw(t, "paths")
	skews := rapid.SliceOfN(rapid.IntRange(0, 2*history), paths, paths).Draw(t, "skews")
	kept := rapid.SliceOfN(rapid.Uint64(), 8, 8).Draw(t, "kept") // a pattern of losses
	var numbers []uint32
	for tick := range 400 {
		for path, skew := range skews {
			n := tick - skew
			if at := uint(n*(path+3)) % 512; n >= 0 && kept[at/64]>>(at%64)&1 == 1 {
				numbers = append(numbers, (start+uint32(n))<<(32-bits)>>(32-bits))
			}
		}
	}
	return numbers
}

func TestEpochsAndReset(t *testing.T) {
	r := NewRecovery(Settings{HistoryLog2: 10, Bits: BitsTLV, Reset: 2 * time.Second})
	steps := []struct {
		what   string
		number uint32
		epoch  uint8
		at     time.Duration
		want   Verdict
	}{
		{"the first", 1_000_000, 250, 0, Pass},
		{"its copy", 1_000_000, 250, 1, Duplicate},
		{"far ahead", 2_000_000, 250, 2, Rogue},
		{"a restarted sender", 0, 251, 3, Pass},
		{"its copy", 0, 251, 4, Duplicate},
		{"the earlier sender's, still on the way", 1_000_001, 250, 5, OldEpoch},
		{"a newer epoch over the end of the octet", 0, 5, 6, Pass},
		{"the same number again", 0, 5, 7, Duplicate},
		{"after the reset time, rogue or not", 77_000_000, 5, 2*time.Second + 7, Pass},
		{"its copy", 77_000_000, 5, 2*time.Second + 8, Duplicate},
		{"a number of before the reset", 0, 5, 2*time.Second + 9, Rogue},
		{"an old epoch after the reset time", 9, 4, 5 * time.Second, Pass},
	}
	for _, step := range steps {
		if got := r.Receive(step.number, step.epoch, step.at); got != step.want {
			t.Errorf("%s: %d, want %d", step.what, got, step.want)
		}
	}
	// The sender went on from 0 to 77,000,000 in one epoch.
	if c := r.Counters(); c.Resets != 5 || c.Missing() != 77_000_000-1 {
		t.Errorf("counted %+v, want 5 resets and 76,999,999 missing", c)
	}
}

// A word of before a reset is not taken for one of after it, though it is of the same block.
func TestResetForgetsNumbers(t *testing.T) {
	r := NewRecovery(Settings{HistoryLog2: 10, Bits: BitsSID, Reset: time.Second})
	for life := range 300 { // more than generations have numbers
		now := time.Duration(life) * 2 * time.Second
		for number := range uint32(100) {
			if got := r.Receive(number, 0, now); got != Pass {
				t.Fatalf("life %d, number %d: %d", life, number, got)
			}
		}
	}
}

func TestHistoryFor(t *testing.T) {
	tests := []struct {
		rate float64
		skew time.Duration
		want int
	}{
		{1000, 10 * time.Millisecond, LeastHistoryLog2},
		// 100 Mb/s of 1500 bytes, the worst of the paper's figure 5: 750
		{8333, 90 * time.Millisecond, LeastHistoryLog2},
		{1e6, 10 * time.Millisecond, 14}, // 10,000 and a quarter
		{10e6, 10 * time.Millisecond, MostHistoryLog2},
	}
	for _, test := range tests {
		if got, err := HistoryFor(test.rate, test.skew); err != nil || got != test.want {
			t.Errorf("%.0f/s, %s: 2^%d, %v; want 2^%d", test.rate, test.skew, got, err, test.want)
		}
	}
	if _, err := HistoryFor(10e6, 100*time.Millisecond); err == nil {
		t.Error("a million packets of skew accepted")
	}
}

func TestSettingsCheck(t *testing.T) {
	good := Settings{HistoryLog2: 14, Bits: BitsSID, Reset: DefaultReset}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*Settings){
		"2^9":       func(s *Settings) { s.HistoryLog2 = 9 },
		"2^18":      func(s *Settings) { s.HistoryLog2 = 18 },
		"told":      func(s *Settings) { s.HistoryLog2 = 15 },
		"28 bits":   func(s *Settings) { s.Bits = 28 },
		"reset aft": func(s *Settings) { s.Reset = 0 },
	} {
		bad := good
		spoil(&bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", bad, err, want)
		}
	}
}

// TestReplay states what a packet does that was captured and comes again: elimination does not
// authenticate (docs/reference/dataplane.md, "What it does not do").
func TestReplay(t *testing.T) {
	const pause = DefaultReset + time.Second
	r := NewRecovery(Settings{HistoryLog2: 10, Bits: BitsTLV, Reset: DefaultReset})
	now := time.Duration(0)
	expect := func(what string, number uint32, epoch uint8, after time.Duration, want Verdict) {
		t.Helper()
		now += after
		if got := r.Receive(number, epoch, now); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	for number := range uint32(5000) {
		expect("a packet", number, 1, time.Millisecond, Pass)
	}
	expect("a replay within the history", 4500, 1, 0, Duplicate)
	expect("one from before it", 100, 1, 0, Rogue)
	expect("the sender goes on after a pause", 5000, 1, pause, Pass)
	expect("a replay from before the pause", 4999, 1, 0, Duplicate)
	expect("a replay after a pause passes once", 100, 1, pause, Pass)
	expect("a copy of it", 100, 1, 0, Duplicate)
	expect("the sender's next one is too far ahead", 5001, 1, 0, Rogue)
	expect("until the reset time is over", 5002, 1, pause, Pass)
	expect("a restart of the sender", 0, 2, 0, Pass)
	expect("a replay from before it", 5002, 1, 0, OldEpoch)
	expect("the same after a pause", 5003, 1, pause, Pass)
	expect("the sender's next one is of a newer epoch", 1, 2, 0, Pass)
}

// TestEqualFlows states what happens if two head-ends give one flow id: of numbers that both use
// one packet passes, of two epochs the newer one, and what does not pass is counted.
func TestEqualFlows(t *testing.T) {
	for _, test := range []struct {
		name                           string
		ahead                          uint32 // the other one's numbers
		epoch                          uint8  // of the other one
		passed, duplicate, rogue, gone uint64
	}{
		{"equal numbers", 0, 1, 1000, 1000, 0, 0},
		{"near ones", 500, 1, 1500, 500, 0, 0},
		{"numbers far from each other", 1 << 20, 1, 1000, 0, 1000, 0},
		{"a newer epoch", 0, 2, 1001, 0, 0, 999},
	} {
		r := NewRecovery(Settings{HistoryLog2: 10, Bits: BitsTLV, Reset: DefaultReset})
		for number := range uint32(1000) {
			r.Receive(number, 1, 0)
			r.Receive(number+test.ahead, test.epoch, 0)
		}
		c := r.Counters()
		if c.Passed != test.passed || c.Duplicate != test.duplicate || c.Rogue != test.rogue ||
			c.OldEpoch != test.gone {
			t.Errorf("%s: %+v", test.name, c)
		}
	}
}
