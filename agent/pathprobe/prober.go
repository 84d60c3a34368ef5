package pathprobe

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux"
)

// Key names a list: a protection, and the slot in it.
type Key struct {
	Name string
	Slot int
}

// Change is news of a list.
type Change struct {
	Key
	Answers bool
	Heard   time.Time // when a probe came back over it for the last time; the zero value: never
	Noticed time.Time // when that was known
}

// List is what is probed.
type List struct {
	Key
	Segments []netip.Addr // in travel order; the last one decapsulates
}

// Options are how a prober is opened.
type Options struct {
	// the head-end's address: the source of probes, and where they come back to; the egress must
	// have a route to it
	Own netip.Addr
	Settings
	Log *slog.Logger
}

// Prober probes lists. Its methods may be called from any goroutine.
type Prober struct {
	options Options
	socket  *socket
	ns      *linux.Netns // in which the interface is
	cookie  uint64
	started time.Time
	changes chan []Change
	done    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	targets map[uint32]*target // by number
	order   []uint32           // the numbers, ascending
	groups  [][]*tracker       // of lists of one name, in this order
	numbers uint32
	refused bool // the last probe could not be sent, which was logged
	renewAt time.Duration
	buffer  [2 * payloadSize]byte
}

// target is a list with its judge.
type target struct {
	List
	outer []byte
	heard time.Time // when a probe came back for the last time
	tracker
}

// Open begins to probe, nothing yet. It works in the calling thread's network namespace.
func Open(o Options) (*Prober, error) {
	p := &Prober{
		options: o, started: time.Now(), changes: make(chan []Change, 64),
		done: make(chan struct{}), targets: map[uint32]*target{},
	}
	var cookie [8]byte
	if _, err := rand.Read(cookie[:]); err != nil {
		return nil, fmt.Errorf("draw a cookie: %w", err)
	}
	p.cookie = binary.BigEndian.Uint64(cookie[:])
	var err error
	if p.ns, err = linux.ThisNetns(); err != nil {
		return nil, err
	}
	if p.socket, err = openSocket(o.Own); err != nil {
		return nil, errors.Join(err, p.ns.Close())
	}
	p.running.Go(p.run)
	return p, nil
}

// Changes yields lists that began to answer, or fell silent. Those that fell silent together come
// together.
func (p *Prober) Changes() <-chan []Change { return p.changes }

// Set makes these the lists that are probed. Those that stay with the same segments are judged on.
func (p *Prober) Set(lists []List) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted, names, groups := map[uint32]*target{}, []string{}, map[string][]*tracker{}
	for _, l := range lists {
		number, t := p.find(l.Key)
		if t == nil || !slices.Equal(t.Segments, l.Segments) {
			outer, err := headers(p.options.Own, l.Segments)
			if err != nil {
				return fmt.Errorf("probe %s, list %d: %w", l.Name, l.Slot, err)
			}
			p.numbers++
			number, t = p.numbers, &target{List: l, outer: outer,
				tracker: tracker{settings: p.options.Settings}}
		}
		wanted[number] = t
		if groups[l.Name] == nil {
			names = append(names, l.Name)
		}
		groups[l.Name] = append(groups[l.Name], &t.tracker)
	}
	p.targets, p.order, p.groups = wanted, slices.Sorted(maps.Keys(wanted)), nil
	for _, name := range names {
		p.groups = append(p.groups, groups[name])
	}
	return nil
}

func (p *Prober) find(key Key) (uint32, *target) {
	for number, t := range p.targets {
		if t.Key == key {
			return number, t
		}
	}
	return 0, nil
}

// Stats returns what is known of a list; false if it is not probed.
func (p *Prober) Stats(key Key) (Stats, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, t := p.find(key); t != nil {
		return t.stats(), true
	}
	return Stats{}, false
}

// Close ends all probing.
func (p *Prober) Close() error {
	close(p.done)
	if err := p.socket.interrupt(); err != nil {
		return fmt.Errorf("end probing: %w", err)
	}
	p.running.Wait()
	return errors.Join(p.socket.close(), p.ns.Close())
}

// leastNice is the best that a thread can ask for without real-time priority, under which the Go
// runtime could stand still.
const leastNice = -20

// run sends and judges by the clock: what is late is not made up for, and moves nothing that
// follows. What has come is read before anything is judged, so that a thread that had to wait for a
// processor does not take for lost what waits for it.
func (p *Prober) run() {
	// Never unlocked: the thread, with its priority, ends with the goroutine. What is refused costs
	// time on a busy machine only.
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), leastNice)
	half := p.options.Interval / 2
	due := p.now()
	for turn := 0; ; {
		if err := p.socket.wait(due - p.now()); err != nil {
			p.options.Log.Error("paths are not probed any more", "error", err)
			return
		}
		select {
		case <-p.done:
			return
		default:
		}
		p.tell(p.read())
		now := p.now()
		if now < due {
			continue
		}
		p.tell(p.judge(now))
		p.round(turn%2 == 0)
		turn++
		if due += half; due < now {
			due = now + half
		}
	}
}

func (p *Prober) now() time.Duration { return time.Since(p.started) }

// round sends a probe over each list; between two intervals, only if one is missing.
func (p *Prober) round(regular bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if !regular && !slices.ContainsFunc(p.order,
		func(number uint32) bool { return p.targets[number].doubted(now) }) {
		return
	}
	for _, number := range p.order {
		t := p.targets[number]
		err := p.socket.send(packet(t.outer, p.options.Own, payload{cookie: p.cookie, list: number,
			number: t.sent(now, regular)}))
		if err != nil && !p.refused {
			p.options.Log.Warn("probes can't be sent", "list", t.Key, "error", err)
		}
		p.refused = err != nil
		if lacksInterface(err) {
			p.renew(now)
			return
		}
	}
}

// renewInterval is how often is tried to make the interface anew.
const renewInterval = time.Second

// renew makes the interface anew, which was removed or taken down: no probe would ever come back.
func (p *Prober) renew(now time.Duration) {
	if now < p.renewAt {
		return
	}
	p.renewAt = now + renewInterval
	if err := p.ns.Do(p.socket.renew); err != nil {
		p.options.Log.Warn("the interface of probes is gone or down, and can't be made anew; "+
			"tried again soon", "error", err)
		return
	}
	p.options.Log.Warn("the interface of probes was gone or down; it is made anew", "interface",
		interfaceName)
}

// judge lists who fell silent.
func (p *Prober) judge(now time.Duration) (changes []Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fallen := map[*tracker]bool{}
	for _, group := range p.groups {
		for _, t := range silenced(group, now) {
			fallen[t] = true
		}
	}
	if len(fallen) == 0 {
		return nil
	}
	for _, number := range p.order {
		if t := p.targets[number]; fallen[&t.tracker] {
			changes = append(changes, Change{t.Key, false, t.heard, time.Now()})
		}
	}
	return changes
}

// read takes in all that has come back, and lists who answers now.
func (p *Prober) read() (changes []Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		n, came := p.socket.receive(p.buffer[:])
		if !came {
			return changes
		}
		mark, ok := parsePayload(p.buffer[:n])
		t, known := p.targets[mark.list]
		if !ok || mark.cookie != p.cookie || !known {
			continue
		}
		t.heard = time.Now()
		if t.came(mark.number, p.now()) {
			changes = append(changes, Change{t.Key, true, t.heard, t.heard})
		}
	}
}

func (p *Prober) tell(c []Change) {
	if len(c) == 0 {
		return
	}
	select {
	case p.changes <- c:
	case <-p.done:
	}
}
