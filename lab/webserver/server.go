package webserver

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"sextant/packet/lists"
)

const (
	// for a request to arrive, on a new connection or a kept one
	readTimeout = 10 * time.Second
	// for the first request of a connection when the server is told to stop
	stopTimeout  = 500 * time.Millisecond
	graceTimeout = 5 * time.Second // for answers under way when the server is told to stop
)

// Server is an emulated server that listens. Run serves its connections.
type Server struct {
	config    Config
	listeners []*listener
	processor *processor
	workers   chan struct{} // holds one element per worker that has a connection
	served    atomic.Uint64
	stop      chan struct{} // closed: no further connection or request
	abandon   chan struct{} // closed: no further answer

	mu          sync.Mutex
	stopping    bool
	connections map[*net.TCPConn]struct{}
}

// Listen opens the addresses of a server. Connections made from now on wait for Run.
func Listen(c Config) (*Server, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:      c,
		workers:     make(chan struct{}, c.Workers),
		stop:        make(chan struct{}),
		abandon:     make(chan struct{}),
		connections: make(map[*net.TCPConn]struct{}),
	}
	for _, address := range c.Addresses {
		listener, err := listen(address, c.Backlog)
		if err != nil {
			s.closeListeners()
			return nil, err
		}
		s.listeners = append(s.listeners, listener)
	}
	if s.processor, err = newProcessor(c); err != nil {
		s.closeListeners()
		return nil, err
	}
	return s, nil
}

// Addresses returns the addresses listened on, in the order of Config.Addresses.
func (s *Server) Addresses() []net.Addr {
	return lists.Map(s.listeners, (*listener).Addr)
}

// Run serves connections until ctx ends, then lets answers under way finish
// for some seconds. It returns nil after such an end, and may be called once.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, len(s.listeners)+1)
	var accepting, serving, processing sync.WaitGroup
	processing.Go(func() { failed <- s.processor.run() })
	for _, listener := range s.listeners {
		accepting.Go(func() { failed <- s.accept(listener, &serving) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	close(s.stop)
	s.closeListeners()
	accepting.Wait()
	s.finish(&serving)
	s.processor.close()
	processing.Wait()
	return err
}

// finish waits for the workers, some seconds at most for their answers.
func (s *Server) finish(serving *sync.WaitGroup) {
	s.stopReading()
	finished := make(chan struct{})
	go func() {
		serving.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(graceTimeout):
		close(s.abandon)
		s.limitConnections(net.Conn.SetDeadline, time.Now())
		<-finished
	}
}

func (s *Server) closeListeners() {
	for _, listener := range s.listeners {
		listener.Close()
	}
}

// accept takes a connection for each worker that is free. Only then: the others
// are to wait in the kernel's queue, where they count against the backlog.
func (s *Server) accept(listener *listener, serving *sync.WaitGroup) error {
	for {
		if err := listener.wait(); err != nil {
			return s.acceptError(listener, err)
		}
		select {
		case s.workers <- struct{}{}:
		case <-s.stop:
			return nil
		}
		connection, err := listener.AcceptTCP()
		if err != nil {
			<-s.workers
			return s.acceptError(listener, err)
		}
		serving.Go(func() { s.work(connection) })
	}
}

func (s *Server) acceptError(listener *listener, err error) error {
	select {
	case <-s.stop:
		return nil
	default:
		return fmt.Errorf("emulate: accept connections on %s: %w", listener.Addr(), err)
	}
}

func (s *Server) register(connection *net.TCPConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections[connection] = struct{}{}
	s.tell()
}

func (s *Server) unregister(connection *net.TCPConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, connection)
	s.tell()
}

// tell says how busy the server is. In order: its caller holds mu.
func (s *Server) tell() {
	if s.config.Tell != nil {
		s.config.Tell(len(s.connections))
	}
}

// mayRead gives the client time to send a request. A server that is stopping
// still reads the first one of a connection, which may have come already.
func (s *Server) mayRead(connection *net.TCPConn, first bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	timeout := readTimeout
	if s.stopping {
		timeout = stopTimeout
	}
	connection.SetReadDeadline(time.Now().Add(timeout))
	return first || !s.stopping
}

// stopReading makes the workers that wait for a request give up soon.
func (s *Server) stopReading() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.limitConnections(net.Conn.SetReadDeadline, time.Now().Add(stopTimeout))
}

func (s *Server) limitConnections(setDeadline func(net.Conn, time.Time) error, deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for connection := range s.connections {
		setDeadline(connection, deadline)
	}
}
