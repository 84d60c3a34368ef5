package agent

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"time"

	"sextant/agent/role"
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
	*role.Core
	*role.Roles
	found   *role.Discoveries
	routing *routing
	speaker *speaker // nil: the node speaks no BGP
	decided decided
	owes    bool // what runs does not follow what was learned
	spoken  bool // the neighbors are those of the node that runs
}

// decided is what members were decided by last: by the same, they are the same again.
type decided struct {
	node     *config.Node
	table    *bgp.Table
	sessions map[netip.Addr]discovery.Session
}

// holds reports whether members are decided by the same again. Where others than BGP tell of hosts,
// or the time decides, they are not.
func (d *decided) holds(now decided, members []discovery.Member) bool {
	return d.table != nil && d.node == now.node && d.table == now.table &&
		maps.Equal(d.sessions, now.sessions) &&
		!slices.ContainsFunc(members, func(m discovery.Member) bool {
			return !m.Withdrawn.IsZero()
		})
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
	role.Follow(b.Life, &b.Loop, b.speaker.changes(), func(struct{}) {
		b.learnOrWarn()
		for _, room := range role.Having[role.RoutingListener](b.Roles) {
			room.RoutingNews()
		}
	})
}

// end ends the sessions.
func (b *peering) end() { b.speaker.close(b.Node) }

// refusal is what makes an ignored route another one.
type refusal struct {
	peer          netip.Addr
	prefix        netip.Prefix
	distinguisher string
	service       string
	reason        discovery.Reason
}

