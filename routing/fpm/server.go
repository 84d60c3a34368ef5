package fpm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"sextant/linux/rtnetlink"
	"sextant/routing/rib"
)

// Options are how a server is opened.
type Options struct {
	Listen netip.AddrPort
	Tables func(uint32) bool // which tables count
	// Settle is how long after zebra connected that which it has not told again holds still: zebra
	// connects before its routing protocols have heard from their neighbors.
	Settle time.Duration
	Log    *slog.Logger
}

// Server is a listening forwarding plane manager. Its methods may be called from any goroutine.
type Server struct {
	options  Options
	listener net.Listener
	changes  chan struct{}
	done     sync.WaitGroup
	stop     context.CancelFunc

	mu      sync.Mutex
	model   rib.Model
	state   State
	client  net.Conn
	closed  bool      // no client is let in any more
	began   time.Time // of the session
	spoke   time.Time // when its last message came
	settled bool      // the session has told all
}

// State is how a server does.
type State struct {
	Client     netip.AddrPort // the zero value: no client is connected
	Complete   bool           // a client has told all it knows: what is not known is not there
	Routes     int            // that are known
	Sessions   uint64         // so far
	Messages   uint64
	Malformed  uint64 // sessions that ended because of what was sent
	LastReason string // why the last session ended
}

// quiet is how long a client must be silent to have told all. There is no message that says so.
const quiet = time.Second

// restless is after how many times the settle time a client that is never silent is taken to have
// told all.
const restless = 4

// Listen opens a server.
func Listen(ctx context.Context, o Options) (*Server, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(o.Listen))
	if err != nil {
		return nil, fmt.Errorf("fpm: %w; is another forwarding plane manager running?", err)
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Server{options: o, listener: l, changes: make(chan struct{}, 1), stop: stop}
	s.model.Tables = o.Tables
	s.done.Add(2)
	go s.accept()
	go s.watch(ctx)
	return s, nil
}

// Close ends the session and the server.
func (s *Server) Close() {
	s.stop()
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	if s.client != nil {
		s.client.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

// Changes yields a value when Take may have something to say; several changes may be one value.
func (s *Server) Changes() <-chan struct{} { return s.changes }

// Take says what changed since the last Take, and whether a client has told all it knows.
func (s *Server) Take() (changes []rib.Change, complete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Changes(), s.state.Complete
}

// State says how the server does.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	state.Routes = s.model.Len()
	return state
}

func (s *Server) signal() {
	select {
	case s.changes <- struct{}{}:
	default:
	}
}

// accept lets clients in. The newest takes the place of one before: if zebra ended without closing,
// its successor is let in at once.
func (s *Server) accept() {
	defer s.done.Done()
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.options.Log.Warn("FPM: no connection could be accepted", "error", err)
			time.Sleep(quiet)
			continue
		}
		if !s.begin(c) {
			return
		}
		s.done.Add(1)
		go s.session(c)
	}
}

// begin makes a connection the session; false: the server ends, and so does the connection.
func (s *Server) begin(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return false
	}
	if s.client != nil {
		s.client.Close()
	}
	s.client, s.began, s.spoke, s.settled = c, time.Now(), time.Time{}, false
	s.state.Client, _ = netip.ParseAddrPort(c.RemoteAddr().String())
	s.state.Sessions++
	s.model.Restart()
	return true
}

// session reads until the client leaves or sends what is no message.
func (s *Server) session(c net.Conn) {
	defer s.done.Done()
	s.options.Log.Info("FPM: a client is connected", "client", c.RemoteAddr())
	err := s.read(c)
	c.Close()
	reason := "the client left"
	if !errors.Is(err, io.EOF) || errors.Is(err, rtnetlink.ErrMalformed) {
		reason = err.Error()
	}
	s.options.Log.Warn("FPM: the session is over; its routes hold", "client", c.RemoteAddr(),
		"reason", reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == c {
		s.client, s.state.Client = nil, netip.AddrPort{}
	}
	s.state.LastReason = reason
	if errors.Is(err, rtnetlink.ErrMalformed) {
		s.state.Malformed++
	}
}

func (s *Server) read(c net.Conn) error {
	var decoder rtnetlink.Decoder
	var buffer []byte
	var messages []rtnetlink.Message
	for {
		frame, err := rtnetlink.ReadFrame(c, &buffer)
		if err != nil {
			return err
		}
		messages = messages[:0]
		for len(frame) > 0 {
			var h rtnetlink.Header
			var body []byte
			if h, body, frame, err = rtnetlink.Next(frame); err != nil {
				return err
			}
			m, ok, err := decoder.Decode(h, body)
			if err != nil {
				return err
			}
			if ok {
				messages = append(messages, m)
			}
		}
		if err := s.apply(c, messages); err != nil {
			return err
		}
	}
}

// apply takes in a frame as a whole: zebra changes a route by a frame that deletes it and adds
// another one.
func (s *Server) apply(c net.Conn, messages []rtnetlink.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != c {
		return errors.New("another client connected")
	}
	for _, m := range messages {
		s.model.Apply(m)
	}
	if s.model.Size() > maxSize {
		return fmt.Errorf("%w: the client told of more than %d routes and next hops",
			rtnetlink.ErrMalformed, maxSize)
	}
	if s.state.Messages += uint64(len(messages)); len(messages) > 0 {
		s.spoke = time.Now()
		s.signal()
	}
	return nil
}

// maxSize bounds what a client can make the server remember.
const maxSize = 1 << 21

// watch notes when a client has told all it knows.
func (s *Server) watch(ctx context.Context) {
	defer s.done.Done()
	for ticker := time.NewTicker(quiet / 4); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case now := <-ticker.C:
			s.mu.Lock()
			settles := s.client != nil && !s.settled && !s.spoke.IsZero() &&
				now.Sub(s.began) >= s.options.Settle &&
				(now.Sub(s.spoke) >= quiet || now.Sub(s.began) >= restless*s.options.Settle)
			if settles {
				s.settled, s.state.Complete = true, true
				s.model.Sweep()
			}
			s.mu.Unlock()
			if settles {
				s.options.Log.Info("FPM: the client has told all it knows")
				s.signal()
			}
		}
	}
}
