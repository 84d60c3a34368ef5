package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"sextant/agent/southbound"
	"sextant/agent/southbound/southboundpb"
	"sextant/packet/flow"
)

// session is the stream of one head-end.
type session struct {
	controller *Controller
	router     string
	address    string
	stream     southboundpb.Southbound_FollowServer
	out        *outbox
	cancel     context.CancelCauseFunc

	early *datagrams // nil: changes go by the stream alone

	sending sync.Mutex // of the stream's Send, and of number
	number  uint64     // of the last change

	mutex sync.Mutex
	sent  map[uint64][]flow.Tuple // flows of changes that are not answered, by their numbers
	away  int                     // how many flows these are
}

const (
	helloPatience    = 5 * time.Second
	flowsPerChange   = 1000
	groupsPerChange  = 100
	claimsPerLease   = 3
	unansweredChange = 64 // with so many of them a head-end gets no more
	// awayAtOnce is with how many unanswered flows the event loop sends no more itself: they fit
	// gRPC's buffer of a stream, 64 KiB, so that it need not wait for a head-end.
	awayAtOnce = 64
)

// Follow is what southboundpb.SouthboundServer says.
func (s *southServer) Follow(stream southboundpb.Southbound_FollowServer) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	one := &session{controller: s.controller, stream: stream, out: newOutbox(), cancel: cancel,
		sent: map[uint64][]flow.Tuple{}}
	from, ok := peer.FromContext(ctx)
	if ok {
		one.address = from.Addr.String()
	}
	hello := make(chan *southboundpb.Hello, 1)
	go func() { cancel(one.receive(ctx, hello)) }()
	select {
	case <-ctx.Done():
		return ended(ctx)
	case <-time.After(helloPatience):
		return status.Error(codes.DeadlineExceeded, "no hello came")
	case h := <-hello:
		if err := s.admit(ctx, h.GetRouter()); err != nil {
			return err
		}
		one.router = h.GetRouter()
		var err error
		if one.early, err = openDatagrams(h.GetDatagrams(), from); err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		defer one.early.close()
		doErr := s.controller.do(ctx, func() {
			err = s.controller.connected(one, h)
		})
		if err = errors.Join(doErr, err); err != nil {
			return status.Error(codes.NotFound, err.Error())
		}
	}
	cancel(one.serve(ctx))
	// the controller's own end has no loop to note this in
	_ = s.controller.do(context.WithoutCancel(ctx), func() {
		s.controller.disconnected(one, context.Cause(ctx))
	})
	return ended(ctx)
}

// ended is why a stream ends, as its other side gets it.
func ended(ctx context.Context) error {
	err := context.Cause(ctx)
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

func (s *session) end(err error) { s.cancel(err) }

// serve claims the head-end again and again, and sends what is for it.
func (s *session) serve(ctx context.Context) error {
	lease := s.controller.options.Config.Southbound.Lease
	claims := time.NewTicker(lease / claimsPerLease)
	defer claims.Stop()
	epoch, changed := s.controller.lead.now()
	claim := func() error {
		if epoch == 0 { // another controller leads
			return nil
		}
		s.sending.Lock()
		defer s.sending.Unlock()
		return s.stream.Send(&southboundpb.FromController{
			Message: &southboundpb.FromController_Claim{Claim: &southboundpb.Claim{Epoch: epoch,
				LeaseMs: uint32(lease.Milliseconds())}}})
	}
	if err := claim(); err != nil {
		return err
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
			epoch, changed = s.controller.lead.now()
			err = claim()
		case <-claims.C:
			err = claim()
		case <-s.out.news:
			err = s.send()
		}
		if err != nil {
			return err
		}
	}
}

// set and clear have a flow's path sent: at once, if that cannot block, since the way by another
// goroutine takes longer than all else that a decision does.
func (s *session) set(p southbound.Path) { s.put(p.Flow, &p) }
func (s *session) clear(t flow.Tuple)    { s.put(t, nil) }

