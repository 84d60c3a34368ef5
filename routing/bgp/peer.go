package bgp

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"sextant/config"
	"sextant/lb/discovery"
)

// What the node file does not say of a session.
const (
	// until a lost session is tried again: a neighbor is one of our own, or a router of the same
	// network
	retrySeconds = 1
	// deferralSeconds is how long a restarted speaker waits for peers to tell all, before it tells
	// its own routes.
	deferralSeconds = 10
	// maxPrefixes of a family from one neighbor; more end the session for good. It bounds memory,
	// far above what a cluster announces. GoBGP's own limit counts all routes of a neighbor at each
	// of its messages: 10,000 took more than a minute.
	maxPrefixes = 200_000
	// settle is how long a new session counts as not having told all, if the neighbor does not mark
	// the end of it (RFC 4724 section 2, End-of-RIB).
	settle = 30 * time.Second
)

var familyNumbers = map[config.Family]*api.Family{
	config.IPv4Unicast: {Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST},
	config.IPv6Unicast: {Afi: api.Family_AFI_IP6, Safi: api.Family_SAFI_UNICAST},
	config.VPNv4:       {Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_MPLS_VPN},
	config.VPNv6:       {Afi: api.Family_AFI_IP6, Safi: api.Family_SAFI_MPLS_VPN},
	config.LinkState:   {Afi: api.Family_AFI_LS, Safi: api.Family_SAFI_LS},
}

// peer is the session of a neighbor as GoBGP configures it.
func (s *Speaker) peer(n config.Neighbor) (*api.Peer, error) {
	password := ""
	if n.PasswordFile != "" {
		text, err := os.ReadFile(n.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("read the password: %w", err)
		}
		password = strings.TrimSpace(string(text))
	}
	p := &api.Peer{
		Conf: &api.PeerConf{NeighborAddress: n.Address.String(), PeerAsn: uint32(n.ASN),
			AuthPassword: password},
		Timers: &api.Timers{Config: &api.TimersConfig{
			ConnectRetry: retrySeconds, IdleHoldTimeAfterReset: retrySeconds,
			HoldTime:          uint64(n.HoldTime / time.Second),
			KeepaliveInterval: max(uint64(n.HoldTime/time.Second/3), 1),
		}},
		Transport: &api.Transport{RemotePort: uint32(n.Port), PassiveMode: n.Passive},
	}
	if n.Local.IsValid() {
		p.Transport.LocalAddress = n.Local.String()
	}
	if n.Multihop > 0 {
		p.EbgpMultihop = &api.EbgpMultihop{Enabled: true, MultihopTtl: uint32(n.Multihop)}
	}
	if n.BFD != (config.BFD{}) {
		interval := uint32(n.BFD.Interval / time.Microsecond)
		p.Bfd = &api.BfdPeerConfig{
			Enabled: true, DesiredMinimumTxInterval: interval, RequiredMinimumReceive: interval,
			DetectionMultiplier: uint32(n.BFD.Multiplier),
		}
	}
	graceful := s.bgp.GracefulRestart > 0
	if graceful {
		p.GracefulRestart = &api.GracefulRestart{
			Enabled: true, RestartTime: uint32(s.bgp.GracefulRestart / time.Second),
			DeferralTime: deferralSeconds,
		}
	}
	for _, f := range n.Families {
		p.AfiSafis = append(p.AfiSafis, &api.AfiSafi{
			Config: &api.AfiSafiConfig{Family: familyNumbers[f], Enabled: true},
			MpGracefulRestart: &api.MpGracefulRestart{
				Config: &api.MpGracefulRestartConfig{Enabled: graceful},
			},
		})
	}
	return p, nil
}

// Peer is a neighbor and its session.
type Peer struct {
	Address netip.Addr
	ASN     int
	// of the session: RFC 4271 section 8.2.2, in lower case
	State   string
	Session discovery.Session // what the neighbor's word is worth
	// when the session came up or was lost; the zero value: it never was up
	Since                          time.Time
	Received, Accepted, Advertised uint64 // routes
	BFD                            string // "" if there is none
	Reason                         string // why the session was lost
}

// Up reports whether the session is established.
func (p Peer) Up() bool { return p.State == "established" }

// Peers lists the neighbors in the order of their addresses.
func (s *Speaker) Peers() ([]Peer, error) { return s.list(true) }

// States is Peers without how many routes were advertised: to count them, policies decide on each
// route for each neighbor anew. Without news it may be some seconds old, since also the others are
// counted one by one.
func (s *Speaker) States() ([]Peer, error) {
	s.listing.Lock()
	defer s.listing.Unlock()
	now := time.Since(s.started)
	settling := slices.ContainsFunc(s.states,
		func(p Peer) bool { return p.Session == discovery.Settling }) // until a time, without news
	if s.states != nil && !settling && !s.hasNews(s.statesAt) && now < s.statesAt+stateTime {
		return s.states, nil
	}
	peers, err := s.list(false)
	if err != nil {
		return nil, err
	}
	s.states, s.statesAt = peers, now
	return peers, nil
}

