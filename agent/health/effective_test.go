package health_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/agent/health"
	"sextant/lb/pool"
)

// members reads words like "up+" and "draining-": the operator's state, and whether the backend is
// usable.
func members(text string) []health.Member {
	var list []health.Member
	for i, word := range strings.Fields(text) {
		state, err := pool.ParseState(word[:len(word)-1])
		if err != nil {
			panic(err)
		}
		list = append(list, health.Member{
			Backend: pool.Backend{ID: uint16(i + 1), Weight: uint32(i + 1), State: state},
			Usable:  word[len(word)-1] == '+',
		})
	}
	return list
}

func states(e health.Effect) string {
	var words []string
	for _, b := range e.Backends {
		words = append(words, b.State.String())
	}
	if e.Panic {
		words = append(words, "panic")
	}
	return strings.Join(words, " ")
}

func TestApply(t *testing.T) {
	for _, c := range []struct{ members, want string }{
		{"up+ up+ up+", "up up up"},
		{"up+ up- up+", "up down up"},
		{"up+ up-", "up down"},            // exactly half is not less than half
		{"up+ up- up-", "up up up panic"}, // a third is
		{"up- up-", "up up panic"},        //
		{"up-", "up panic"},               // alone, it stays
		// the operator's word stands
		{"up+ draining- maintenance- down-", "up draining maintenance down"},
		// and checks don't bring anybody back
		{"up+ down+ maintenance+ draining+", "up down maintenance draining"},
		// who is not wanted does not count
		{"up- down+ draining+", "up down draining panic"},
		// nobody is wanted: no panic
		{"down- draining-", "down draining"},
		{"", ""},
	} {
		e := health.Usage{PanicPermille: 500, Kills: true}.Apply(members(c.members),
			health.Effect{}, 0)
		if got := states(e); got != c.want || e.Waits {
			t.Errorf("%s: %s, waits %v; want %s", c.members, got, e.Waits, c.want)
		}
	}
	if e := (health.Usage{Kills: true}).Apply(members("up- up-"), health.Effect{},
		0); states(e) != "down down" {
		t.Errorf("without a panic threshold: %s", states(e))
	}
}

// A timeline: at each time the members, and the weights that follow.
func TestSlowStart(t *testing.T) {
	usage := health.Usage{PanicPermille: 500, SlowStart: 15 * time.Second}
	var effect health.Effect
	for _, step := range []struct {
		second  int
		members string
		weights string
		next    int // second of the next step; -1: none
	}{
		{0, "up+ up+ up+", "16 32 48", -1},        // who is there at first has its whole weight
		{10, "up+ up- up+", "16 32 48", -1},       // down: its weight does not matter
		{20, "up+ up+ up+", "16 2 48", 21},        // back with a sixteenth
		{21, "up+ up+ up+", "16 4 48", 22},        //
		{30, "up+ up+ up+", "16 22 48", 31},       // two thirds of the time
		{31, "up+ up+ draining+", "16 24 48", 32}, //
		{32, "up+ up+ up+", "16 26 3", 33},        // one more comes up meanwhile
		{35, "up+ up+ up+", "16 32 12", 36},       // the first has its whole weight
		{47, "up+ up+ up+", "16 32 48", -1},       //
		{50, "up+ up- up-", "16 32 48", -1},       // panic
		{60, "up+ up+ up-", "16 32 48", -1},       // it was in use all the time
		{70, "up+ up+ up+", "16 32 3", 71},        //
	} {
		effect = usage.Apply(members(step.members), effect, time.Duration(step.second)*time.Second)
		var weights []string
		for _, b := range effect.Backends {
			weights = append(weights, fmt.Sprint(b.Weight))
		}
		next := -1
		if effect.Waits {
			next = int(effect.Next / time.Second)
		}
		if got := strings.Join(weights, " "); got != step.weights || next != step.next {
			t.Errorf("second %d, %s: weights %s, next step %d; want %s, %d", step.second,
				step.members, got, next, step.weights, step.next)
		}
	}
}

// growSteps is how many steps a weight takes to grow.
const growSteps = 16