// setGroup has a prefix's group sent, by the session's goroutine; nil: it loses its group.
func (s *session) setGroup(prefix netip.Prefix, g *southbound.Group) {
	s.out.putGroup(prefix, g)
	s.out.wake()
}

// put leaves what does not fit to the session's goroutine, which goes on at the next answer.
func (s *session) put(t flow.Tuple, p *southbound.Path) {
	s.out.put(t, p)
	room := awayAtOnce - s.unansweredFlows()
	if room <= 0 || !s.sending.TryLock() {
		s.out.wake()
		return
	}
	defer s.sending.Unlock()
	if _, err := s.sendOne(room, 0); err != nil {
		s.end(err)
	}
}

// send sends what waits, until too much is unanswered.
func (s *session) send() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	for s.unanswered() < unansweredChange {
		if more, err := s.sendOne(flowsPerChange, groupsPerChange); !more || err != nil {
			return err
		}
	}
	return nil
}

// sendOne sends one change of up to so many flows and groups, if any wait.
func (s *session) sendOne(mostFlows, mostGroups int) (sent bool, err error) {
	change, flows := s.out.take(s.number+1, mostFlows, mostGroups)
	if change == nil {
		return false, nil
	}
	s.number++
	s.note(s.number, flows)
	s.early.send(change)
	err = s.stream.Send(&southboundpb.FromController{
		Message: &southboundpb.FromController_Change{Change: change}})
	return true, err
}

func (s *session) unanswered() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.sent)
}

func (s *session) unansweredFlows() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.away
}

func (s *session) note(number uint64, flows []flow.Tuple) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.sent[number] = flows
	s.away += len(flows)
}

// answered returns the flows of a change that is answered now.
func (s *session) answered(number uint64) ([]flow.Tuple, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	flows, ok := s.sent[number]
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument, "no change %d is unanswered", number)
	}
	delete(s.sent, number)
	s.away -= len(flows)
	return flows, nil
}

// receive reads messages until the stream ends. The first one is the hello.
func (s *session) receive(ctx context.Context, hello chan<- *southboundpb.Hello) error {
	message, err := s.stream.Recv()
	if err != nil {
		return err
	}
	if message.GetHello() == nil {
		return status.Error(codes.InvalidArgument, "the first message is no hello")
	}
	hello <- message.GetHello()
	for {
		message, err := s.stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the head-end has ended the stream")
		}
		if err != nil {
			return err
		}
		if err := s.take(ctx, message); err != nil {
			return err
		}
	}
}

// take takes one message.
func (s *session) take(ctx context.Context, message *southboundpb.FromHeadend) error {
	c := s.controller
	switch m := message.Message.(type) {
	case *southboundpb.FromHeadend_Standing:
		return c.do(ctx, func() { c.standing(s, m.Standing.GetFollowed(), m.Standing.GetEpoch()) })
	case *southboundpb.FromHeadend_Held:
		return s.takeHeld(ctx, m.Held)
	case *southboundpb.FromHeadend_Applied:
		flows, err := s.answered(m.Applied.GetNumber())
		if err != nil {
			return err
		}
		refused, groups, err := refusals(m.Applied.GetRefused())
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		s.out.wake() // there may be room for a change that waits
		return c.do(ctx, func() {
			c.applied(s, flows, refused)
			c.groupsApplied(s, groups)
		})
	case *southboundpb.FromHeadend_Hello:
		return status.Error(codes.InvalidArgument, "a second hello")
	}
	return nil // of a later version
}

// refusals are why flows have no paths, and prefixes no groups.
func refusals(all []*southboundpb.Refusal) (flows map[flow.Tuple]string,
	groups map[netip.Prefix]string, err error) {
	flows, groups = map[flow.Tuple]string{}, map[netip.Prefix]string{}
	for _, r := range all {
		if r.GetPrefix() != nil {
			// of a prefix that it could not read there is nothing to note but the reason
			p, _ := southbound.PrefixOf(r.GetPrefix())
			groups[p] = r.GetReason()
			continue
		}
		t, err := southbound.FlowOf(r.GetFlow())
		if err != nil {
			return nil, nil, err
		}
		flows[t] = r.GetReason()
	}
	return flows, groups, nil
}

