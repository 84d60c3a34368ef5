package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"sextant/config"
)

// Options are how a speaker is opened.
type Options struct {
	BGP *config.BGP // with the neighbors that are to come first
	// Restarting says that packets were forwarded on while no speaker ran: peers that kept this
	// node's routes are asked to keep them until they have been told anew (RFC 4724 section 4.1).
	Restarting bool
	Log        *slog.Logger
}

// Speaker is a running BGP speaker. Its methods may be called from any goroutine.
type Speaker struct {
	bgp     *config.BGP
	speech  speech
	server  *server.BgpServer
	stop    context.CancelFunc // of the watch for changes
	changes chan struct{}
	started time.Time
	log     *slog.Logger
	faults  *faults

	maxPrefixes uint64

	news atomic.Int64 // when there was some last, in nanoseconds since the speaker was opened

	listing  sync.Mutex
	table    *Table        // as it was listed last
	listed   time.Duration // when it was, since the speaker was opened
	states   []Peer        // as they were listed last
	statesAt time.Duration

	closing    sync.Once
	mu         sync.Mutex
	peers      map[netip.Addr]*api.Peer // as they were configured
	watched    map[netip.Addr]bool      // those with BFD
	announced  map[string]announced
	announces  []Announcement // what Announce was given last; nil: it was not all done
	sessionsUp map[netip.Addr]bool
	restarting bool // the neighbors that are set first keep this node's routes
}

// announced is a route as it was last sent.
type announced struct {
	what Announcement
	path *apiutil.Path
}

// Open starts a speaker: it listens, and talks to nobody before SetNeighbors. A session that begins
// and ends again would make a peer forget the routes that it keeps, as RFC 4724 section 4.2 asks.
// Neighbors whose settings can't be used are refused.
func Open(o Options) (*Speaker, error) {
	speech, err := newSpeech(o.BGP)
	if err != nil {
		return nil, fmt.Errorf("bgp: %w", err)
	}
	faults := newFaults(o.Log)
	s := &Speaker{
		bgp: o.BGP, speech: speech, changes: make(chan struct{}, 1), started: time.Now(),
		log: o.Log, faults: faults,
		server: server.NewBgpServer(server.LoggerOption(slog.New(faults), new(slog.LevelVar))),
		peers:  map[netip.Addr]*api.Peer{}, watched: map[netip.Addr]bool{},
		announced: map[string]announced{}, sessionsUp: map[netip.Addr]bool{},
		maxPrefixes: maxPrefixes, restarting: o.Restarting,
	}
	go s.server.Serve()
	if err := s.start(); err != nil {
		s.Close(false)
		return nil, fmt.Errorf("bgp: %w", err)
	}
	return s, nil
}

func (s *Speaker) start() error {
	if err := s.CheckNeighbors(s.bgp.Neighbors); err != nil {
		return err
	}
	ctx := context.Background()
	listen := s.bgp.Listen.Addr()
	addresses := []string{listen.String()}
	if listen == netip.IPv6Unspecified() {
		addresses = append(addresses, netip.IPv4Unspecified().String())
	}
	err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
		Asn: uint32(s.bgp.ASN), RouterId: s.bgp.RouterID.String(),
		ListenPort: int32(s.bgp.Listen.Port()), ListenAddresses: addresses,
	}})
	if err != nil {
		return fmt.Errorf("listen on %s: %w; is another BGP speaker running?", s.bgp.Listen, err)
	}
	if err := s.exportOwnOnly(ctx); err != nil {
		return err
	}
	return s.watch()
}

// exportOwnOnly keeps the speaker from passing on what it learned: it is an end, not a router.
func (s *Speaker) exportOwnOnly(ctx context.Context) error {
	err := s.server.SetPolicies(ctx, &api.SetPoliciesRequest{
		Policies: []*api.Policy{{Name: "own", Statements: []*api.Statement{{
			Name:       "own",
			Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
			Actions:    &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_ACCEPT},
		}}}},
		Assignments: []*api.PolicyAssignment{{
			Name: "global", Direction: api.PolicyDirection_POLICY_DIRECTION_EXPORT,
			Policies:      []*api.Policy{{Name: "own"}},
			DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT,
		}},
	})
	if err != nil {
		return fmt.Errorf("set the export policy: %w", err)
	}
	return nil
}

