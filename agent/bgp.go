package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"time"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/routing/bgp"
)

// speaker is the node's part in BGP. A nil speaker is a node without one.
type speaker struct {
	*bgp.Speaker
}

// refusal is what makes an ignored route another one.
type refusal struct {
	peer          netip.Addr
	prefix        netip.Prefix
	distinguisher string
	service       string
	reason        discovery.Reason
}

// learnInterval is how often sessions are looked at, besides when one of them says something: the
// patience with a silent one ends.
const learnInterval = time.Second

// openSpeaker begins to speak, if the node file wants it. What the last agent learned holds until
// routing says otherwise.
func (a *Agent) openSpeaker(n *config.Node) error {
	a.startup.settled = true
	if n.BGP == nil && n.Routing == nil {
		a.setLearned(nil)
		return nil
	}
	a.setLearned(a.store.kept.Learned)
	entries, _ := os.ReadDir(a.dir) // an error is a directory that is not there
	a.startup = startup{fresh: len(entries) == 0, began: time.Now(), settled: false}
	if n.BGP == nil {
		return nil
	}
	s, err := bgp.Open(bgp.Options{BGP: n.BGP, Restarting: len(entries) > 0, Log: a.options.Log})
	if err != nil {
		return err
	}
	a.startup.settled = n.Routing == nil && (n.Edge == nil || !settling(n.BGP, nil))
	a.speaker = &speaker{Speaker: s}
	return nil
}

// close ends the sessions as the node file wants it.
func (s *speaker) close(n *config.Node) {
	if s != nil {
		s.Close(n != nil && n.BGP != nil && n.BGP.OnStop == config.Keep)
	}
}

// changes reports when routing may have changed; never without a speaker.
func (s *speaker) changes() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.Changes()
}

// speakTo makes the neighbors those of the configuration. Call it with the old one to undo it.
func (s *speaker) speakTo(n *config.Node) error {
	if s == nil || n.BGP == nil {
		return nil
	}
	return s.SetNeighbors(n.BGP.Neighbors)
}

// unchangeableBGP refuses what only a restart can change: the settings that all sessions share.
func unchangeableBGP(is, wanted *config.BGP) error {
	common := func(b *config.BGP) string {
		if b == nil {
			return "none"
		}
		return fmt.Sprintf("asn %d, routerID %s, listen %s, routeTarget %s, routeDistinguisher "+
			"%s, gracefulRestart %s",
			b.ASN, b.RouterID, b.Listen, b.RouteTarget, b.RouteDistinguisher, b.GracefulRestart)
	}
	if common(is) == common(wanted) {
		return nil
	}
	return &config.Problem{
		Kind: config.ErrConflict, Path: "bgp",
		Text: "bgp can't change from " + common(is) + " to " + common(wanted) +
			" while the agent runs",
		Mend: "restart the agent with this file (packets are forwarded on meanwhile)",
	}
}

// learn takes in what routing says now.
func (a *Agent) learn() error {
	if a.speaker == nil && !a.routing.teaches() {
		return nil
	}
	peers, err := a.speaker.peers()
	if err != nil {
		return err
	}
	if a.node.Edge != nil {
		if err := a.learnMembers(peers); err != nil {
			return err
		}
	}
	if a.noteSettled(peers, time.Now()) {
		if err := a.refresh(); err != nil {
			return err
		}
	}
	if a.speaker == nil {
		return nil
	}
	if err := a.routesOfBGP(); err != nil {
		return err
	}
	return a.speaker.Announce(append(a.edgeAnnouncements(time.Now()), a.hostAnnouncements()...))
}

// peers lists the neighbors; a node without a speaker has none.
func (s *speaker) peers() ([]bgp.Peer, error) {
	if s == nil {
		return nil, nil
	}
	return s.Peers()
}

func (a *Agent) learnMembers(peers []bgp.Peer) error {
	before := a.store.kept.Learned
	after, err := a.decideMembers(peers)
	if err != nil {
		return err
	}
	changed := !slices.EqualFunc(before, after, discovery.Member.Equal)
	if changed {
		a.setLearned(after)
		a.logMembers(before, after)
		// Whom neighbors tell of before they have told all was there before this edge: it is not
		// held.
		if err := a.store.write(); err != nil {
			a.options.Log.Warn("a restarted agent will not know these backends", "error", err)
		}
		if err := a.refresh(); err != nil {
			return err
		}
	}
	return nil
}

