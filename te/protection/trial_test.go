package protection_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/te/protection"
)

const tick = time.Second // egresses are asked each second

var retry = protection.Retry{First: 8 * tick, Most: 32 * tick, Lasts: 3 * tick, Seed: 1}

// world is an egress and a network: what is sent over lists that work is counted each second.
type world struct {
	t      testing.TB
	n      protection.Network
	s      protection.State
	now    time.Duration
	dead   map[int]bool // slots whose packets get lost
	full   bool         // no link has room
	rate   uint64       // packets per second
	counts [protection.MaxSlots]uint64
	tried  []time.Duration // when trials began
}

func newTrialWorld(t testing.TB) *world {
	n := network(t, ladder...)
	return &world{t: t, n: n, s: begin(t, n, intent(2, 1)), dead: map[int]bool{}, rate: 100}
}

// silence is what the egress tells of a list that carries.
func (w *world) silence(slot int) {
	w.s = w.s.Probed(slot, false)
	w.replan()
}

func (w *world) replan() {
	around := w.s.Avoid()
	plan, err := w.n.Compute(w.s.Intent, protection.Question{Avoid: around})
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = w.s.Adopt(plan, around)
}

// pass lets seconds pass.
func (w *world) pass(seconds int) {
	for range seconds {
		for _, slot := range w.sent() {
			if !w.dead[slot] {
				w.counts[slot] += w.rate
			}
		}
		w.now += tick
		_, before := w.s.Tried()
		w.s = w.s.Counted(w.now, w.counts, retry, func(protection.Path) bool { return !w.full })
		if _, now := w.s.Tried(); now && !before {
			w.tried = append(w.tried, w.now)
		}
		if w.s.Due() {
			w.replan()
		}
	}
}

// sent are the slots along which packets go.
func (w *world) sent() (slots []int) {
	for _, l := range w.s.Policy(protection.Installation{Name: "x",
		Egress: egress}).Paths[0].Lists {
		for i := range protection.MaxSlots {
			if l.Name == protection.ListName(i) {
				slots = append(slots, i)
			}
		}
	}
	slices.Sort(slots)
	return slots
}

// A list that stays silent is tried less and less often, and never instead of one that carries.
func TestTrialsBackOff(t *testing.T) {
	w := newTrialWorld(t)
	w.pass(5)
	w.dead[0] = true
	w.silence(0)
	if got := w.sent(); !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("after silence packets are sent along %v", got)
	}
	for range 200 {
		w.pass(1)
		if got := w.s.Carrying(); len(got) != 2 || slices.Contains(got, 0) {
			t.Fatalf("at %v slots %v carry", w.now, got)
		}
		if _, tried := w.s.Tried(); tried != slices.Equal(w.sent(), []int{0, 1, 2}) {
			t.Fatalf("at %v a trial %v, sent along %v", w.now, tried, w.sent())
		}
	}
	if len(w.tried) < 5 {
		t.Fatalf("tried at %v", w.tried)
	}
	for i, most := range []time.Duration{8, 16, 32, 32,
		32} { // seconds, less up to a quarter; then the look after
		last := 5 * tick
		if i > 0 {
			last = w.tried[i-1] + retry.Lasts
		}
		if wait := w.tried[i] - last; wait > (most+2)*tick || wait < most*tick*3/4 {
			t.Errorf("trial %d came %v after the last one; %ds is the most", i+1, wait, most)
		}
	}
	at, held := w.s.HeldUntil(0)
	if _, tried := w.s.Tried(); !tried && (!held || at < w.now || at > w.now+retry.Most) {
		t.Errorf("at %v the next trial is at %v, %v", w.now, at, held)
	}
}

