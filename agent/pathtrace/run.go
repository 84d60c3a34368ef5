package pathtrace

import (
	"net/netip"
	"slices"
	"time"

	"sextant/packet/lists"
)

// Wire sends probes and receives answers.
type Wire interface {
	// Send sends an IP packet.
	Send(octets []byte) error
	// Receive returns what comes next within this time; false if nothing does.
	Receive(within time.Duration) (from netip.Addr, protocol uint8, octets []byte, came bool,
		err error)
	// Now is the time.
	Now() time.Time
}

// Options bound a trace.
type Options struct {
	Probes  int           // for each path, end to end
	Routers int           // that a path has at most
	Wait    time.Duration // for answers, the round trip at most
	// between probes for the same router: Linux answers one a second, after a burst of about two
	Pace time.Duration
}

// Path is what probes met on one path.
type Path struct {
	Choices []int        // index of the next hop at each router
	Hops    []netip.Addr // of the routers in order, then the destination; invalid: no answer came
	Count                // end to end
}

// Result is what a trace found.
type Result struct {
	Paths []Path
	Lossy []int // of the paths
	// the place in Hops of the router or destination behind the link that loses on these paths, or
	// -1
	Onset int
}

// tracer is a trace in progress.
type tracer struct {
	Plan
	Options
	wire    Wire
	base    uint32
	sent    []probe // by number from base
	variant uint64
}

type probe struct {
	answer Answer
	came   bool
}

// Run traces all paths of a plan.
func Run(wire Wire, plan Plan, o Options) (result Result, err error) {
	paths, err := plan.Paths()
	if err != nil {
		return result, err
	}
	t := &tracer{Plan: plan, Options: o, wire: wire, base: uint32(plan.Seed >> 32),
		variant: plan.Seed}
	for _, path := range paths {
		result.Paths = append(result.Paths, Path{Choices: path})
	}
	if err := t.discover(result.Paths); err != nil {
		return result, err
	}
	if err := t.count(result.Paths); err != nil {
		return result, err
	}
	counts := lists.Map(result.Paths, func(path Path) Count { return path.Count })
	result.Lossy, result.Onset = Lossy(counts), -1
	if len(result.Lossy) == 0 {
		return result, nil
	}
	result.Onset, err = t.locate(result)
	return result, err
}

// send sends a probe, and returns its number.
func (t *tracer) send(path []int, hopLimit int) (number int, err error) {
	t.variant++
	packet, err := t.Packet(path, uint8(hopLimit), t.variant)
	if err != nil {
		return 0, err
	}
	t.sent = append(t.sent, probe{})
	number = len(t.sent) - 1
	return number, t.wire.Send(octets(packet, t.base+uint32(number)))
}

// collect reads answers until the time is over, or all these probes have theirs.
func (t *tracer) collect(within time.Duration, numbers []int) error {
	return t.collectUntil(t.wire.Now().Add(within), func() bool {
		return !slices.ContainsFunc(numbers, func(n int) bool { return !t.sent[n].came })
	})
}

// collectUntil reads answers until a time, or until enough have come.
func (t *tracer) collectUntil(end time.Time, enough func() bool) error {
	for enough == nil || !enough() {
		left := end.Sub(t.wire.Now())
		if left <= 0 {
			return nil
		}
		from, protocol, octets, came, err := t.wire.Receive(left)
		if err != nil || !came {
			return err
		}
		if a, ok := t.read(from, protocol, octets); ok {
			if number := int(a.Number - t.base); number < len(t.sent) {
				t.sent[number] = probe{a, true}
			}
		}
	}
	return nil
}

const (
	tries     = 5 // for each router
	silentMax = 3 // routers in a row that do not answer, after which there is nothing behind
)

// discover finds the routers of the paths.
func (t *tracer) discover(paths []Path) error {
	silent, arrived := 0, make([]bool, len(paths))
	for hopLimit := 1; hopLimit <= t.Routers && silent < silentMax; hopLimit++ {
		heard := false
		found := make([]netip.Addr, len(paths))
		for try := range tries {
			var of, numbers []int
			for i, path := range paths {
				if arrived[i] || found[i].IsValid() || t.asksForOther(paths, i, hopLimit) {
					continue
				}
				number, err := t.send(path.Choices, hopLimit)
				if err != nil {
					return err
				}
				of, numbers = append(of, i), append(numbers, number)
			}
			if len(numbers) == 0 || try > 1 && !heard {
				break
			}
			wait := t.Wait
			if try > 0 {
				wait = max(wait, t.Pace)
			}
			if err := t.collect(wait, numbers); err != nil {
				return err
			}
			for i, number := range numbers {
				p := t.sent[number]
				if !p.came {
					continue
				}
				heard = true
				for j := range paths {
					if t.sameRouter(paths[of[i]], paths[j], hopLimit) {
						found[j] = p.answer.From
					}
				}
			}
		}
		for i := range paths {
			if !arrived[i] {
				paths[i].Hops = append(paths[i].Hops, found[i])
				arrived[i] = found[i] == t.Dst
			}
		}
		if silent++; heard {
			silent = 0
		}
		if !slices.Contains(arrived, false) {
			break
		}
	}
	for i := range paths { // what is behind the last answer is not known
		hops := paths[i].Hops
		for len(hops) > 0 && !hops[len(hops)-1].IsValid() {
			hops = hops[:len(hops)-1]
		}
		paths[i].Hops = hops
	}
	return nil
}