func (a *Agent) decideMembers(peers []bgp.Peer) ([]discovery.Member, error) {
	routes, malformed := a.routing.backendRoutes(a.node)
	sessions := bgp.Sessions(peers)
	a.routing.sessions(sessions)
	if a.speaker != nil {
		announced, broken, err := a.speaker.Routes()
		if err != nil {
			return nil, err
		}
		routes, malformed = append(routes, announced...), append(malformed, broken...)
	}
	v := discovery.View{
		Domain: discovery.Domain{Block: a.node.Domain.Block,
			Carrier: a.node.Edge.Encapsulation == config.Carrier},
		Sessions: sessions, Routes: routes, Now: time.Now(),
	}
	for _, s := range a.node.Edge.Services {
		limit, _ := a.node.Edge.BucketsOf(&s)
		if running := a.edge.service(s.Endpoint); running != nil {
			limit = running.buckets
		}
		v.Services = append(v.Services, discovery.Service{Service: s, Limit: limit})
	}
	members, refused := discovery.Decide(a.store.kept.Learned, v)
	a.note(append(malformed, refused...))
	return members, nil
}

// note counts the routes that are ignored now, and were not a moment ago.
func (a *Agent) note(list []discovery.Refusal) {
	r := &a.routing
	refused := map[refusal]bool{}
	for _, x := range list {
		if !x.Route.Peer.IsValid() {
			continue // this node's own, for other edges
		}
		key := refusal{x.Route.Peer, x.Route.Prefix, x.Route.Distinguisher, x.Service, x.Reason}
		if refused[key] = true; !r.refused[key] {
			r.ignored[ignoredBy{discovery.SourceOf(x.Route.Peer), x.Reason}]++
		}
	}
	r.refused = refused
}

func (a *Agent) logMembers(before, after []discovery.Member) {
	service := map[config.Endpoint]string{}
	for _, s := range a.node.Edge.Services {
		service[s.Endpoint] = s.Name
	}
	text := func(members []discovery.Member) map[string]string {
		lines := map[string]string{}
		for _, m := range members {
			b := m.Backend()
			lines[service[m.Endpoint]+" "+b.Name] = fmt.Sprintf("%s, weight %d", b.State, b.Weight)
		}
		return lines
	}
	was, is := text(before), text(after)
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] != is[name] {
			a.options.Log.Info("routing: backend", "backend", name, "now", is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] == "" {
			a.options.Log.Info("routing: backend is gone", "backend", name)
		}
	}
}

// learnedKey is a backend that routing told of.
type learnedKey struct {
	endpoint config.Endpoint
	sid      netip.Addr
}

// setLearned makes the members those that routing told of.
func (a *Agent) setLearned(members []discovery.Member) {
	a.store.kept.Learned, a.learned = members, map[config.Endpoint][]config.Backend{}
	a.withdrawn = map[learnedKey]bool{}
	for _, m := range members {
		a.withdrawn[learnedKey{m.Endpoint, m.SID}] = !m.Withdrawn.IsZero()
		a.learned[m.Endpoint] = append(a.learned[m.Endpoint], m.Backend())
	}
}

// withLearned is a service with the backends of the node file and those that BGP told of. If their
// hosts want them up, the operator's word counts.
func (a *Agent) withLearned(s config.Service) config.Service {
	s.Backends = append(slices.Clone(s.Backends), a.learned[s.Endpoint]...)
	for _, l := range s.Learned {
		i := slices.IndexFunc(s.Backends, func(b config.Backend) bool { return b.SID == l.SID })
		if i < 0 {
			continue // nobody tells of it now
		}
		b := &s.Backends[i]
		b.Agent = l.Agent
		if b.State == config.Up || l.State == config.Down {
			b.State = l.State
		}
	}
	return s
}

// learnOrWarn goes on with what was known when something goes wrong.
func (a *Agent) learnOrWarn() {
	if err := a.learn(); err != nil {
		a.options.Log.Warn("what BGP says is not yet what runs; tried again soon", "error", err,
			"after", learnInterval)
	}
}

// askSpeaker runs f in the owner goroutine, if there is a speaker.
func (a *Agent) askSpeaker(ctx context.Context, f func(*speaker) error) error {
	var err error
	if doErr := a.do(ctx, func() {
		if a.speaker != nil {
			err = f(a.speaker)
		}
	}); doErr != nil {
		return doErr
	}
	return err
}
