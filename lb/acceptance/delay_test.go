package acceptance_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/lb/acceptance"
)

var delay = acceptance.Policy{Kind: acceptance.Delay, Cores: 2}

const tick = 1024 * time.Nanosecond

// server is a machine that works on connections one after another or side by side, for the tests.
type server struct {
	policy acceptance.Policy
	state  acceptance.State
	now    time.Duration
	busy   uint32
}

func (s *server) moves(change int) {
	s.state = s.policy.Moved(s.state, s.busy, change < 0, s.now)
	s.busy = uint32(int(s.busy) + change)
}

func (s *server) offer(left uint32, told acceptance.Note) acceptance.Answer {
	answer, next := s.policy.Decide(s.state, acceptance.Offer{Busy: s.busy, Left: left, Told: told,
		Now: s.now})
	s.state = next
	return answer
}

// works lets so many connections begin one after the other, each when the one before has ended.
func (s *server) works(count int, each time.Duration) {
	for range count {
		s.moves(1)
		s.now += each
		s.moves(-1)
	}
}

// TestPace replays connections that begin and end at random in floating-point numbers, by the
// definition: sums of what was done, each part less by 1/(1 + t/T) for each time between two
// changes that passed since.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.Uint32Range(0, 64).Draw(t, "cores")
		s := server{policy: acceptance.Policy{Kind: acceptance.Delay, Cores: cores},
			now: time.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "begin")) / tick * tick}
		s.state.Pace.At = uint64(s.now / tick)
		const half = 1 << 22
		work, done := 0.0, 0.0
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			bits := rapid.IntRange(0, 30).Draw(t, "bits")
			ticks := rapid.Int64Range(0, 1<<bits).Draw(t, "ticks")
			s.now += time.Duration(ticks) * tick
			passed := float64(min(ticks, 1<<28))
			work += passed * float64(min(s.busy, max(cores, 1)))
			work, done = work/(1+passed/half), done/(1+passed/half)
			if s.busy > 0 && rapid.Bool().Draw(t, "ends") {
				s.moves(-1)
				done++
			} else {
				s.moves(1)
			}
		}
		p := s.state.Pace
		if p.At != uint64(s.now/tick) {
			t.Fatalf("known up to tick %d, the time is %d", p.At, s.now/tick)
		}
		// each change rounds down once
		if got := float64(p.Work); got > work+1 || got < work*(1-1e-9)-61 {
			t.Fatalf("%g ticks of work, want %g", got, work)
		}
		if got := float64(p.Done) / 65536; got > done+1e-9 || got < done-61.0/65536 {
			t.Fatalf("%g connections, want %g", got, done)
		}
	})
}

// Of two servers that hear of each other, one that is four times as fast takes more than twice as
// many connections before it refuses one.
func TestDelayKnowsItsPace(t *testing.T) {
	fast, slow := server{policy: delay}, server{policy: delay}
	fast.works(2000, 10*time.Millisecond)
	slow.works(500, 40*time.Millisecond)
	random := rand.New(rand.NewPCG(1, 1))
	servers := []*server{&fast, &slow}
	for range 4000 { // they hear of each other
		first := random.IntN(2)
		a, b := servers[first], servers[1-first]
		a.busy, b.busy = uint32(random.IntN(4)), uint32(random.IntN(4))
		if answer := a.offer(1, 0); !answer.Accept {
			b.offer(0, answer.Tell)
		}
	}
	most := func(s *server) (busy uint32) {
		for s.busy = 0; s.offer(1, 0).Accept && s.busy < 100; s.busy++ {
		}
		return s.busy
	}
	if a, b := most(&fast), most(&slow); a < 2*b+1 || b == 0 {
		t.Errorf("the fast server takes up to %d connections, the slow one %d", a, b)
	}
	fast.busy, slow.busy = 0, 0
	own, _ := fast.policy.Loads(fast.state, 0)
	other, mean := slow.policy.Loads(slow.state, 0)
	if math.Abs(own-0.011) > 0.002 || math.Abs(other-0.045) > 0.012 || mean < own || mean > 0.2 {
		t.Errorf("idle, a connection takes %g s and %g s, in the mean %g s", own, other, mean)
	}
}

