package discovery

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"sextant/config"
)

// View is what an edge knows at one time.
type View struct {
	Domain   Domain
	Services []Service
	Sessions map[netip.Addr]Session // of all peers; what others told is forgotten
	Routes   []Route
	Now      time.Time
}

// Decide returns who is a backend of the services now, given who was before, and which routes are
// ignored. Both lists are sorted, and depend neither on the order of the routes nor on that of the
// members before.
func Decide(before []Member, v View) ([]Member, []Refusal) {
	d := decision{view: v, before: map[memberKey]Member{}, past: map[config.Endpoint][]Member{},
		served: map[int]bool{}}
	for _, m := range before {
		d.before[memberKey{m.Endpoint, m.SID}] = m
	}
	d.view.Routes = slices.SortedFunc(slices.Values(v.Routes), compareRoutes)
	d.of = map[netip.Addr][]int{}
	for i, r := range d.view.Routes {
		d.of[r.Prefix.Addr()] = append(d.of[r.Prefix.Addr()], i)
	}
	for _, m := range before {
		d.past[m.Endpoint] = append(d.past[m.Endpoint], m)
	}
	for _, s := range v.Services {
		d.service(s)
	}
	for i, r := range d.view.Routes {
		if !d.served[i] {
			d.refusals = append(d.refusals, Refusal{Route: r, Reason: NoService})
		}
	}
	names := map[config.Endpoint]string{}
	for _, s := range v.Services {
		names[s.Endpoint] = s.Endpoint.String()
	}
	slices.SortFunc(d.members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(names[a.Endpoint], names[b.Endpoint]), a.SID.Compare(b.SID))
	})
	slices.SortStableFunc(d.refusals, func(a, b Refusal) int {
		return cmp.Or(compareRoutes(a.Route, b.Route), cmp.Compare(a.Service, b.Service))
	})
	return d.members, d.refusals
}

func compareRoutes(a, b Route) int {
	return cmp.Or(a.Prefix.Compare(b.Prefix), a.SID.Compare(b.SID),
		cmp.Compare(a.Distinguisher, b.Distinguisher), a.Peer.Compare(b.Peer))
}

type memberKey struct {
	endpoint config.Endpoint
	sid      netip.Addr
}

type decision struct {
	view     View
	before   map[memberKey]Member
	past     map[config.Endpoint][]Member // the same
	of       map[netip.Addr][]int         // routes by VIP
	served   map[int]bool                 // routes that are some service's
	members  []Member
	refusals []Refusal
}

func (d *decision) service(s Service) {
	told := map[netip.Addr]Member{}
	for _, i := range d.of[s.VIP] {
		r := d.view.Routes[i]
		if !r.serves(s.Endpoint) {
			continue
		}
		d.served[i] = true
		if reason := d.unfit(s.Service, r, told); reason != "" {
			d.refusals = append(d.refusals, Refusal{r, s.Name, reason})
			continue
		}
		told[r.SID] = joined(told[r.SID], s.Endpoint, r)
	}
	for _, m := range d.past[s.Endpoint] {
		if _, there := told[m.SID]; !there && d.remembered(s.Service, &m) {
			told[m.SID] = m
		}
	}
	d.admit(s, told)
}

// unfit says why a route can't be a backend of the service. The first host with a SID keeps it,
// among new ones that with the lowest distinguisher, because routes come sorted.
func (d *decision) unfit(s config.Service, r Route, told map[netip.Addr]Member) Reason {
	if !d.view.Domain.holds(r.SID) {
		return NotASID
	}
	if d.view.Domain.contradicts(r.Structure) {
		return BadStructure
	}
	if !r.does(s) {
		return BadBehavior
	}
	if reason := ofNodeFile(s, SourceOf(r.Peer), r.SID); reason != "" {
		return reason
	}
	owner, known := told[r.SID]
	if !known {
		if owner, known = d.before[memberKey{s.Endpoint, r.SID}]; known && !d.tells(s.Endpoint,
			owner) {
			known = false // the owner left the SID to another
		}
	}
	if known && owner.Distinguisher != r.Distinguisher {
		return SIDConflict
	}
	return ""
}

