package bgp

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/api"
	"google.golang.org/protobuf/proto"

	"sextant/config"
)

// SetNeighbors makes these the neighbors. Sessions of those that stay as they were are left alone;
// one whose settings changed starts again. If the settings of one can't be used, nothing changes.
func (s *Speaker) SetNeighbors(neighbors []config.Neighbor) error {
	return s.setNeighbors(neighbors, false)
}

func (s *Speaker) setNeighbors(neighbors []config.Neighbor, restarting bool) error {
	peers := map[netip.Addr]*api.Peer{}
	for _, n := range neighbors {
		peer, err := s.peer(n)
		if err != nil {
			return fmt.Errorf("neighbor %s: %w", n.Address, err)
		}
		peers[n.Address] = peer
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
			peer.GracefulRestart.LocalRestarting = restarting
		}
		if err := s.server.AddPeer(context.Background(),
			&api.AddPeerRequest{Peer: peer}); err != nil {
			return fmt.Errorf("neighbor %s: begin a session: %w", n.Address, err)
		}
		s.peers[n.Address], s.watched[n.Address] = peers[n.Address], n.BFD != (config.BFD{})
	}
	return nil
}
