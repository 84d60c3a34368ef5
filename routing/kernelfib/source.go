package kernelfib

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
	"sextant/routing/rib"
)

// Source is the kernel's tables as they are. Its methods may be called from any goroutine.
type Source struct {
	socket  *socket
	log     *slog.Logger
	tables  []uint32
	changes chan struct{}
	ending  atomic.Bool
	closed  chan struct{}

	// Only the goroutine that reads touches these.
	decoder rtnetlink.Decoder
	asked   []func() []byte // make the dumps that are still to be asked for
	asking  uint32          // number of the one that is answered; 0: none is
	again   bool            // all is to be read anew when the dumps that run are done
	up      map[uint32]bool
	dumped  map[routeKey]bool        // routes that the running dump has told
	several map[rib.Destination]bool // with several routes of one metric

	mu       sync.Mutex
	model    rib.Model
	complete bool
	resyncs  uint64
}

type routeKey struct {
	rib.Destination
	metric uint32
}

// Watch begins to watch tables.
func Watch(tables []uint32, log *slog.Logger) (*Source, error) {
	s, err := openSocket(unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEXTHOP,
		unix.RTNLGRP_LINK)
	if err != nil {
		return nil, fmt.Errorf("watch routes: %w", err)
	}
	w := &Source{socket: s, log: log, tables: tables, changes: make(chan struct{}, 1),
		closed: make(chan struct{}), up: map[uint32]bool{}}
	w.model.Tables = func(table uint32) bool { return slices.Contains(tables, table) }
	if err := w.resync(); err != nil {
		s.close()
		return nil, fmt.Errorf("read routes: %w", err)
	}
	go w.read()
	return w, nil
}

// Close ends the watch.
func (s *Source) Close() {
	s.ending.Store(true)
	s.socket.close()
	<-s.closed
}

// Changes yields a value when Take has something to say; several changes may be one value.
func (s *Source) Changes() <-chan struct{} { return s.changes }

// Take says what changed since the last Take, and whether the tables were read to their end.
func (s *Source) Take() (changes []rib.Change, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Changes(), s.complete
}

// Resyncs counts how often all was read anew, because the kernel had lost messages or a link went
// up or down.
func (s *Source) Resyncs() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resyncs
}

// resync asks for everything, a dump after the other.
func (s *Source) resync() error {
	s.mu.Lock()
	s.model.Restart()
	s.mu.Unlock()
	s.asked, s.dumped, s.several = []func() []byte{s.socket.nextHops}, map[routeKey]bool{},
		map[rib.Destination]bool{}
	for _, table := range s.tables {
		for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
			s.asked = append(s.asked, func() []byte { return s.socket.routesOf(family, table) })
		}
	}
	return s.ask()
}

// ask sends the next dump, or sweeps when all are answered.
func (s *Source) ask() error {
	if len(s.asked) == 0 {
		s.asking, s.dumped = 0, nil
		s.mu.Lock()
		s.model.Sweep()
		s.complete = true
		s.mu.Unlock()
		s.signal()
		return nil
	}
	request := s.asked[0]()
	s.asked, s.asking = s.asked[1:], s.socket.seq
	return s.socket.send(request)
}

func (s *Source) signal() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

func (s *Source) read() {
	defer close(s.closed)
	for {
		b, err := s.socket.receive()
		if errors.Is(err, unix.ENOBUFS) {
			s.log.Warn("messages from the kernel about routes were lost: all are read anew")
			b, err = nil, s.socket.drain()
			s.again, s.asking = true, 0
			clear(s.up)
		}
		if s.ending.Load() {
			return
		}
		if err != nil {
			s.log.Error("routes of the kernel can't be read any more; what was read holds until "+
				"the agent is restarted", "error", err)
			return
		}
		if err := s.take(b); err != nil {
			s.log.Warn("routes of the kernel can't be read; tried again soon", "error", err)
			s.again, s.asking = true, 0
			time.Sleep(time.Second)
		}
	}
}

// take works through messages, those of a dump and those that the kernel sends when something
// changes, as they come: so the later of both counts.
func (s *Source) take(b []byte) error {
	for len(b) > 0 {
		h, body, rest, err := rtnetlink.Next(b)
		if err != nil {
			return err
		}
		b = rest
		s.again = s.again || h.Flags&unix.NLM_F_DUMP_INTR != 0
		if ok, refused := refusal(h, body); ok && h.Seq == s.asking {
			if refused = noTable(refused); refused != nil {
				return refused
			}
			if err := s.ask(); err != nil {
				return err
			}
			continue
		}
		if err := s.message(h, body); err != nil {
			return err
		}
	}
	if s.again && s.asking == 0 {
		s.again = false
		s.mu.Lock()
		s.resyncs++
		s.mu.Unlock()
		return s.resync()
	}
	s.signal()
	return nil
}

func (s *Source) message(h rtnetlink.Header, body []byte) error {
	if l, ok := rtnetlink.LinkIn(h, body); ok {
		s.link(l)
		return nil
	}
	m, ok, err := s.decoder.Decode(h, body)
	if err != nil || !ok || !s.plain(h, m) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Apply(m)
	return nil
}

// plain reports whether a message can be taken as it is. Where a destination has several routes of
// one metric, as after "ip route append", the first of a dump counts, and when something becomes of
// them all is read anew: what is left can't be told from the message.
func (s *Source) plain(h rtnetlink.Header, m rtnetlink.Message) bool {
	if m.Kind != rtnetlink.NewRoute && m.Kind != rtnetlink.DelRoute || !slices.Contains(s.tables,
		m.Route.Table) {
		return true
	}
	to := rib.Destination{Table: m.Route.Table, Prefix: m.Route.Prefix}
	if h.Flags&unix.NLM_F_MULTI != 0 {
		key := routeKey{to, m.Route.Metric}
		if s.dumped[key] {
			s.several[to] = true
			return false
		}
		s.dumped[key] = true
		return true
	}
	if m.Adds || s.several[to] {
		s.several[to], s.again = true, true
	}
	return true
}

// link notes that a link went up or down: with it go routes and next hops, and the kernel does not
// tell of all.
func (s *Source) link(l rtnetlink.Link) {
	if was, known := s.up[l.Index]; known && was == l.Up {
		return
	}
	s.up[l.Index] = l.Up
	s.again = true
}
