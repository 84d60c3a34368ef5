package southbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"sextant/agent/southbound/southboundpb"
	"sextant/packet/flow"
)

// Headend is what changes are applied to. Its methods are called by several goroutines.
type Headend interface {
	// SetPath gives a flow a path, or another one. The error is for people.
	SetPath(ctx context.Context, p Path) error
	// ClearPath leaves a flow to the head-end's rules. It is no error if it is already.
	ClearPath(ctx context.Context, t flow.Tuple) error
	// SetGroups gives prefixes groups, or other weights. The errors are those of the groups, in
	// their order; nil: of none.
	SetGroups(ctx context.Context, groups []Group) []error
	// ClearGroup leaves flows to a prefix to other groups and rules. It is no error if it has none.
	ClearGroup(ctx context.Context, prefix netip.Prefix) error
	// Filter gives a socket a filter of datagrams with a key. An error says why all of them wait
	// for the head-end.
	Filter(ctx context.Context, socket *net.UDPConn, key flow.Secret) (Filter, error)
	// Held returns the paths that flows have, and the prefixes with groups.
	Held(ctx context.Context) ([]Path, []netip.Prefix, error)
}

// Options are what a Follower needs.
type Options struct {
	Controllers []string // host and port of each
	Router      string   // the node's name in the controllers' topology
	TLS         Files
	TokenFile   string
	Datagrams   bool // whether changes may come ahead of a stream, by UDP
	Version     string
	Capacity    int // how many flows can have paths
	Groups      int // how many prefixes can have groups
	Headend     Headend
	Log         *slog.Logger
}

// Link is how things are with one controller.
type Link struct {
	Controller string
	Connected  bool
	Followed   bool
	Epoch      uint64 // that it claims; 0: it has not
	Applied    uint64 // paths and groups set and cleared
	Refused    uint64
	Filtered   uint64 // changes that a filter has made when their datagrams came
	Early      uint64 // others that came as datagrams, ahead of the stream
	Late       uint64 // others whose datagrams came after the stream had brought them
	Forged     uint64 // datagrams that are not the controller's
	Problem    string // why there is no connection; "": there is, or the first try goes on
}

// Follower keeps a stream to each controller.
type Follower struct {
	options Options
	cancel  context.CancelFunc
	done    sync.WaitGroup

	// applying is held while a change is applied or a claim is decided on: a change of a controller
	// that is followed is made before another one is.
	applying sync.Mutex
	filters  []Filter // by link; nil: none. They belong to who holds applying.

	mutex  sync.Mutex // of what follows; taken after applying
	office Office
	links  []Link
}

const (
	// A controller that comes back stands by once the head-end has tried again.
	retryLeast, retryMost = 100 * time.Millisecond, time.Second
	// A controller that disappeared without closing is noticed after the sum of both.
	keepAliveTime, keepAliveTimeout = 10 * time.Second, 5 * time.Second
	heldPerMessage                  = 1000
)

// Follow begins to follow controllers, until Stop.
func Follow(o Options) *Follower {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{options: o, cancel: cancel, links: make([]Link, len(o.Controllers)),
		filters: make([]Filter, len(o.Controllers))}
	for i, address := range o.Controllers {
		f.links[i].Controller = address
		f.done.Go(func() { f.keep(ctx, i) })
	}
	return f
}

// Stop ends all streams, and returns when no change is applied any more.
func (f *Follower) Stop() {
	f.cancel()
	f.done.Wait()
}

// Links is how things are with the controllers.
func (f *Follower) Links() []Link {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	links := slices.Clone(f.links)
	for i := range links {
		links[i].Followed = links[i].Connected && links[i].Epoch != 0 &&
			f.office.Follows(links[i].Epoch)
	}
	return links
}

// note changes what is known of a controller.
func (f *Follower) note(i int, change func(*Link)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change(&f.links[i])
}