// A server that nobody has asked for long forgets how slow it was, and goes by what is usual.
func TestPaceFades(t *testing.T) {
	s := server{policy: delay}
	s.works(100, time.Second)
	s.state.Usual = acceptance.Level(10 * time.Millisecond / tick)
	s.offer(1, 0)
	slow, _ := s.policy.Loads(s.state, 0)
	s.now += time.Hour
	s.state.Usual = acceptance.Level(10 * time.Millisecond / tick)
	s.offer(1, 0)
	forgotten, _ := s.policy.Loads(s.state, 0)
	if slow < 0.05 || forgotten > 0.05 {
		t.Errorf("%g s after connections of a second, %g s an hour later", slow, forgotten)
	}
}

// A server that knows nothing takes connections while it has cores for them, and says nothing.
func TestDelayBegins(t *testing.T) {
	for busy, want := range map[uint32]bool{0: true, 1: true, 2: false, 99: false} {
		s := server{policy: delay, busy: busy}
		if answer := s.offer(1, 0); answer.Accept != want || answer.Tell != 0 {
			t.Errorf("%d busy: %+v", busy, answer)
		}
		if answer := s.offer(0, 0); !answer.Accept {
			t.Errorf("%d busy: the last candidate refuses", busy)
		}
	}
}

// TestDelayGrows holds how a delay grows to its definition in floating-point numbers, and the
// threshold that is shown to where the answer changes.
func TestDelayGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.Uint32Range(1, 256).Draw(t, "cores")
		p := acceptance.Policy{Kind: acceptance.Delay, Cores: cores}
		usual := rapid.Uint32Range(1, 1<<24).Draw(t, "usual")
		s := acceptance.State{Usual: acceptance.Level(usual)}
		busy := rapid.Uint32Range(0, 4*cores).Draw(t, "busy")
		got, _ := p.Loads(s, busy)
		n, c := float64(busy), float64(cores)
		power := math.Round(math.Sqrt(c))
		longer := math.Min(math.Pow(math.Max(1, (n+1)/c), power)+(n+0.5)/c/4, 1<<16)
		want := math.Min(float64(usual)*longer, math.MaxUint32) * tick.Seconds()
		// share and products are cut off to 1/1024, once for each power, the level to a tick
		if got > want*(1+1e-9) || got < want*(1-0.002*power)-tick.Seconds() {
			t.Fatalf("%d of %d busy: %g s, want %g s", busy, cores, got, want)
		}
		s.Levels[0] = acceptance.Level(rapid.Uint32Range(1, 1<<28).Draw(t, "mean"))
		threshold := p.ThresholdIn(s)
		above := func(busy uint32) bool { own, mean := p.Loads(s, busy); return own > mean }
		if threshold < 1<<15 && !above(threshold) || threshold > 0 && above(threshold-1) {
			t.Fatalf("threshold %d, where the mean is %d ticks", threshold, s.Levels[0])
		}
	})
}

// TestDelayListens: a refused connection tells the delay of hosts and what is usual in turn, each
// good to 1/64, and who hears it moves halfway there.
func TestDelayListens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usual := acceptance.Level(rapid.Uint32Range(1, 1<<20).Draw(t, "usual"))
		level := acceptance.Level(rapid.Uint32Range(1, 1<<20).Draw(t, "level"))
		teller := server{policy: delay, busy: 1 << 15}
		teller.state.Usual = usual
		for i := range teller.state.Levels {
			teller.state.Levels[i] = level
		}
		kinds := map[bool]int{}
		for range 4 {
			before := teller.state
			answer := teller.offer(1, 0)
			if answer.Accept { // the mean is that of more connections than are counted
				return
			}
			told := teller.state
			hears := server{policy: delay}
			hears.offer(0, answer.Tell)
			ofUsual := hears.state.Usual != 0
			kinds[ofUsual]++
			got, want := hears.state.Levels[0], told.Levels[0]
			if ofUsual { // it has moved towards itself, and so did not
				got, want = hears.state.Usual, told.Usual
			}
			if got > want || float64(got) < float64(want)*63/64-1 {
				t.Fatalf("told of %d (usual: %v), heard %d; before %+v", want, ofUsual, got, before)
			}
		}
		if kinds[true] != 2 || kinds[false] != 2 {
			t.Fatalf("told of what is usual %d times, of delays %d times", kinds[true],
				kinds[false])
		}
	})
}

// Only Delay learns from connections that begin and end.
func TestOthersDoNotMove(t *testing.T) {
	for _, kind := range []acceptance.Kind{acceptance.Always, acceptance.Static, acceptance.Dynamic,
		acceptance.Average} {
		p := acceptance.Policy{Kind: kind, Cores: 2}
		if s := p.Moved(p.Initial(), 1, true, time.Hour); s != p.Initial() {
			t.Errorf("%v: %+v", kind, s)
		}
	}
}