// sameRouter says that two paths make the same choices up to the router that answers at this hop
// limit.
func (t *tracer) sameRouter(a, b Path, hopLimit int) bool {
	made := min(hopLimit-1, len(t.Choices))
	return slices.Equal(a.Choices[:made], b.Choices[:made])
}

// asksForOther says that an earlier path leads to the same router, and is the one that is asked.
func (t *tracer) asksForOther(paths []Path, i, hopLimit int) bool {
	return slices.ContainsFunc(paths[:i],
		func(o Path) bool { return t.sameRouter(o, paths[i], hopLimit) })
}

const hopLimitOfHosts = 64

// count sends probes along all paths in turn to the destination.
func (t *tracer) count(paths []Path) error {
	numbers := make([][]int, len(paths))
	for range t.Probes {
		var round []int
		for i, path := range paths {
			number, err := t.send(path.Choices, hopLimitOfHosts)
			if err != nil {
				return err
			}
			numbers[i], round = append(numbers[i], number), append(round, number)
		}
		if err := t.collect(t.Wait/25, round); err != nil {
			return err
		}
	}
	if err := t.collect(t.Wait, slices.Concat(numbers...)); err != nil {
		return err
	}
	for i := range paths {
		paths[i].Count = t.counted(numbers[i], true)
	}
	return nil
}

// counted counts the answers to probes; to those that are to arrive, of the destination alone.
func (t *tracer) counted(numbers []int, arrive bool) (c Count) {
	for _, number := range numbers {
		c.Sent++
		if p := t.sent[number]; p.came && (p.answer.Arrived || !arrive) {
			c.Answered++
		}
	}
	return c
}

// How many probes each router of lossy paths has to answer.
const (
	onsetLeast = 8
	onsetMost  = 30
)

// locate sends probes that routers of the lossy paths answer, until it is seen from which on they
// get lost.
func (t *tracer) locate(r Result) (int, error) {
	length := 0
	for _, path := range r.Paths {
		length = max(length, len(path.Hops))
	}
	numbers, hops := make([][]int, length), make([]Count, length)
	for round := 1; ; round++ {
		path := r.Paths[r.Lossy[round%len(r.Lossy)]]
		end := t.wire.Now().Add(max(t.Pace, t.Wait))
		for i := range length {
			number, err := t.send(path.Choices, i+1)
			if err != nil {
				return -1, err
			}
			numbers[i] = append(numbers[i], number)
		}
		if err := t.collectUntil(end, nil); err != nil {
			return -1, err
		}
		for i := range hops {
			hops[i] = t.counted(numbers[i], false)
			t.learn(r.Paths, path, i, numbers[i][round-1])
		}
		if at, sure := Onset(hops); round == onsetMost || round >= onsetLeast && sure {
			return at, nil
		}
	}
}

// learn names a router whose answers were all lost until this one.
func (t *tracer) learn(paths []Path, path Path, hop, number int) {
	p := t.sent[number]
	if !p.came {
		return
	}
	for _, o := range paths {
		if hop < len(o.Hops) && !o.Hops[hop].IsValid() && t.sameRouter(path, o, hop+1) {
			o.Hops[hop] = p.answer.From
		}
	}
}

// Ask asks a router for its next hops 0 and 1, by a selector each: the one that receives what
// leaves the wire.
func Ask(wire Wire, plan Plan, wait time.Duration) (Asked, error) {
	t := &tracer{Plan: plan, wire: wire, base: uint32(plan.Seed >> 32), variant: plan.Seed}
	asked, numbers := Asked{}, make([]int, 2)
	for index := range numbers {
		var err error
		if numbers[index], err = t.send([]int{index}, 2); err != nil {
			return nil, err
		}
	}
	if err := t.collect(wait, numbers); err != nil {
		return nil, err
	}
	for index, number := range numbers {
		if p := t.sent[number]; p.came {
			asked[index] = append(asked[index], p.answer.From)
		}
	}
	return asked, nil
}
