package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/lb/discovery"
)

// Table is what the speaker knows of hosts. It never changes.
type Table struct {
	Routes  []discovery.Route
	Refused []discovery.Refusal // that are meant for this cluster but can't be used
}

// A table stays the same until there is news. It is listed anew for some time after that, since
// news may come before the table has changed, and now and then in any case, so that nothing rests
// on news alone.
const (
	newsTime  = 3 * time.Second
	listTime  = 15 * time.Second
	stateTime = 5 * time.Second // of neighbors
)

// noteNews notes that sessions or routes may have changed.
func (s *Speaker) noteNews() { s.news.Store(int64(time.Since(s.started))) }

// hasNews reports whether what was listed at a time may have changed since.
func (s *Speaker) hasNews(listed time.Duration) bool {
	return listed <= time.Duration(s.news.Load())+newsTime
}

// Routes lists the routes of hosts that are here now, this node's own among them. The same table as
// before says that nothing has changed.
func (s *Speaker) Routes() (*Table, error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	now := time.Since(s.started)
	if s.table != nil && !s.hasNews(s.listed) && now < s.listed+listTime {
		return s.table, nil
	}
	table, err := s.listTable()
	if err != nil {
		return nil, err
	}
	s.table, s.listed = table, now
	return table, nil
}

func (s *Speaker) listTable() (*Table, error) {
	t := &Table{}
	for _, family := range []gobgp.Family{gobgp.RF_IPv4_VPN, gobgp.RF_IPv6_VPN} {
		request := apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL,
			Family: family}
		err := s.server.ListPath(request, func(_ gobgp.NLRI, paths []*apiutil.Path) {
			for _, p := range paths {
				route, reason, ours := s.speech.decode(p)
				switch {
				case !ours:
				case reason != "":
					t.Refused = append(t.Refused, discovery.Refusal{Route: route, Reason: reason})
				default:
					t.Routes = append(t.Routes, route)
				}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("bgp: list %s routes: %w", family, err)
		}
	}
	return t, nil
}

// LinkState lists the routes of family link-state that are here now, for package linkstate to read:
// the best of each.
func (s *Speaker) LinkState() ([]*apiutil.Path, error) {
	var routes []*apiutil.Path
	request := apiutil.ListPathRequest{TableType: api.TableType_TABLE_TYPE_GLOBAL,
		Family: gobgp.RF_LS}
	err := s.server.ListPath(request, func(_ gobgp.NLRI, paths []*apiutil.Path) {
		for _, p := range paths {
			if p.Best {
				routes = append(routes, p)
				return
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("bgp: list link-state routes: %w", err)
	}
	return routes, nil
}

// TellingLinkState names a neighbor whose session is new and who has not yet marked the end of the
// link-state routes that it knows (RFC 4724 section 2); false: there is none. One that marks no end
// is not waited for.
func (s *Speaker) TellingLinkState() (netip.Addr, bool) {
	now := time.Now()
	var telling netip.Addr
	err := s.server.ListPeer(context.Background(), &api.ListPeerRequest{}, func(p *api.Peer) {
		up := p.GetState().GetSessionState() == api.PeerState_SESSION_STATE_ESTABLISHED
		if !up || now.Sub(p.GetTimers().GetState().GetUptime().AsTime()) > settle {
			return
		}
		for _, f := range p.GetAfiSafis() {
			mark := f.GetMpGracefulRestart().GetState()
			if f.GetConfig().GetFamily().GetSafi() == api.Family_SAFI_LS && mark.GetReceived() &&
				!mark.GetEndOfRibReceived() {
				telling, _ = netip.ParseAddr(p.GetState().GetNeighborAddress())
			}
		}
	})
	return telling, err == nil && telling.IsValid()
}

// Sessions says what each neighbor's word is worth.
func Sessions(peers []Peer) map[netip.Addr]discovery.Session {
	sessions := make(map[netip.Addr]discovery.Session, len(peers))
	for _, p := range peers {
		sessions[p.Address] = p.Session
	}
	return sessions
}

// Faults counts updates that broke the rules of their bytes, since the speaker was opened, by what
// became of them.
func (s *Speaker) Faults() map[string]uint64 { return s.faults.counts() }
