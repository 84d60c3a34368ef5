package packet

import (
	"math"
	"math/rand/v2"
	"testing"

	"sextant/sim/queueing"
)

// Waiting times of Poisson arrivals at one link (Pollaczek and Khinchin): the mean wait is
// λE[S²]/(2(1-ρ)).
func TestWaitingTimes(t *testing.T) {
	const rate, mean = 1e9, 1000.0 // bit/s, bytes
	service := mean * 8 / rate
	for _, c := range []struct {
		name   string
		bytes  func(*rand.Rand) float64
		square float64 // E[S²]/E[S]²
	}{
		{"M/D/1", func(*rand.Rand) float64 { return mean }, 1},
		{"M/M/1", func(r *rand.Rand) float64 { return r.ExpFloat64() * mean }, 2},
		// Packets of 100 bytes with probability 0.9, and of 9100.
		{"M/G/1", func(r *rand.Rand) float64 {
			if r.IntN(10) > 0 {
				return 100
			}
			return 9100
		}, (0.9*100*100 + 0.1*9100*9100) / (mean * mean)},
	} {
		for _, load := range []float64{0.3, 0.6, 0.8} {
			var runs []queueing.Replicate
			for seed := range uint64(12) {
				runs = append(runs, waits(t, rate, load*rate/8/mean, c.bytes, seed))
			}
			got, err := queueing.MeanInterval(0.999, runs)
			if err != nil {
				t.Fatal(err)
			}
			want := load / (1 - load) * service * c.square / 2
			if !got.Contains(want) || got.HalfWidth > 0.2*want {
				t.Errorf("%s at load %g: the mean wait is %g ± %g µs, want %g", c.name, load,
					got.Mean*1e6, got.HalfWidth*1e6,
					want*1e6)
			}
		}
	}
}

// waits sends packets at random times over a link, and returns how long they waited before it.
func waits(t *testing.T, rate, perSecond float64, bytes func(*rand.Rand) float64,
	seed uint64) queueing.Replicate {
	n := dumbbell(t, 1, int64(rate), 0, Queue{})
	for i := range n.links {
		if i > 1 {
			n.links[i].perByte = 0 // links of hosts take no time
		}
	}
	s := begin(t, Config{Network: n, Transport: DefaultTransport(), Seed: seed})
	r := rand.New(rand.NewPCG(seed, 3))
	var size float64
	var result queueing.Replicate
	sum, warm := 0.0, Time(Second/20)
	_, err := s.AddSource(Source{Src: 0, Dst: 1, Next: func() (Time, int32) {
		size = math.Round(bytes(r))
		return Time(r.ExpFloat64() / perSecond * float64(Second)), int32(size)
	}, Arrived: func(took Time) {}})
	if err != nil {
		t.Fatal(err)
	}
	served := 0.0
	s.sources[0].Arrived = func(took Time) {
		if s.now > warm {
			sum += took.Seconds()
			result.Count++
		}
	}
	s.observe = func(int32) {}
	s.Run(warm)
	begin := s.sources[0].got
	s.Run(Second)
	served = float64(s.sources[0].got.Bytes-begin.Bytes) * 8 / rate
	result.Mean = (sum - served) / float64(result.Count)
	return result
}