// keep connects again and again.
func (f *Follower) keep(ctx context.Context, i int) {
	wait := retryLeast
	for ctx.Err() == nil {
		begun := time.Now()
		err := f.follow(ctx, i)
		if ctx.Err() != nil {
			return
		}
		address, problem := f.options.Controllers[i], reason(err)
		f.note(i, func(l *Link) {
			if l.Problem != problem {
				f.options.Log.Warn("no stream to a controller; flows keep their paths until their "+
					"time is over", "controller", address, "error", problem)
			}
			l.Connected, l.Epoch, l.Problem = false, 0, problem
		})
		if time.Since(begun) > retryMost {
			wait = retryLeast
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMost)
	}
}

// reason takes out of an error what gRPC wraps around it.
func reason(err error) string {
	if s, ok := status.FromError(err); ok {
		if s.Code() == codes.DeadlineExceeded {
			return "no answer in time"
		}
		return s.Message()
	}
	return err.Error()
}

// follow is one stream from its beginning to its end.
func (f *Follower) follow(ctx context.Context, i int) error {
	tls, err := f.options.TLS.client()
	if err != nil {
		return err
	}
	token, err := readToken(f.options.TokenFile)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient("passthrough:///"+f.options.Controllers[i],
		grpc.WithTransportCredentials(credentials.NewTLS(tls)),
		grpc.WithStaticStreamWindowSize(Window), grpc.WithStaticConnWindowSize(Window),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepAliveTime,
			Timeout: keepAliveTimeout}))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancel(
		metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token))
	defer cancel()
	stream, err := southboundpb.NewSouthboundClient(connection).Follow(ctx)
	if err != nil {
		return err
	}
	hello := &southboundpb.Hello{Router: f.options.Router, Version: f.options.Version,
		Capacity: uint64(f.options.Capacity), Groups: uint64(f.options.Groups)}
	one := &session{Follower: f, link: i, stream: stream}
	end := one.offerDatagrams(ctx, hello)
	defer end()
	err = stream.Send(&southboundpb.FromHeadend{
		Message: &southboundpb.FromHeadend_Hello{Hello: hello}})
	if err != nil && !errors.Is(err, io.EOF) { // EOF: Recv says why
		return err
	}
	return one.run(ctx)
}

// session is one stream.
type session struct {
	*Follower
	link     int
	stream   southboundpb.Southbound_FollowClient
	epoch    uint64
	lease    time.Duration // of the last claim
	followed bool          // a standing has said so
	last     uint64        // number of the last change that was made
	ahead    uint64        // of the last one that a datagram brought
}

func (s *session) run(ctx context.Context) error {
	for {
		message, err := s.stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the controller has ended the stream")
		}
		if err != nil {
			return err
		}
		switch m := message.Message.(type) {
		case *southboundpb.FromController_Claim:
			err = s.claim(ctx, m.Claim)
		case *southboundpb.FromController_Change:
			err = s.change(ctx, m.Change)
		}
		if err != nil {
			return err
		}
	}
}

// claim answers a claim. Before a controller is told for the first time that it is followed, it
// gets the paths that there are.
func (s *session) claim(ctx context.Context, c *southboundpb.Claim) error {
	if c.GetEpoch() == 0 {
		return errors.New("the controller claims epoch 0; epochs begin with 1")
	}
	s.applying.Lock()
	defer s.applying.Unlock()
	s.epoch, s.lease = c.GetEpoch(), time.Duration(c.GetLeaseMs())*time.Millisecond
	standing := &southboundpb.Standing{}
	s.note(s.link, func(l *Link) {
		standing.Followed = s.office.Claim(s.epoch,
			s.lease, time.Now())
		standing.Epoch = s.office.Epoch()
		l.Connected, l.Problem, l.Epoch = true, "", s.epoch
	})
	s.follows(standing.Followed)
	if standing.Followed && !s.followed {
		if err := s.tellHeld(ctx); err != nil {
			return err
		}
	}
	if s.followed != standing.Followed {
		s.options.Log.Info("controller", "address", s.options.Controllers[s.link], "epoch",
			s.epoch, "followed", standing.Followed)
	}
	s.followed = standing.Followed
	return s.stream.Send(&southboundpb.FromHeadend{
		Message: &southboundpb.FromHeadend_Standing{Standing: standing}})
}