// watch signals what may have changed sessions or routes.
func (s *Speaker) watch() error {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	signal := func() {
		s.noteNews()
		select {
		case s.changes <- struct{}{}:
		default: // one is waiting already
		}
	}
	err := s.server.WatchEvent(ctx, server.WatchEventMessageCallbacks{
		OnPathUpdate: func([]*apiutil.Path, time.Time) { signal() },
		OnPathEor:    func(*apiutil.Path, time.Time) { signal() },
		OnPeerUpdate: func(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) {
			s.logSession(e)
			signal()
		},
	}, server.WatchUpdate(false, "", ""), server.WatchAdjInWithdraw(), server.WatchEor(false),
		server.WatchPeer())
	if err != nil {
		return fmt.Errorf("watch for changes: %w", err)
	}
	return nil
}

// logSession logs sessions that come up or go down.
func (s *Speaker) logSession(e *apiutil.WatchEventMessage_PeerEvent) {
	address, up := e.Peer.State.NeighborAddress,
		e.Peer.State.SessionState == gobgp.BGP_FSM_ESTABLISHED
	s.mu.Lock()
	changed := s.sessionsUp[address] != up
	s.sessionsUp[address] = up
	s.mu.Unlock()
	switch {
	case changed && up:
		s.log.Info("BGP session is up", "neighbor", address)
	case changed:
		s.log.Warn("BGP session is down", "neighbor", address, "reason",
			disconnectReason(e.Peer.State.DisconnectReason),
			"message", e.Peer.State.DisconnectMessage)
	}
}

// Changes yields a value after sessions or routes changed; several changes may be one value.
func (s *Speaker) Changes() <-chan struct{} { return s.changes }

// Announce makes the routes those that this node originates: peers hear of what differs from
// before.
func (s *Speaker) Announce(routes []Announcement) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.announces != nil && slices.EqualFunc(s.announces, routes, Announcement.equal) {
		return nil
	}
	s.announces = nil
	defer s.noteNews()
	wanted := map[string]bool{}
	var problems []error
	for _, a := range routes {
		path, err := s.speech.path(a)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		key := path.Family.String() + " " + path.Nlri.String()
		wanted[key] = true
		if before, there := s.announced[key]; there && before.what.equal(a) {
			continue
		}
		if _, err := s.server.AddPath(
			apiutil.AddPathRequest{Paths: []*apiutil.Path{path}}); err != nil {
			problems = append(problems, fmt.Errorf("announce %s: %w", a.VIP, err))
			continue
		}
		s.announced[key] = announced{a, path}
	}
	for key, a := range s.announced {
		if wanted[key] {
			continue
		}
		if err := s.server.DeletePath(
			apiutil.DeletePathRequest{Paths: []*apiutil.Path{a.path}}); err != nil {
			problems = append(problems, fmt.Errorf("withdraw %s: %w", a.what.VIP, err))
			continue
		}
		delete(s.announced, key)
	}
	if len(problems) == 0 {
		s.announces = append([]Announcement{}, routes...)
	}
	return errors.Join(problems...)
}

func (a Announcement) equal(b Announcement) bool {
	return a.VIP == b.VIP && a.SID == b.SID && a.Weight == b.Weight && a.Draining == b.Draining &&
		slices.Equal(a.Services, b.Services)
}

// Announced lists what Announce last announced, in the order of VIPs, plain routes first.
func (s *Speaker) Announced() []Announcement {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Announcement, 0, len(s.announced))
	for _, a := range s.announced {
		list = append(list, a.what)
	}
	slices.SortFunc(list, func(a, b Announcement) int {
		if c := a.VIP.Compare(b.VIP); c != 0 {
			return c
		}
		return a.SID.Prefix.Compare(b.SID.Prefix)
	})
	return list
}

// Close ends all sessions. With keep, peers that agreed to graceful restart are left to find out
// themselves, and keep this node's routes for the restart time; all others are told, and forget the
// routes at once. A second Close does nothing.
func (s *Speaker) Close(keep bool) {
	s.closing.Do(func() {
		if s.stop != nil {
			s.stop()
		}
		if keep {
			if err := s.server.StopBgp(context.Background(),
				&api.StopBgpRequest{AllowGracefulRestart: true}); err != nil {
				s.log.Warn("BGP sessions were not ended in order", "error", err)
			}
			s.faults.mute() // GoBGP complains when it is stopped twice, which its BFD needs
		}
		s.server.Stop()
	})
}