func (s *Speaker) list(advertised bool) ([]Peer, error) {
	now := time.Now()
	var peers, tooMany []Peer
	err := s.server.ListPeer(context.Background(),
		&api.ListPeerRequest{EnableAdvertised: advertised},
		func(p *api.Peer) {
			peer := s.peerOf(p, now)
			peers = append(peers, peer)
			if peer.Up() && mostOfFamily(p) > s.maxPrefixes {
				tooMany = append(tooMany, peer)
			}
		})
	if err != nil {
		return nil, fmt.Errorf("bgp: list peers: %w", err)
	}
	for _, p := range tooMany {
		s.end(p)
	}
	slices.SortFunc(peers, func(a, b Peer) int { return a.Address.Compare(b.Address) })
	return peers, nil
}

// mostOfFamily is how many routes of a family the neighbor tells of, of the one with the most.
func mostOfFamily(p *api.Peer) (most uint64) {
	for _, f := range p.GetAfiSafis() {
		most = max(most, f.GetState().GetReceived())
	}
	return most
}

// end ends the session of a neighbor that tells of too many routes. It stays down until the
// neighbor is configured anew: the next session would be the same.
func (s *Speaker) end(p Peer) {
	why := fmt.Sprintf("more than %d routes of a family", s.maxPrefixes)
	s.log.Error("bgp: a session is ended", "neighbor", p.Address, "reason", why, "remedy",
		"have it tell of hosts alone, take it out of the node file, and put it back")
	if err := s.server.DisablePeer(context.Background(), &api.DisablePeerRequest{
		Address: p.Address.String(), Communication: why}); err != nil {
		s.log.Error("bgp: the session could not be ended", "neighbor", p.Address, "error", err)
	}
}

func (s *Speaker) peerOf(p *api.Peer, now time.Time) Peer {
	address, _ := netip.ParseAddr(p.GetState().GetNeighborAddress()) // GoBGP wrote it
	peer := Peer{
		Address: address, ASN: int(p.GetState().GetPeerAsn()), Session: s.session(p, now),
		State: shortName(p.GetState().GetSessionState().String(), "SESSION_STATE_"),
	}
	for _, f := range p.GetAfiSafis() {
		peer.Received += f.GetState().GetReceived()
		peer.Accepted += f.GetState().GetAccepted()
		peer.Advertised += f.GetState().GetAdvertised()
	}
	s.mu.Lock()
	watched := s.watched[address]
	s.mu.Unlock()
	if watched {
		peer.BFD = shortName(p.GetState().GetBfdState().GetSessionState().String(),
			"BFD_SESSION_STATE_")
	}
	switch timers := p.GetTimers().GetState(); {
	case peer.Up():
		peer.Since = timers.GetUptime().AsTime()
	case timers.GetDowntime() != nil:
		peer.Since = timers.GetDowntime().AsTime()
		peer.Reason = disconnectReason(p.GetState().GetDisconnectReason())
	}
	return peer
}

// session judges what a neighbor's word is worth.
func (s *Speaker) session(p *api.Peer, now time.Time) discovery.Session {
	timers := p.GetTimers().GetState()
	if p.GetState().GetSessionState() == api.PeerState_SESSION_STATE_ESTABLISHED {
		if complete(p) || now.Sub(timers.GetUptime().AsTime()) > settle {
			return discovery.Standing
		}
		return discovery.Settling
	}
	patience := max(s.bgp.GracefulRestart, settle)
	switch {
	case p.GetGracefulRestart().GetPeerRestarting():
		return discovery.Settling
	case timers.GetDowntime() == nil && now.Sub(s.started) < patience:
		// this speaker began a moment ago; what an earlier one learned may still hold
		return discovery.Settling
	}
	return discovery.Lost
}

// complete reports whether the neighbor has marked the end of what it knew when the session came
// up, in all VPN families.
func complete(p *api.Peer) bool {
	for _, f := range p.GetAfiSafis() {
		vpn := f.GetConfig().GetFamily().GetSafi() == api.Family_SAFI_MPLS_VPN
		if vpn && !f.GetMpGracefulRestart().GetState().GetEndOfRibReceived() {
			return false
		}
	}
	return true
}

func disconnectReason(r api.PeerState_DisconnectReason) string {
	if r == api.PeerState_DISCONNECT_REASON_UNSPECIFIED {
		return ""
	}
	return shortName(r.String(), "DISCONNECT_REASON_")
}

// shortName makes "hold timer expired" of DISCONNECT_REASON_HOLD_TIMER_EXPIRED.
func shortName(name, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", " "))
}