func (s *session) tellHeld(ctx context.Context) error {
	paths, groups, err := s.options.Headend.Held(ctx)
	if err != nil {
		return fmt.Errorf("read the paths that flows have: %w", err)
	}
	send := func(held *southboundpb.Held) error {
		return s.stream.Send(&southboundpb.FromHeadend{
			Message: &southboundpb.FromHeadend_Held{Held: held}})
	}
	for some := range slices.Chunk(paths, heldPerMessage) {
		held := &southboundpb.Held{}
		for _, p := range some {
			held.Paths = append(held.Paths, PathMessage(p))
		}
		if err := send(held); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(groups, heldPerMessage) {
		held := &southboundpb.Held{}
		for _, p := range some {
			held.Groups = append(held.Groups, PrefixMessage(p))
		}
		if err := send(held); err != nil {
			return err
		}
	}
	return nil
}

// change makes a change that the stream brings, unless a datagram has brought it.
func (s *session) change(ctx context.Context, c *southboundpb.Change) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if c.GetNumber() <= s.ahead {
		return nil
	}
	return s.apply(ctx, c)
}

// apply applies a change, if the controller is followed, and answers it: the decision and all of
// its parts are one step against changes of other controllers, as the caller holds applying.
func (s *session) apply(ctx context.Context, c *southboundpb.Change) error {
	s.last = c.GetNumber()
	applied := &southboundpb.Applied{Number: c.GetNumber()}
	obstacle := s.obstacle()
	switch {
	case s.hasMade(c.GetNumber(), obstacle):
		s.note(s.link, func(l *Link) { l.Filtered++; l.Applied++ })
		return s.answer(applied)
	case s.last == s.ahead:
		s.note(s.link, func(l *Link) { l.Early++ })
	}
	refuse := func(f *southboundpb.Flow, reason string) {
		applied.Refused = append(applied.Refused, &southboundpb.Refusal{Flow: f, Reason: reason})
	}
	for _, m := range c.GetSet() {
		if reason := s.set(ctx, m, obstacle); reason != "" {
			refuse(m.GetFlow(), reason)
		}
	}
	for _, m := range c.GetClear() {
		if reason := s.clear(ctx, m, obstacle); reason != "" {
			refuse(m, reason)
		}
	}
	applied.Refused = append(applied.Refused, s.changeGroups(ctx, c, obstacle)...)
	s.note(s.link, func(l *Link) {
		l.Refused += uint64(len(applied.Refused))
		l.Applied += uint64(len(c.GetSet()) + len(c.GetClear()) + len(c.GetSetGroups()) +
			len(c.GetClearGroups()) - len(applied.Refused))
	})
	if obstacle == "" {
		s.allow()
	}
	return s.answer(applied)
}

func (s *session) answer(applied *southboundpb.Applied) error {
	return s.stream.Send(&southboundpb.FromHeadend{
		Message: &southboundpb.FromHeadend_Applied{Applied: applied}})
}

// obstacle is why no change of this controller is applied, "": they are.
func (s *session) obstacle() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.epoch != 0 && s.office.Follows(s.epoch) {
		return ""
	}
	return fmt.Sprintf("the head-end follows a controller of epoch %d, and this one has %d",
		s.office.Epoch(), s.epoch)
}

func (s *session) set(ctx context.Context, m *southboundpb.FlowPath, obstacle string) string {
	if obstacle != "" {
		return obstacle
	}
	p, err := PathOf(m)
	if err == nil {
		err = s.outlasts(p.Hold)
	}
	if err == nil {
		err = s.options.Headend.SetPath(ctx, p)
	}
	return text(err)
}

// outlasts is what is wrong with a time for which something is held.
func (s *session) outlasts(hold time.Duration) error {
	if hold >= s.lease {
		return nil
	}
	return fmt.Errorf("it would last for %v, and no other controller is followed before the lease "+
		"of %v is over; have the controller hold paths for longer", hold, s.lease)
}

func (s *session) clear(ctx context.Context, m *southboundpb.Flow, obstacle string) string {
	if obstacle != "" {
		return obstacle
	}
	t, err := FlowOf(m)
	if err == nil {
		err = s.options.Headend.ClearPath(ctx, t)
	}
	return text(err)
}

// text is the text of an error, "" for none.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
