package netem_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/lab/netem"
)

// fates sends count frames of 1,514 bytes, evenly spaced, and returns what becomes of them.
func fates(p netem.Profile, seed uint64, count int,
	gap time.Duration) ([]netem.Fate, netem.Counters) {
	s := netem.NewStream(seed, "a:eth0", p)
	all := make([]netem.Fate, count)
	for i := range all {
		all[i] = s.Arrive(time.Duration(i)*gap, 1514)
	}
	return all, s.Counters()
}

// within wants a number near another, in standard deviations of a binomial share.
func within(t *testing.T, what string, got uint64, of int, share float64) {
	t.Helper()
	want, deviation := float64(of)*share, math.Sqrt(float64(of)*share*(1-share))
	if math.Abs(float64(got)-want) > 4*deviation {
		t.Errorf("%s: %d of %d, want about %.0f", what, got, of, want)
	}
}

func TestShares(t *testing.T) {
	const count = 200_000
	p := netem.Profile{Delay: 10 * time.Millisecond, Loss: 0.1, Duplicate: 0.02, Reorder: 0.03}
	all, counters := fates(p, 1, count, time.Microsecond)
	passed := count - int(counters.Lost)
	within(t, "lost", counters.Lost, count, p.Loss)
	within(t, "duplicated", counters.Duplicated, passed, p.Duplicate)
	within(t, "reordered", counters.Reordered, passed, p.Reorder)
	copies := 0
	for _, f := range all {
		copies += f.Copies
	}
	if want := passed + int(counters.Duplicated); copies != want {
		t.Errorf("%d packets arrive, want %d", copies, want)
	}
}

// The same seed gives the same losses, another seed or another name others, and a change of the
// loss only adds to them.
func TestLossIsOfTheSeed(t *testing.T) {
	lost := func(seed uint64, name string, loss float64, jitter time.Duration) (numbers []int) {
		s := netem.NewStream(seed, name, netem.Profile{Delay: time.Second, Jitter: jitter,
			Loss: loss})
		for i := range 10_000 {
			if s.Arrive(0, 100).Copies == 0 {
				numbers = append(numbers, i)
			}
		}
		return numbers
	}
	one := lost(1, "a", 0.05, 0)
	if !slices.Equal(one, lost(1, "a", 0.05, time.Millisecond)) {
		t.Error("with jitter, other packets are lost")
	}
	common := func(other []int) (n int) {
		for _, i := range one {
			if slices.Contains(other, i) {
				n++
			}
		}
		return n
	}
	if n := common(lost(1, "a", 0.1, 0)); n != len(one) {
		t.Errorf("at 10 %%, %d of the %d packets that are lost at 5 %% are lost", n, len(one))
	}
	for name, other := range map[string][]int{"seed": lost(2, "a", 0.05, 0),
		"name": lost(1, "b", 0.05, 0)} {
		if n := common(other); n > len(one)/5 { // 5 % of them by chance
			t.Errorf("with another %s, %d of %d packets are the same", name, n, len(one))
		}
	}
}

// Gilbert's channel loses its share, in bursts of its length.
func TestLossInBursts(t *testing.T) {
	const count, burst = 400_000, 4.0
	all, counters := fates(netem.Profile{Loss: 0.1, LossBurst: burst}, 3, count, 0)
	bursts := 0
	for i, f := range all {
		if f.Copies == 0 && (i == 0 || all[i-1].Copies > 0) {
			bursts++
		}
	}
	if share := float64(counters.Lost) / count; math.Abs(share-0.1) > 0.005 {
		t.Errorf("%.4f are lost, want 0.1", share)
	}
	if length := float64(counters.Lost) / float64(bursts); math.Abs(length-burst) > 0.1 {
		t.Errorf("%.3f are lost in a row, want %v", length, burst)
	}
}

func TestDelayAndJitter(t *testing.T) {
	p := netem.Profile{Delay: 10 * time.Millisecond, Jitter: 4 * time.Millisecond}
	const gap = 10 * time.Microsecond
	all, _ := fates(p, 1, 50_000, gap)
	sum, least, most := 0.0, time.Hour, time.Duration(0)
	for i, f := range all {
		d := f.Arrives[0] - time.Duration(i)*gap
		sum += d.Seconds()
		least, most = min(least, d), max(most, d)
	}
	if least < 6*time.Millisecond || most > 14*time.Millisecond ||
		most-least < 7900*time.Microsecond {
		t.Errorf("delays lie between %s and %s, want all of 6 ms to 14 ms", least, most)
	}
	if mean := sum / float64(len(all)); math.Abs(mean-0.010) > 50e-6 {
		t.Errorf("the mean delay is %.6f s, want 0.01", mean)
	}
}

