package probe

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
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
}

// List is what is probed.
type List struct {
	Key
	Segments []netip.Addr // in travel order; the last one decapsulates
}

// Options are how a prober is opened.
type Options struct {
	Own netip.Addr // the head-end's address: the source of probes, and where they come back to; the egress must have a route to it
	Settings
	Log *slog.Logger
}

// Prober probes lists. Its methods may be called from any goroutine.
type Prober struct {
	options Options
	socket  *socket
	cookie  uint64
	started time.Time
	changes chan []Change
	done    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	targets map[uint32]*target // by number
	numbers uint32
	refused bool // the last probe could not be sent, which was logged
}

// target is a list with its judge.
type target struct {
	List
	outer []byte
	tracker
}

// Open begins to probe, nothing yet. It works in the calling thread's network namespace.
func Open(o Options) (*Prober, error) {
	p := &Prober{
		options: o, started: time.Now(), changes: make(chan []Change, 64), done: make(chan struct{}), targets: map[uint32]*target{},
	}
	var cookie [8]byte
	if _, err := rand.Read(cookie[:]); err != nil {
		return nil, fmt.Errorf("draw a cookie: %w", err)
	}
	p.cookie = binary.BigEndian.Uint64(cookie[:])
	var err error
	if p.socket, err = openSocket(o.Own); err != nil {
		return nil, err
	}
	p.running.Add(2)
	go p.sendAll()
	go p.receiveAll()
	return p, nil
}

// Changes yields lists that began to answer, or fell silent. Those that fell silent together come together.
func (p *Prober) Changes() <-chan []Change { return p.changes }

// Set makes these the lists that are probed. Those that stay with the same segments are judged on.
func (p *Prober) Set(lists []List) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := map[uint32]*target{}
	for _, l := range lists {
		if number, t := p.find(l.Key); t != nil && slices.Equal(t.Segments, l.Segments) {
			wanted[number] = t
			continue
		}
		outer, err := headers(p.options.Own, l.Segments)
		if err != nil {
			return fmt.Errorf("probe %s, list %d: %w", l.Name, l.Slot, err)
		}
		p.numbers++
		wanted[p.numbers] = &target{List: l, outer: outer, tracker: tracker{settings: p.options.Settings}}
	}
	p.targets = wanted
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
	err := p.socket.close()
	p.running.Wait()
	return err
}

// sendAll sends each interval, and judges half an interval later.
func (p *Prober) sendAll() {
	defer p.running.Done()
	tick := time.NewTicker(p.options.Interval / 2)
	defer tick.Stop()
	for turn := 0; ; turn++ {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		if turn%2 == 0 {
			p.round()
			continue
		}
		if changes := p.judge(); len(changes) > 0 {
			p.tell(changes)
		}
	}
}

// inOrder returns the numbers of all lists, ascending.
func (p *Prober) inOrder() []uint32 { return slices.Sorted(maps.Keys(p.targets)) }

// round sends a probe over each list.
func (p *Prober) round() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, number := range p.inOrder() {
		t := p.targets[number]
		mark := payload{cookie: p.cookie, list: number, number: t.sent(), left: time.Since(p.started)}
		err := p.socket.send(packet(t.outer, p.options.Own, mark))
		if err != nil && !p.refused {
			p.options.Log.Warn("probes can't be sent", "list", t.Key, "error", err)
		}
		p.refused = err != nil
	}
}

// judge lists who fell silent.
func (p *Prober) judge() (changes []Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, number := range p.inOrder() {
		if t := p.targets[number]; t.judge() {
			changes = append(changes, Change{t.Key, false})
		}
	}
	return changes
}

func (p *Prober) receiveAll() {
	defer p.running.Done()
	buffer := make([]byte, 2*payloadSize)
	for {
		n, err := p.socket.receive(buffer)
		select {
		case <-p.done:
			return
		default:
		}
		if err != nil {
			continue // an ICMP error for a probe; silence says the same
		}
		mark, ok := parsePayload(buffer[:n])
		if !ok || mark.cookie != p.cookie {
			continue
		}
		p.mu.Lock()
		t, known := p.targets[mark.list]
		changed := known && t.came(mark.number, time.Since(p.started)-mark.left)
		p.mu.Unlock()
		if changed {
			p.tell([]Change{{t.Key, true}})
		}
	}
}

func (p *Prober) tell(c []Change) {
	select {
	case p.changes <- c:
	case <-p.done:
	}
}