// ofNodeFile says whether the node file has a backend with this SID, or with the name that it would
// get.
func ofNodeFile(s config.Service, source Source, sid netip.Addr) Reason {
	for _, b := range s.Backends {
		switch {
		case b.SID == sid:
			return StaticSID
		case b.Name == Name(source, sid):
			return NameConflict
		}
	}
	return ""
}

// tells reports whether the owner of a SID still announces it.
func (d *decision) tells(endpoint config.Endpoint, owner Member) bool {
	return slices.ContainsFunc(d.of[endpoint.VIP], func(i int) bool {
		r := d.view.Routes[i]
		return r.SID == owner.SID && r.Distinguisher == owner.Distinguisher && r.serves(endpoint)
	})
}

// joined adds what one more peer tells of a member. While peers differ, which ends soon, the more
// careful word counts.
func joined(m Member, endpoint config.Endpoint, r Route) Member {
	if m.Peers == nil {
		m = Member{Endpoint: endpoint, SID: r.SID, Distinguisher: r.Distinguisher, Weight: r.Weight}
	}
	m.Weight = min(m.Weight, r.Weight)
	m.Draining = m.Draining || r.Draining
	if !slices.Contains(m.Peers, r.Peer) {
		m.Peers = append(m.Peers, r.Peer)
		slices.SortFunc(m.Peers, netip.Addr.Compare)
	}
	return m
}

// remembered judges a member that nobody tells of any more, and reports whether it stays.
func (d *decision) remembered(s config.Service, m *Member) bool {
	best, known := Lost, false
	for _, p := range m.Peers {
		session, is := d.session(p)
		best, known = max(best, session), known || is
		if session == Settling {
			best = Settling
			break
		}
	}
	switch {
	case !known || ofNodeFile(s, m.Source(), m.SID) != "" || !d.view.Domain.holds(m.SID):
		return false
	case best == Settling:
		return true
	}
	if m.Draining = true; m.Withdrawn.IsZero() {
		m.Withdrawn = d.view.Now
	}
	stays := s.DrainTime
	if stays == 0 && best == Lost {
		stays = lostStays
	}
	return stays == 0 || d.view.Now.Sub(m.Withdrawn) < stays
}

// lostStays is how long a host of which a lost peer told keeps its connections if no drain time is
// set. That a session ended says little about the host; if it is dead, no packet of others'
// connections ends there, since chains name it last.
const lostStays = time.Hour

// session is what a peer's word is worth, and whether it is a peer at all.
func (d *decision) session(peer netip.Addr) (Session, bool) {
	if !peer.IsValid() {
		return Standing, true // this node itself
	}
	session, known := d.view.Sessions[peer]
	return session, known
}

// admit takes as many members as the service can have: first those who have been there, then in the
// order of their SIDs.
func (d *decision) admit(s Service, told map[netip.Addr]Member) {
	room := max(s.Limit-len(s.Backends), 0)
	list := slices.SortedFunc(maps.Values(told), func(a, b Member) int {
		return cmp.Or(cmp.Compare(d.rank(a), d.rank(b)), a.SID.Compare(b.SID))
	})
	if len(list) > room {
		for _, i := range d.of[s.VIP] {
			r := d.view.Routes[i]
			refused := slices.ContainsFunc(list[room:], func(m Member) bool {
				return m.SID == r.SID && m.Distinguisher == r.Distinguisher
			})
			if refused && r.serves(s.Endpoint) {
				d.refusals = append(d.refusals, Refusal{r, s.Name, TooMany})
			}
		}
		list = list[:room]
	}
	d.members = append(d.members, list...)
}

func (d *decision) rank(m Member) int {
	if _, there := d.before[memberKey{m.Endpoint, m.SID}]; there {
		return 0
	}
	return 1
}
