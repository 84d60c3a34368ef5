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

// peering is what the node tells its BGP neighbors and routing tells the node.
type peering struct {
	*core
	*roles
	found   *discoveries
	routing *routing
	speaker *speaker // nil: the node speaks no BGP
}

// inner is the speaker itself, nil if there is none.
func (b *peering) inner() *bgp.Speaker {
	if b.speaker == nil {
		return nil
	}
	return b.speaker.Speaker
}

// hear gives the owner goroutine what BGP says.
func (b *peering) hear() {
	follow(b.life, &b.loop, b.speaker.changes(), func(struct{}) {
		b.learnOrWarn()
		for _, room := range having[routingListener](b.roles) {
			room.routingNews()
		}
	})
}

// end ends the sessions.
func (b *peering) end() { b.speaker.close(b.node) }

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
func (b *peering) open(n *config.Node) error {
	b.found.startup.settled = true
	if n.BGP == nil && n.Routing == nil {
		b.found.setLearned(nil)
		return nil
	}
	b.found.setLearned(b.store.kept.Learned)
	entries, _ := os.ReadDir(b.dir) // an error is a directory that is not there
	b.found.startup = startup{fresh: len(entries) == 0, began: time.Now(), settled: false}
	if n.BGP == nil {
		return nil
	}
	s, err := bgp.Open(bgp.Options{BGP: n.BGP, Restarting: len(entries) > 0, Log: b.options.Log})
	if err != nil {
		return err
	}
	b.found.startup.settled = n.Routing == nil && (n.Edge == nil || !settling(n.BGP, nil))
	b.speaker = &speaker{Speaker: s}
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
func (b *peering) learn() error {
	if b.speaker == nil && !b.routing.teaches() {
		return nil
	}
	peers, err := b.speaker.peers()
	if err != nil {
		return err
	}
	if b.node.Edge != nil {
		if err := b.learnMembers(peers); err != nil {
			return err
		}
	}
	if b.found.noteSettled(peers, b.routing.settling(), time.Now()) {
		if err := b.refresh(); err != nil {
			return err
		}
	}
	if b.speaker == nil {
		return nil
	}
	if err := b.routing.routesOfBGP(b.speaker); err != nil {
		return err
	}
	var list []bgp.Announcement
	for _, room := range having[announcer](b.roles) {
		list = append(list, room.announcements(time.Now())...)
	}
	return b.speaker.Announce(list)
}

// refresh makes what runs follow what was learned.
func (b *peering) refresh() error {
	for _, room := range having[learner](b.roles) {
		if err := room.refresh(); err != nil {
			return err
		}
	}
	return nil
}

// peers lists the neighbors; a node without a speaker has none.
func (s *speaker) peers() ([]bgp.Peer, error) {
	if s == nil {
		return nil, nil
	}
	return s.Peers()
}

func (b *peering) learnMembers(peers []bgp.Peer) error {
	before := b.store.kept.Learned
	after, err := b.decideMembers(peers)
	if err != nil {
		return err
	}
	changed := !slices.EqualFunc(before, after, discovery.Member.Equal)
	if changed {
		b.found.setLearned(after)
		b.logMembers(before, after)
		// Backends announced before the neighbors' End-of-RIB were there before this edge: none is
		// held.
		if err := b.store.write(); err != nil {
			b.options.Log.Warn("a restarted agent will not know these backends", "error", err)
		}
		if err := b.refresh(); err != nil {
			return err
		}
	}
	return nil
}

func (b *peering) decideMembers(peers []bgp.Peer) ([]discovery.Member, error) {
	routes, malformed := b.routing.backendRoutes(b.node)
	sessions := bgp.Sessions(peers)
	b.routing.sessions(sessions)
	if b.speaker != nil {
		announced, broken, err := b.speaker.Routes()
		if err != nil {
			return nil, err
		}
		routes, malformed = append(routes, announced...), append(malformed, broken...)
	}
	v := discovery.View{
		Domain: discovery.Domain{Block: b.node.Domain.Block,
			Carrier: b.node.Edge.Encapsulation == config.Carrier},
		Sessions: sessions, Routes: routes, Now: time.Now(),
	}
	for _, s := range b.node.Edge.Services {
		for _, room := range having[learner](b.roles) {
			v.Services = append(v.Services, discovery.Service{Service: s, Limit: room.limit(&s)})
		}
	}
	members, refused := discovery.Decide(b.store.kept.Learned, v)
	b.routing.noteRefused(append(malformed, refused...))
	return members, nil
}

// noteRefused counts the routes that are ignored now, and were not a moment ago.
func (r *routing) noteRefused(list []discovery.Refusal) {
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

func (b *peering) logMembers(before, after []discovery.Member) {
	service := map[config.Endpoint]string{}
	for _, s := range b.node.Edge.Services {
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
			b.options.Log.Info("routing: backend", "backend", name, "now", is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] == "" {
			b.options.Log.Info("routing: backend is gone", "backend", name)
		}
	}
}

// learnedKey is a backend that routing told of.
type learnedKey struct {
	endpoint config.Endpoint
	sid      netip.Addr
}

// setLearned makes the members those that routing told of.
func (d *discoveries) setLearned(members []discovery.Member) {
	d.store.kept.Learned, d.learned = members, map[config.Endpoint][]config.Backend{}
	d.withdrawn = map[learnedKey]bool{}
	for _, m := range members {
		d.withdrawn[learnedKey{m.Endpoint, m.SID}] = !m.Withdrawn.IsZero()
		d.learned[m.Endpoint] = append(d.learned[m.Endpoint], m.Backend())
	}
}

// withLearned is a service with the backends of the node file and those that BGP told of. If their
// hosts want them up, the operator's word counts.
func (d *discoveries) withLearned(s config.Service) config.Service {
	s.Backends = append(slices.Clone(s.Backends), d.learned[s.Endpoint]...)
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
func (b *peering) learnOrWarn() {
	if err := b.learn(); err != nil {
		b.options.Log.Warn("what BGP says is not yet what runs; tried again soon", "error", err,
			"after", learnInterval)
	}
}

// askSpeaker runs f in the owner goroutine, if there is a speaker.
func (b *peering) askSpeaker(ctx context.Context, f func(*speaker) error) error {
	var err error
	if doErr := b.do(ctx, func() {
		if b.speaker != nil {
			err = f(b.speaker)
		}
	}); doErr != nil {
		return doErr
	}
	return err
}
