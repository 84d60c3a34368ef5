package southbound

import (
	"context"
	"crypto/rand"
	"net"
	"sync"
	"time"

	"sextant/agent/southbound/southboundpb"
)

// A Filter makes changes in the kernel as their datagrams come to a socket, where the head-end
// would have to wake up first. Its methods may be called by several goroutines.
type Filter interface {
	// Allow has it make the change after a number, and those that follow it, of paths that are held
	// for so long at least.
	Allow(after uint64, least time.Duration) error
	// Deny has it make none.
	Deny() error
	// Made is the number of the last change that it has made; 0: it has made none.
	Made() (uint64, error)
	// Close has it make none any more.
	Close()
}

// datagrams is where changes come ahead of a stream.
type datagrams struct {
	socket *net.UDPConn
	seal   Seal
	hello  *southboundpb.Datagrams
}

// listenDatagrams opens a port at the address from which this machine reaches a controller.
func listenDatagrams(controller string) (*datagrams, error) {
	probe, err := net.Dial("udp", controller) // sends nothing
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	local := *probe.LocalAddr().(*net.UDPAddr)
	local.Port = 0
	socket, err := net.ListenUDP("udp", &local)
	if err != nil {
		return nil, err
	}
	d := &datagrams{socket: socket}
	_, _ = rand.Read(d.seal.key[:]) // never fails
	port := socket.LocalAddr().(*net.UDPAddr).Port
	d.hello = &southboundpb.Datagrams{Port: uint32(port), Key: d.seal.key[:]}
	return d, nil
}

// offerDatagrams opens a port for changes that come ahead of the stream, unless that is not wanted,
// and says so in the hello. What it returns closes the port.
func (s *session) offerDatagrams(ctx context.Context, hello *southboundpb.Hello) (end func()) {
	if !s.options.Datagrams {
		return func() {}
	}
	controller := s.options.Controllers[s.link]
	d, err := listenDatagrams(controller)
	if err != nil {
		s.options.Log.Info("changes come by the stream alone", "controller", controller, "error",
			err)
		return func() {}
	}
	hello.Datagrams = d.hello
	filter, err := s.options.Headend.Filter(ctx, d.socket, d.seal.key)
	if err != nil {
		s.options.Log.Info("datagrams wait for the agent", "controller", controller, "error", err)
	}
	s.setFilter(filter)
	var done sync.WaitGroup
	done.Go(func() { s.takeDatagrams(ctx, d) })
	return func() { d.socket.Close(); done.Wait(); s.setFilter(nil) }
}

// setFilter gives the link its filter, in place of an earlier one.
func (s *session) setFilter(filter Filter) {
	s.applying.Lock()
	defer s.applying.Unlock()
	if former := s.filters[s.link]; former != nil {
		former.Close()
	}
	s.filters[s.link] = filter
}

// allow has the link's filter go on after the last change. The caller holds applying.
func (s *session) allow() {
	s.filter(s.link, func(f Filter) error { return f.Allow(s.last, s.lease) })
}

// follows has the link's filter make changes if the controller is followed: then those of other
// links make none. The caller holds applying.
func (s *session) follows(followed bool) {
	for i := range s.filters {
		if followed || i == s.link {
			s.filter(i, Filter.Deny)
		}
	}
	if followed {
		s.allow()
	}
}

func (s *session) filter(link int, do func(Filter) error) {
	f := s.filters[link]
	if f == nil {
		return
	}
	if err := do(f); err != nil {
		s.options.Log.Warn("the filter of a controller's datagrams is not changed", "controller",
			s.options.Controllers[link], "error", err)
	}
}

// made tells whether the filter has made a change; of those up to the last one, or a later one. The
// caller holds applying.
func (s *session) made(number uint64) bool {
	f := s.filters[s.link]
	if f == nil {
		return false
	}
	made, err := f.Made()
	return err == nil && number <= made
}

// hasMade tells whether the filter has made a change. If not, it makes none until it is allowed
// again: a later one of the same flow would be made before this one is. The caller holds applying.
func (s *session) hasMade(number uint64, obstacle string) bool {
	if s.made(number) {
		return true
	}
	s.filter(s.link, Filter.Deny)
	if !s.made(number) {
		return false
	}
	if obstacle == "" { // its datagram came just now
		s.allow()
	}
	return true
}

// takeDatagrams makes the changes that come ahead of the stream, until the socket is closed.
func (s *session) takeDatagrams(ctx context.Context, from *datagrams) {
	octets := make([]byte, datagramSize+1)
	for ctx.Err() == nil {
		n, err := from.socket.Read(octets)
		if err != nil {
			return
		}
		change, err := from.seal.Open(octets[:n])
		if err != nil {
			s.note(s.link, func(l *Link) { l.Forged++ })
			continue
		}
		if s.early(ctx, change) != nil {
			return // the stream has ended, too
		}
	}
}

// early makes a change ahead of the stream. Where its turn has not come, or the controller is not
// followed, the stream will say what becomes of it.
func (s *session) early(ctx context.Context, c *southboundpb.Change) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if c.GetNumber() <= s.last && !s.made(c.GetNumber()) {
		s.note(s.link, func(l *Link) { l.Late++ })
	}
	if c.GetNumber() != s.last+1 || s.obstacle() != "" {
		return nil
	}
	s.ahead = c.GetNumber()
	return s.apply(ctx, c)
}