func (s *session) takeHeld(ctx context.Context, held *southboundpb.Held) error {
	var paths []southbound.Path
	for i, m := range held.GetPaths() {
		p, err := southbound.PathOf(m)
		if err != nil {
			return status.Error(codes.InvalidArgument, fmt.Sprintf("held path %d: %v", i+1, err))
		}
		paths = append(paths, p)
	}
	var groups []netip.Prefix
	for i, m := range held.GetGroups() {
		p, err := southbound.PrefixOf(m)
		if err != nil {
			return status.Error(codes.InvalidArgument, fmt.Sprintf("held group %d: %v", i+1, err))
		}
		groups = append(groups, p)
	}
	c := s.controller
	return c.do(ctx, func() {
		c.heldGroups(s, groups)
		for _, p := range paths {
			c.held(s, p)
		}
	})
}

// forgottenMost places of an outbox are kept anyway, of flows that wait no more.
const forgottenMost = 1024

// outbox is what waits for a head-end: of each flow the last that was said.
type outbox struct {
	news chan struct{}

	mutex  sync.Mutex
	order  []flow.Tuple
	paths  map[flow.Tuple]*southbound.Path    // nil: it is to be cleared
	groups map[netip.Prefix]*southbound.Group // likewise
}

func newOutbox() *outbox {
	return &outbox{news: make(chan struct{}, 1), paths: map[flow.Tuple]*southbound.Path{},
		groups: map[netip.Prefix]*southbound.Group{}}
}

func (o *outbox) put(t flow.Tuple, p *southbound.Path) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if _, waits := o.paths[t]; !waits {
		o.order = append(o.order, t)
	}
	o.paths[t] = p
}

// forget has a flow wait no more. Its place in the order goes when many such are there.
func (o *outbox) forget(t flow.Tuple) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.paths, t)
	if len(o.order) > 2*len(o.paths)+forgottenMost {
		seen := map[flow.Tuple]bool{}
		o.order = slices.DeleteFunc(o.order, func(t flow.Tuple) bool {
			_, waits := o.paths[t]
			again := seen[t]
			seen[t] = true
			return !waits || again
		})
	}
}

func (o *outbox) putGroup(prefix netip.Prefix, g *southbound.Group) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.groups[prefix] = g
}

// takeGroups adds some groups to a change. The outbox is locked.
func (o *outbox) takeGroups(change *southboundpb.Change, most int) {
	for prefix, g := range o.groups {
		if len(change.SetGroups)+len(change.ClearGroups) == most {
			return
		}
		if g != nil {
			change.SetGroups = append(change.SetGroups, southbound.GroupMessage(*g))
		} else {
			change.ClearGroups = append(change.ClearGroups, southbound.PrefixMessage(prefix))
		}
		delete(o.groups, prefix)
	}
}

func (o *outbox) wake() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// take is the next change, of up to so many flows and groups, and these flows; nil: nothing waits.
func (o *outbox) take(number uint64, mostFlows, mostGroups int) (*southboundpb.Change,
	[]flow.Tuple) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	change := &southboundpb.Change{Number: number}
	o.takeGroups(change, mostGroups)
	flows := make([]flow.Tuple, 0, min(len(o.order), mostFlows))
	for len(o.order) > 0 && len(flows) < mostFlows {
		t := o.order[0]
		o.order = o.order[1:]
		p, waits := o.paths[t]
		switch {
		case !waits:
			continue
		case p != nil:
			change.Set = append(change.Set, southbound.PathMessage(*p))
		default:
			change.Clear = append(change.Clear, southbound.FlowMessage(t))
		}
		delete(o.paths, t)
		flows = append(flows, t)
	}
	if len(flows)+len(change.SetGroups)+len(change.ClearGroups) == 0 {
		return nil, nil
	}
	return change, flows
}