func drawMembers(t *rapid.T, n int) []health.Member {
	list := make([]health.Member, n)
	for i := range list {
		list[i] = health.Member{
			Backend: pool.Backend{ID: uint16(i + 1), Weight: uint32(i),
				State: pool.State(rapid.IntRange(0, 3).Draw(t, "state"))},
			Usable: rapid.Bool().Draw(t, "usable"),
			Wavers: rapid.Bool().Draw(t, "wavers"),
		}
	}
	return list
}

// Whatever happens: operators win, weights stay in their bounds and only grow while a backend is
// up, and between a decision and the next step that it names nothing changes.
func TestApplyInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usage := health.Usage{
			PanicPermille: rapid.IntRange(0, 1000).Draw(t, "panic"),
			Kills:         rapid.Bool().Draw(t, "kills"),
			Round:         time.Duration(rapid.IntRange(0, 10).Draw(t, "round")) * time.Second,
			Settle:        time.Duration(rapid.IntRange(0, 10).Draw(t, "settle")) * time.Second,
			SlowStart: time.Duration(rapid.IntRange(0, 100).Draw(t,
				"slow start")) * time.Second / 7,
		}
		n := rapid.IntRange(0, 5).Draw(t, "members")
		now := time.Duration(0)
		var before health.Effect
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			list := drawMembers(t, n)
			e := usage.Apply(list, before, now)
			scale := uint32(1)
			if usage.SlowStart > 0 {
				scale = growSteps
			}
			for i, m := range list {
				b := e.Backends[i]
				out := m.State == pool.Up && !m.Usable && !e.Panic
				given := b.State == pool.Down && usage.Kills
				switch {
				case b.ID != m.ID || b.State != m.State && !out || out &&
					b.State != pool.Draining && !given:
					fallthrough
				case b.Suspect != (!m.Usable && m.State != pool.Down):
					t.Fatalf("member %+v became %+v, panic %v", m, b, e.Panic)
				case b.Weight < m.Weight || b.Weight > m.Weight*scale:
					t.Fatalf("weight %d became %d, scale %d", m.Weight, b.Weight, scale)
				case before.Backends != nil && before.Backends[i].State == pool.Up &&
					b.State == pool.Up && b.Weight < before.Backends[i].Weight:
					t.Fatalf("weight %d went down to %d", before.Backends[i].Weight, b.Weight)
				}
			}
			if e.Waits {
				if e.Next <= now {
					t.Fatalf("at %v the next step is at %v", now, e.Next)
				}
				if just := usage.Apply(list, e, e.Next-1); !equal(just, e) {
					t.Fatalf("before %v: %+v became %+v", e.Next, e.Backends, just.Backends)
				}
				if then := usage.Apply(list, e, e.Next); weighty(list) && equal(then, e) {
					t.Fatalf("nothing changed at %v: %+v", e.Next, e.Backends)
				}
			}
			before, now = e, now+time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds"))*time.Second
		}
	})
}

func equal(a, b health.Effect) bool {
	return fmt.Sprint(a.Backends) == fmt.Sprint(b.Backends)
}

// weighty says that no member's weight is 0, which no step changes.
func weighty(list []health.Member) bool {
	for _, m := range list {
		if m.Weight == 0 {
			return false
		}
	}
	return true
}

func TestWait(t *testing.T) {
	seen := map[time.Duration]bool{}
	for n := range 1000 {
		wait := health.Wait(2*time.Second, 100, 7, n)
		if wait < 1800*time.Millisecond || wait > 2200*time.Millisecond {
			t.Fatalf("wait %d is %v", n, wait)
		}
		if wait != health.Wait(2*time.Second, 100, 7, n) {
			t.Fatal("the same seed made another wait")
		}
		seen[wait] = true
	}
	if len(seen) < 900 {
		t.Errorf("%d different waits of 1000", len(seen))
	}
	if wait := health.Wait(2*time.Second, 0, 7, 3); wait != 2*time.Second {
		t.Errorf("without jitter: %v", wait)
	}
	if wait := health.Wait(time.Second, 1000, 7, -1); wait < 0 || wait > time.Second {
		t.Errorf("the start waits %v", wait)
	}
	if wait := health.Wait(time.Second, 0, 7, -1); wait != 0 {
		t.Errorf("the start without jitter waits %v", wait)
	}
}

