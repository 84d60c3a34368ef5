package bgp

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/api"
	"google.golang.org/protobuf/proto"

	"sextant/config"
)

// CheckNeighbors refuses what SetNeighbors would refuse, and changes nothing.
func (s *Speaker) CheckNeighbors(neighbors []config.Neighbor) error {
	_, err := s.configured(neighbors)
	return err
}

// configured are neighbors as GoBGP configures them.
func (s *Speaker) configured(neighbors []config.Neighbor) (map[netip.Addr]*api.Peer, error) {
	peers := map[netip.Addr]*api.Peer{}
	for _, n := range neighbors {
		peer, err := s.peer(n)
		if err != nil {
			return nil, fmt.Errorf("neighbor %s: %w", n.Address, err)
		}
		peers[n.Address] = peer
	}
	return peers, nil
}

// SetNeighbors makes these the neighbors. Sessions of those that stay as they were are left alone;
// one whose settings changed starts again. If the settings of one can't be used, nothing changes.
func (s *Speaker) SetNeighbors(neighbors []config.Neighbor) error {
	peers, err := s.configured(neighbors)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for address, running := range s.peers {
		if wanted, stays := peers[address]; stays && proto.Equal(running, wanted) {
			continue
		}
		if err := s.server.DeletePeer(context.Background(),
			&api.DeletePeerRequest{Address: address.String()}); err != nil {
			return fmt.Errorf("neighbor %s: end the session: %w", address, err)
		}
		delete(s.peers, address)
		delete(s.watched, address)
	}
	for _, n := range neighbors {
		if _, runs := s.peers[n.Address]; runs {
			continue
		}
		peer := proto.CloneOf(peers[n.Address]) // GoBGP keeps what it is given, and changes it
		if peer.GracefulRestart != nil {
			peer.GracefulRestart.LocalRestarting = s.restarting
		}
		if err := s.server.AddPeer(context.Background(),
			&api.AddPeerRequest{Peer: peer}); err != nil {
			return fmt.Errorf("neighbor %s: begin a session: %w", n.Address, err)
		}
		s.peers[n.Address], s.watched[n.Address] = peers[n.Address], n.BFD != (config.BFD{})
	}
	s.restarting = false
	return nil
}
