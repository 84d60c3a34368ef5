package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"time"

	"sextant/config"
	"sextant/membership"
	"sextant/pool"
	"sextant/rib"
	"sextant/srv6"
)

// speaker is the node's part in BGP. A nil speaker is a node without one.
type speaker struct {
	*rib.Speaker
	ignored map[membership.Reason]uint64 // routes that were ignored, since the agent began
	refused map[refusal]bool             // those that are ignored now
}

// refusal is what makes an ignored route another one.
type refusal struct {
	peer          netip.Addr
	prefix        netip.Prefix
	distinguisher string
	service       string
	reason        membership.Reason
}

// learnInterval is how often sessions are looked at, besides when one of them says something: the patience with a silent one ends.
const learnInterval = time.Second

// openSpeaker begins to speak, if the node file wants it. What the last agent learned holds until routing says otherwise.
func (a *Agent) openSpeaker(n *config.Node) error {
	if n.BGP == nil {
		a.setLearned(nil)
		return nil
	}
	a.setLearned(a.store.kept.Learned)
	entries, _ := os.ReadDir(a.dir) // an error is a directory that is not there
	s, err := rib.Open(rib.Options{BGP: n.BGP, Restarting: len(entries) > 0, Log: a.options.Log})
	if err != nil {
		return err
	}
	a.speaker = &speaker{Speaker: s, ignored: map[membership.Reason]uint64{}, refused: map[refusal]bool{}}
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
		return fmt.Sprintf("asn %d, routerID %s, listen %s, routeTarget %s, routeDistinguisher %s, gracefulRestart %s",
			b.ASN, b.RouterID, b.Listen, b.RouteTarget, b.RouteDistinguisher, b.GracefulRestart)
	}
	if common(is) == common(wanted) {
		return nil
	}
	return &config.Problem{
		Kind: config.ErrConflict, Path: "bgp",
		Text: "bgp can't change from " + common(is) + " to " + common(wanted) + " while the agent runs",
		Mend: "restart the agent with this file (packets are forwarded on meanwhile)",
	}
}

// learn takes in what routing says now.
func (a *Agent) learn() error {
	if a.speaker == nil {
		return nil
	}
	before := a.store.kept.Learned
	if a.node.Edge != nil {
		after, err := a.decideMembers()
		if err != nil {
			return err
		}
		if !slices.EqualFunc(before, after, membership.Member.Equal) {
			a.setLearned(after)
			a.logMembers(before, after)
			if err := errors.Join(a.refresh(), a.store.write()); err != nil {
				return err
			}
		}
	}
	return a.speaker.Announce(announcements(a.node, a.edge))
}

func (a *Agent) decideMembers() ([]membership.Member, error) {
	peers, err := a.speaker.Peers()
	if err != nil {
		return nil, err
	}
	routes, malformed, err := a.speaker.Routes()
	if err != nil {
		return nil, err
	}
	v := membership.View{
		Domain:   membership.Domain{Block: a.node.Domain.Block, Carrier: a.node.Edge.Encapsulation == config.Carrier},
		Sessions: rib.Sessions(peers), Routes: routes, Now: time.Now(),
	}
	for _, s := range a.node.Edge.Services {
		v.Services = append(v.Services, membership.Service{Service: s, Limit: a.node.Edge.Buckets})
	}
	members, refused := membership.Decide(a.store.kept.Learned, v)
	a.speaker.note(append(malformed, refused...))
	return members, nil
}

// note counts the routes that are ignored now, and were not a moment ago.
func (s *speaker) note(list []membership.Refusal) {
	refused := map[refusal]bool{}
	for _, r := range list {
		if !r.Route.Peer.IsValid() {
			continue // this node's own, for other edges
		}
		key := refusal{r.Route.Peer, r.Route.Prefix, r.Route.Distinguisher, r.Service, r.Reason}
		if refused[key] = true; !s.refused[key] {
			s.ignored[r.Reason]++
		}
	}
	s.refused = refused
}

func (a *Agent) logMembers(before, after []membership.Member) {
	service := map[config.Endpoint]string{}
	for _, s := range a.node.Edge.Services {
		service[s.Endpoint] = s.Name
	}
	text := func(members []membership.Member) map[string]string {
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
			a.options.Log.Info("BGP: backend", "backend", name, "now", is[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] == "" {
			a.options.Log.Info("BGP: backend is gone", "backend", name)
		}
	}
}

// setLearned makes the members those that BGP told of.
func (a *Agent) setLearned(members []membership.Member) {
	a.store.kept.Learned, a.learned = members, map[config.Endpoint][]config.Backend{}
	for _, m := range members {
		a.learned[m.Endpoint] = append(a.learned[m.Endpoint], m.Backend())
	}
}

// withLearned is a service with the backends of the node file and those that BGP told of.
func (a *Agent) withLearned(s config.Service) config.Service {
	s.Backends = append(slices.Clone(s.Backends), a.learned[s.Endpoint]...)
	return s
}

// learnOrWarn goes on with what was known when something goes wrong.
func (a *Agent) learnOrWarn() {
	if err := a.learn(); err != nil {
		a.options.Log.Warn("what BGP says is not yet what runs; tried again soon", "error", err, "after", learnInterval)
	}
}

// announcements are the routes that the node originates: the VIPs that the edge can serve, and what the host serves at which SID.
func announcements(n *config.Node, e *edgeRole) []rib.Announcement {
	var list []rib.Announcement
	if e != nil {
		vips := map[netip.Addr]bool{}
		for _, s := range e.services {
			if !vips[s.VIP] && slices.ContainsFunc(s.members, func(b pool.Backend) bool { return b.State != pool.Down }) {
				vips[s.VIP] = true
				list = append(list, rib.Announcement{VIP: s.VIP})
			}
		}
	}
	if n.Host == nil || n.BGP.Announce == config.AnnounceNothing {
		return list
	}
	ports := map[netip.Addr][]membership.Port{}
	for _, s := range n.Host.Services {
		ports[s.VIP] = append(ports[s.VIP], membership.Port{Protocol: s.Protocol, Port: s.Port})
	}
	for _, vip := range slices.SortedFunc(maps.Keys(ports), netip.Addr.Compare) {
		if sid, ok := sidFor(n.Host.SIDs, vip); ok {
			list = append(list, rib.Announcement{
				VIP: vip, SID: sid, Services: ports[vip], Weight: n.BGP.Weight, Draining: n.BGP.Announce == config.AnnounceDraining,
			})
		}
	}
	return list
}

// sidFor chooses the SID at which a host is offered connections to a VIP: End.OFFER, else what sends strays back, else what
// takes everything.
func sidFor(sids []config.SID, vip netip.Addr) (config.SID, bool) {
	wanted := []srv6.Behavior{srv6.EndOFFER, srv6.EndDT46COND, srv6.EndDT6COND, srv6.EndDT46, srv6.EndDT6}
	if vip.Is4() {
		wanted = []srv6.Behavior{srv6.EndOFFER, srv6.EndDT46COND, srv6.EndDT4COND, srv6.EndDT46, srv6.EndDT4}
	}
	for _, behavior := range wanted {
		if i := slices.IndexFunc(sids, func(s config.SID) bool { return s.Behavior == behavior }); i >= 0 {
			return sids[i], true
		}
	}
	return config.SID{}, false
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