// Who was down, or is new, is draining for a while before it is up; not so those who were draining,
// and nobody if nobody else is up.
func TestReturnHold(t *testing.T) {
	usage := health.Usage{PanicPermille: 300, Kills: true, ReturnHold: 5 * time.Second}
	var effect health.Effect
	for _, step := range []struct {
		second  int
		members string
		states  string
		next    int // second at which a hold ends; -1: nobody waits
	}{
		// at first nobody is held
		{0, "up+ up+ up-", "up up down", -1},
		{10, "up+ up- up+", "up down draining", 15},                        // back: held
		{12, "up+ up+ up+", "up draining draining", 17},                    // both together
		{13, "up+ up+ up-", "up draining down", 17},                        // down again
		{14, "up+ up+ up+ up+", "up draining draining draining", 19},       // the fourth is new
		{16, "up+ draining+ up+ up+", "up draining draining draining", 19}, // the operator's word
		// the second is up with those that came within its hold
		{17, "up+ up+ up+ up+", "up draining draining draining", 19},
		{18, "draining+ draining+ up+ up+", "draining draining up up", -1}, // nobody else is up
		// draining is no reason to be held
		{19, "up+ up+ down+ down+", "up up down down", -1},
		{20, "up- up- up- up-", "up up up up panic", -1}, // a panic uses all
		// and holds nobody after
		{21, "up+ up+ up+ up+", "up up up up", -1},
		{22, "up+ down+ maintenance+ up+", "up down maintenance up", -1}, //
		// from down by way of maintenance: no short cut
		{23, "up+ maintenance+ up+ up+", "up maintenance up up", 28},
		{24, "up+ up+ up+ up+", "up draining up up", 28}, //
		{28, "up+ up+ up+ up+", "up up up up", -1},       //
	} {
		effect = usage.Apply(members(step.members), effect, time.Duration(step.second)*time.Second)
		next := -1
		if effect.Waits {
			next = int(effect.Next / time.Second)
		}
		if got := states(effect); got != step.states || next != step.next {
			t.Errorf("second %d, %s: %s until %d, want %s until %d", step.second, step.members, got,
				next, step.states, step.next)
		}
	}
}

// A process that follows knows who was away: they are held when they are back, and nobody else is.
func TestReturnHoldOutlivesTheProcess(t *testing.T) {
	usage := health.Usage{Kills: true, ReturnHold: 5 * time.Second, SlowStart: time.Minute}
	effect := usage.Apply(members("up+ up+ up-"), health.Effect{}, 0)
	effect = usage.Apply(members("up+ up- up+"), effect, time.Second)
	var backends []pool.Backend
	for _, m := range members("up+ up+ up+") {
		backends = append(backends, m.Backend)
	}
	earlier := health.Earlier(backends, func(i int) bool { return effect.Away(effect.Backends[i]) })
	after := usage.Apply(members("up+ up+ up+"), earlier, 0)
	if got := states(after); got != "up draining draining" || after.Backends[0].Weight != 16 {
		t.Errorf("%s, the first with weight %d of 16", got, after.Backends[0].Weight)
	}
}

// A panic does not end where it would begin again at the next look, as a backend whose latest check
// failed is the only one left.
func TestPanicEndsOnce(t *testing.T) {
	usage := health.Usage{PanicPermille: 500, Round: time.Second, Settle: time.Second}
	members := make([]health.Member, 2)
	for i := range members {
		members[i].Backend = pool.Backend{ID: uint16(i + 1), Weight: 1, State: pool.Up}
	}
	e := usage.Apply(members, health.Effect{}, 0)
	if !e.Panic {
		t.Fatal("no panic where all fail")
	}
	members[0].Usable, members[0].Wavers = true, true
	for now := time.Second; now < 5*time.Second; now += time.Second / 4 {
		e = usage.Apply(members, e, now)
		if again := usage.Apply(members, e, now); again.Panic != e.Panic || !equal(again, e) {
			t.Fatalf("at %v: panic %t, then %t", now, e.Panic, again.Panic)
		}
	}
	members[0].Wavers = false
	if e = usage.Apply(members, e, 6*time.Second); e.Panic {
		t.Error("the panic goes on although half of the backends are up")
	}
}