// open makes what is to speak, if the node file wants it, once the node runs: a start that is
// refused has spoken to nobody. What the last agent learned holds until routing says otherwise.
func (b *peering) open(n *config.Node) error {
	b.found.Startup.Settled = true
	if n.BGP == nil && n.Routing == nil {
		b.found.SetLearned(nil)
		return nil
	}
	b.found.SetLearned(b.Store.Kept.Learned)
	entries, _ := os.ReadDir(b.Dir) // an error is a directory that is not there
	b.found.Startup = role.Startup{Fresh: len(entries) == 0, Began: time.Now(), Settled: false}
	if n.BGP == nil {
		return nil
	}
	s, err := bgp.Open(bgp.Options{BGP: n.BGP, Restarting: len(entries) > 0, Log: b.Log})
	if err != nil {
		return err
	}
	b.found.Startup.Settled = n.Routing == nil && (n.Edge == nil || !role.Settling(n.BGP, nil))
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

// check refuses neighbors whose settings can't be used.
func (s *speaker) check(n *config.Node) error {
	if s == nil || n.BGP == nil {
		return nil
	}
	if err := s.CheckNeighbors(n.BGP.Neighbors); err != nil {
		return fmt.Errorf("bgp: %w", err)
	}
	return nil
}

// speak makes the neighbors those of the node that runs.
func (b *peering) speak() error {
	if b.spoken || b.speaker == nil || b.Node.BGP == nil {
		return nil
	}
	err := b.speaker.SetNeighbors(b.Node.BGP.Neighbors)
	b.spoken = err == nil
	return err
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
	if err := b.speak(); err != nil {
		return err
	}
	peers, err := b.speaker.peers()
	if err != nil {
		return err
	}
	if b.Node.Edge != nil {
		if err := b.learnMembers(peers); err != nil {
			return err
		}
	}
	if b.found.NoteSettled(peers, b.routing.settling(), time.Now()) || b.owes {
		if err := b.refresh(nil); err != nil {
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
	for _, room := range role.Having[role.Announcer](b.Roles) {
		list = append(list, room.Announcements(time.Now())...)
	}
	return b.speaker.Announce(list)
}

// refresh makes what runs follow what was learned: the services of endpoints, nil: all. What fails
// is owed.
func (b *peering) refresh(of map[config.Endpoint]bool) error {
	if b.owes {
		of = nil
	}
	b.owes = true
	for _, room := range role.Having[role.Learner](b.Roles) {
		if err := room.Refresh(of); err != nil {
			return err
		}
	}
	b.owes = false
	return nil
}

// peers lists the neighbors; a node without a speaker has none.
func (s *speaker) peers() ([]bgp.Peer, error) {
	if s == nil {
		return nil, nil
	}
	return s.States()
}

func (b *peering) learnMembers(peers []bgp.Peer) error {
	before := b.Store.Kept.Learned
	after, err := b.decideMembers(peers)
	if err != nil {
		return err
	}
	if slices.EqualFunc(before, after, discovery.Member.Equal) {
		return nil
	}
	b.found.SetLearned(after)
	changed := b.logMembers(before, after)
	// Backends announced before the neighbors' End-of-RIB were there before this edge: no hold.
	if err := b.Store.Write(); err != nil {
		b.Log.Warn("a restarted agent will not know these backends", "error", err)
	}
	return b.refresh(changed)
}

func (b *peering) decideMembers(peers []bgp.Peer) ([]discovery.Member, error) {
	routes, malformed := b.routing.backendRoutes(b.Node)
	sessions := bgp.Sessions(peers)
	b.routing.sessions(sessions)
	by := decided{node: b.Node, sessions: sessions}
	if b.speaker != nil {
		var err error
		if by.table, err = b.speaker.Routes(); err != nil {
			return nil, err
		}
		if !b.routing.teaches() && b.decided.holds(by, b.Store.Kept.Learned) {
			return b.Store.Kept.Learned, nil
		}
		routes, malformed = append(routes, by.table.Routes...),
			append(malformed, by.table.Refused...)
	}
	v := discovery.View{
		Domain: discovery.Domain{Block: b.Node.Domain.Block,
			Carrier: b.Node.Edge.Encapsulation == config.Carrier},
		Sessions: sessions, Routes: routes, Now: time.Now(),
	}
	for _, room := range role.Having[role.Learner](b.Roles) {
		for i := range b.Node.Edge.Services {
			s := &b.Node.Edge.Services[i]
			v.Services = append(v.Services, discovery.Service{Service: *s, Limit: room.Limit(s)})
		}
	}
	members, refused := discovery.Decide(b.Store.Kept.Learned, v)
	b.routing.noteRefused(append(malformed, refused...))
	b.decided = by
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

// logMembers tells of the members that are not what they were, and returns whose they are.
func (b *peering) logMembers(before, after []discovery.Member) map[config.Endpoint]bool {
	changed, was := map[config.Endpoint]bool{}, map[role.LearnedKey]discovery.Member{}
	for _, m := range before {
		was[role.LearnedKey{Endpoint: m.Endpoint, SID: m.SID}] = m
	}
	var lines []memberLine
	counts := map[string]int{}
	note := func(what string, m discovery.Member, now string) {
		lines = append(lines, memberLine{m, now})
		counts[what]++
	}
	for _, m := range after {
		key, is := role.LearnedKey{Endpoint: m.Endpoint, SID: m.SID}, m.Backend()
		old, known := was[key]
		delete(was, key)
		if known && old.Equal(m) {
			continue
		}
		changed[m.Endpoint] = true
		now := fmt.Sprintf("%s, weight %d", is.State, is.Weight)
		if then := old.Backend(); !known {
			note("came", m, now)
		} else if is.State != then.State || is.Weight != then.Weight {
			note("changed", m, now)
		}
	}
	for _, m := range before {
		if _, gone := was[role.LearnedKey{Endpoint: m.Endpoint, SID: m.SID}]; gone {
			changed[m.Endpoint] = true
			note("gone", m, "gone")
		}
	}
	b.log(lines, counts, len(changed))
	return changed
}

// memberLine is a member, and what it is now.
type memberLine struct {
	discovery.Member
	now string
}

func (b *peering) log(lines []memberLine, counts map[string]int, services int) {
	service := map[config.Endpoint]string{}
	for _, s := range b.Node.Edge.Services {
		service[s.Endpoint] = s.Name
	}
	name := func(l memberLine) string { return service[l.Endpoint] + " " + l.Backend().Name }
	role.LogSeveral(b.Log, "routing: backend", lines, func(l memberLine) []any {
		return []any{"backend", name(l), "now", l.now}
	}, name, func() []any {
		return []any{"came", counts["came"], "changed", counts["changed"], "gone", counts["gone"],
			"services", services}
	})
}

// learnOrWarn goes on with what was known when something goes wrong.
func (b *peering) learnOrWarn() {
	if err := b.learn(); err != nil {
		b.Log.Warn("what BGP says is not yet what runs; tried again soon", "error", err,
			"after", role.LearnInterval)
	}
}

// askSpeaker runs f in the owner goroutine, if there is a speaker.
func (b *peering) askSpeaker(ctx context.Context, f func(*speaker) error) error {
	var err error
	if doErr := b.Do(ctx, func() {
		if b.speaker != nil {
			err = f(b.speaker)
		}
	}); doErr != nil {
		return doErr
	}
	return err
}
