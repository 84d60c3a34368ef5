package edge

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/flow"
)

// An edge that starts without memory waits for peers and etcd for a moment only. Those that were
// not there then are asked on, and what they tell is taken in when it comes: an edge and its peers,
// or its etcd, often start together.

// question is what a peer did not answer.
type question struct {
	peer     netip.AddrPort
	secret   flow.Secret
	endpoint config.Endpoint
	buckets  int
}

// late is what a source told in the end.
type late struct {
	from     string
	question question // of a peer; the zero value: etcd
	secret   flow.Secret
	endpoint config.Endpoint
	past     []told
}

const (
	lateRetry    = time.Second // after the first failure; twice as long after each further one
	lateRetryMax = 30 * time.Second
)

// askOn goes on asking each peer for what it did not answer, until it does or ctx ends.
func (x *exchange) askOn(ctx context.Context) {
	x.lateTold, x.pending = make(chan late), map[question]bool{}
	byPeer := map[netip.AddrPort][]question{}
	for _, q := range x.askLater {
		x.pending[q] = true
		byPeer[q.peer] = append(byPeer[q.peer], q)
	}
	x.askLater = nil
	for _, questions := range byPeer {
		go askUntilTold(ctx, questions, x.lateTold)
	}
}

// askUntilTold asks a peer one question after the other.
func askUntilTold(ctx context.Context, questions []question, tell chan<- late) {
	for wait := lateRetry; len(questions) > 0; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		q := questions[0]
		limit, cancel := context.WithTimeout(ctx, peersTimeout)
		chains, err := askPeer(limit, q.secret, q.peer, q.endpoint.String(), q.buckets)
		cancel()
		if err != nil && !answered(err) {
			wait = min(2*wait, lateRetryMax)
			continue
		}
		news := late{from: q.peer.String(), question: q, secret: q.secret, endpoint: q.endpoint}
		if err == nil {
			news.past = []told{{chains, time.Now()}}
		}
		select {
		case tell <- news:
		case <-ctx.Done():
			return
		}
		questions, wait = questions[1:], 0
	}
}

// takeLate takes in what a source told after the start.
func (e *Room) takeLate(l late) {
	delete(e.Past.pending, l.question)
	if l.secret != signingSecret(e.Node) || e.Runs == nil {
		return // it tells of other buckets, or of none
	}
	i := slices.IndexFunc(e.Runs.Services, func(s Service) bool {
		return s.Endpoint == l.endpoint
	})
	if i < 0 {
		return
	}
	s := &e.Runs.Services[i]
	for _, p := range l.past {
		e.Past.ignore(l.endpoint, p.chains, e.Past.knownAbroad(s.Members))
	}
	newestFirst(l.past)
	for _, p := range l.past {
		if len(p.chains) != s.Buckets {
			e.Log.Warn("another edge has another number of buckets, so both send packets "+
				"of "+
				"connections elsewhere; write buckets or maxBackends, the same on all edges",
				"service", s.Name, "by", l.from, "here", s.Buckets, "there", len(p.chains))
		}
	}
	chains := mergePast(l.past, s.Generation.Buckets())
	if chains == nil {
		return
	}
	e.Log.Info("the past of a service is told after the start",
		"service", s.Name, "by", l.from)
	e.retryLater(e.remember(i, chains))
}

// remember adds earlier chains to those of a running service, behind its own: before those whom it
// names in reserve, for want of a past.
func (e *Room) remember(place int, chains []pool.Chain) error {
	s := &e.Runs.Services[place]
	if !slices.ContainsFunc(s.Generation.AllChains(), func(c pool.Chain) bool {
		return int(c.Length) < len(s.Members)
	}) {
		return nil // each names all
	}
	own := s.Generation.Remembered()
	merged, err := pool.Merge(own, chains)
	if err != nil || slices.Equal(merged, own) {
		return err
	}
	if !e.Found.Startup.Settled {
		past := chains
		if s.past != nil {
			if past, err = pool.Merge(s.past, chains); err != nil {
				return err
			}
		}
		s.past = past
		return e.refreshServices([]int{place})
	}
	next, err := pool.Resume(s.Spec(e.Node), merged, s.Members, e.Now())
	if err != nil {
		return err
	}
	next = next.Ordered(s.order)
	if err := e.Runs.Program.SetChains(s.Index, next); err != nil {
		return err
	}
	s.Generation = next
	e.changes++
	return nil
}

// lateWarning is for the status: whom an edge that started without memory still asks.
func (x *exchange) lateWarning() string {
	var from []string
	for q := range x.pending {
		from = append(from, q.peer.String())
	}
	slices.Sort(from)
	if from = slices.Compact(from); len(from) == 0 {
		return ""
	}
	return fmt.Sprintf("this edge started without memory, and has not yet been told who had its "+
		"buckets by %s: earlier connections may break; asked again until it is",
		strings.Join(from, ", "))
}