// A line takes each packet's time and bounds its queue, by time or by packets.
func TestRate(t *testing.T) {
	const frame = 121120 * time.Nanosecond // 1,514 bytes at 100 Mbit/s
	for _, c := range []struct {
		name    string
		profile netem.Profile
		passed  int           // of 1,000 frames that come at once
		first   time.Duration // when the first arrives
		last    time.Duration
	}{
		{"wait of 20 ms", netem.Profile{QueueTime: 20 * time.Millisecond}, 166, frame, 166 * frame},
		{"10 packets", netem.Profile{QueuePackets: 10}, 11, frame, 11 * frame},
		{"10 packets and a bucket of 3", netem.Profile{QueuePackets: 10, BurstBytes: 3 * 1514}, 14,
			0, 11 * frame},
		{"default, and a delay", netem.Profile{Delay: time.Millisecond}, 413,
			frame + time.Millisecond, 413*frame + time.Millisecond},
	} {
		c.profile.RateBits = 100_000_000
		s := netem.NewStream(1, "a", c.profile)
		var arrives []time.Duration
		for range 1000 {
			if f := s.Arrive(time.Second, 1514); f.Copies == 1 {
				arrives = append(arrives, f.Arrives[0]-time.Second)
			}
		}
		if len(arrives) != c.passed || arrives[0] != c.first || arrives[len(arrives)-1] != c.last {
			t.Errorf("%s: %d pass, the first after %s, the last after %s; want %d, %s, %s", c.name,
				len(arrives), arrives[0],
				arrives[len(arrives)-1], c.passed, c.first, c.last)
		}
		if dropped := int(s.Counters().Dropped); dropped != 1000-c.passed {
			t.Errorf("%s: %d are dropped, want %d", c.name, dropped, 1000-c.passed)
		}
	}
}

// A stream that is cut and restored goes on as if nothing had been: the draws are those of the
// packets' numbers.
func TestCut(t *testing.T) {
	p := netem.Profile{Loss: 0.5}
	whole, _ := fates(p, 1, 3000, 0)
	s := netem.NewStream(1, "a:eth0", p)
	for i := range whole {
		now := s.Profile()
		now.Cut = i >= 1000 && i < 2000
		s.Set(now)
		want := whole[i].Copies
		if now.Cut {
			want = 0
		}
		if got := s.Arrive(0, 1514).Copies; got != want {
			t.Fatalf("packet %d arrives %d times, want %d", i, got, want)
		}
	}
	if got := s.Counters().Cut; got != 1000 {
		t.Errorf("%d packets were cut, want 1000", got)
	}
}

// Without jitter and reordering nothing overtakes and nothing arrives before its delay, whatever
// changes under way that does not shorten the delay; and a rate is never exceeded over any stretch
// by more than its bucket.
func TestOrderAndRateHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := netem.Profile{
			Delay:      time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "delay")),
			Loss:       rapid.Float64Range(0, 0.5).Draw(t, "loss"),
			RateBits:   rapid.Uint64Range(1e6, 1e9).Draw(t, "rate"),
			BurstBytes: rapid.Uint32Range(0, 20_000).Draw(t, "burst"),
			QueueTime:  time.Second,
		}
		s := netem.NewStream(rapid.Uint64().Draw(t, "seed"), "x", p)
		now, last, bytes, first := time.Duration(0), time.Duration(0), 0, time.Duration(-1)
		for range rapid.IntRange(1, 200).Draw(t, "packets") {
			now += time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "gap"))
			size := rapid.IntRange(60, 1514).Draw(t, "size")
			f := s.Arrive(now, size)
			if f.Copies == 0 {
				continue
			}
			if f.Arrives[0] < last || f.Arrives[0] < now+p.Delay {
				t.Fatalf("a packet of %s arrives at %s, after one at %s, with a delay of %s", now,
					f.Arrives[0], last, p.Delay)
			}
			last = f.Arrives[0]
			if first < 0 {
				first = now + p.Delay
			}
			bytes += size
			if most := float64(p.BurstBytes) + (last-first).Seconds()*float64(p.RateBits)/8 +
				1514; float64(bytes) > most {
				t.Fatalf("%d bytes in %s, more than %.0f", bytes, last-first, most)
			}
		}
	})
}
