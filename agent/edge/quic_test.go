package edge

import (
	"slices"
	"testing"

	"sextant/config"
	"sextant/lb/pool"
)

// The chains of a service without QUIC are not looked through for those who may have connections.
func TestBackendsOfQUIC(t *testing.T) {
	g, err := pool.New(pool.Spec{Buckets: 7, Candidates: 1}, []pool.Backend{{ID: 3, Weight: 1}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := Service{Generation: g, Members: []pool.Backend{{ID: 3}, {ID: 9}}}
	if configs, backends := s.quic(); configs != nil || backends != nil {
		t.Errorf("without QUIC there are %v of %v", configs, backends)
	}
	s.QUIC.Configs = []config.QUIC{{ServerIDLength: 2}}
	if configs, backends := s.quic(); len(configs) != 1 ||
		!slices.Equal(backends, []uint16{3, 9}) {
		t.Errorf("with QUIC there are %v of %v", configs, backends)
	}
}