// A list by which copies come again is believed, and carries as the plan says; if it falls silent
// soon, it is held down for longer.
func TestTrialSucceeds(t *testing.T) {
	w := newTrialWorld(t)
	w.dead[0] = true
	w.silence(0)
	w.pass(20) // one trial in vain
	if len(w.tried) != 1 || w.s.Slots[0].Trials.Vain != 1 {
		t.Fatalf("tried at %v: %+v", w.tried, w.s.Slots[0].Trials)
	}
	delete(w.dead, 0)
	w.pass(10)
	if got := w.sent(); !slices.Equal(got, []int{0, 1}) ||
		w.s.Slots[0].Answer != protection.Answers {
		t.Fatalf("after a trial packets are sent along %v: %+v", got, w.s.Slots[0])
	}
	w.pass(10)
	w.silence(0) // soon
	w.pass(1)
	if got := w.s.Slots[0].Trials.Vain; got != 2 {
		t.Errorf("a list that came back for 10 s has %d trials in vain, want 2", got)
	}
	w.pass(40)
	if got := w.sent(); !slices.Equal(got, []int{0, 1}) {
		t.Fatalf("after the third trial packets are sent along %v", got)
	}
	w.pass(40) // longer than the longest time between two trials
	w.silence(0)
	w.pass(1)
	if got := w.s.Slots[0].Trials.Vain; got != 0 {
		t.Errorf("a list that came back for 40 s has %d trials in vain, want 0", got)
	}
}

// While nothing is sent, nothing is known; while links are full, nothing is tried; and an egress
// that counts anew is no failure.
func TestTrialsWait(t *testing.T) {
	w := newTrialWorld(t)
	w.dead[0] = true
	w.silence(0)
	w.full = true
	w.pass(100)
	if len(w.tried) != 0 {
		t.Fatalf("tried at %v while links were full", w.tried)
	}
	w.full, w.rate = false, 0
	w.pass(100)
	if _, tried := w.s.Tried(); !tried || len(w.tried) != 1 {
		t.Fatalf("without a packet a trial ended: tried at %v", w.tried)
	}
	w.rate = 100
	w.pass(2)
	w.counts = [protection.MaxSlots]uint64{}
	w.pass(3)
	if _, tried := w.s.Tried(); !tried {
		t.Fatal("a trial ended soon after the egress began to count anew")
	}
	w.pass(1)
	if _, tried := w.s.Tried(); tried || w.s.Slots[0].Trials.Vain != 1 {
		t.Fatalf("a trial goes on: %+v", w.s.Slots[0].Trials)
	}
	w.s = w.s.Probed(0, true) // from elsewhere
	w.pass(1)
	if w.s.Slots[0].Trials != (protection.Trials{}) {
		t.Errorf("%+v", w.s.Slots[0].Trials)
	}
}

// Two lists are tried one after the other, and a list that carries for want of others is not tried.
func TestTrialsTakeTurns(t *testing.T) {
	w := newTrialWorld(t)
	w.dead[0], w.dead[1] = true, true
	w.silence(0)
	w.silence(1)
	for range 200 {
		w.pass(1)
		if len(w.sent()) > 2 || !slices.Contains(w.sent(), 2) {
			t.Fatalf("sent along %v", w.sent())
		}
	}
	for slot := range 2 {
		if w.s.Slots[slot].Trials.Vain < 3 {
			t.Errorf("slot %d: %+v", slot, w.s.Slots[slot].Trials)
		}
	}
	w.s = w.s.Probed(2, false)
	w.pass(100)
	if carrying := w.s.Carrying(); len(w.sent()) != len(carrying) {
		t.Errorf("sent along %v, while %v carry", w.sent(), carrying)
	}
}

// Whatever lists live and die: one is tried at a time, which does not carry, and within the longest
// time and a trial each silent list is.
func TestTrialInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newTrialWorld(t)
		silent := [protection.MaxSlots]time.Duration{} // since when without a trial
		for range rapid.IntRange(1, 200).Draw(r, "seconds") {
			if slot := rapid.IntRange(0, 20).Draw(r, "slot"); slot < 3 {
				w.dead[slot] = rapid.Bool().Draw(r, "dead")
			}
			for _, slot := range w.s.Carrying() {
				if w.dead[slot] && w.s.Slots[slot].Answer != protection.Silent &&
					len(w.s.Carrying()) > 1 {
					w.silence(slot)
				}
			}
			w.pass(1)
			tried, is := w.s.Tried()
			if is && slices.Contains(w.s.Carrying(), tried) &&
				len(w.sent()) != len(w.s.Carrying()) {
				r.Fatalf("slot %d carries and is tried: %v", tried, w.sent())
			}
			for slot, l := range w.s.Slots {
				if !l.Used || l.Answer != protection.Silent || slices.Contains(w.s.Carrying(),
					slot) || is {
					silent[slot] = w.now
				}
				if w.now-silent[slot] > retry.Most+2*tick {
					r.Fatalf("at %v slot %d was not tried since %v: %+v", w.now, slot, silent[slot],
						l.Trials)
				}
			}
		}
	})
}
