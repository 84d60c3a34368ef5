package bgp_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"sextant/config"
	"sextant/routing/bgp"
	"sextant/routing/linkstate"
	"sextant/routing/linkstate/linkstatetest"
	"sextant/te/protection"
	"sextant/te/topology"
)

// lsRouter is a speaker that tells of a network's links, as a router with BGP-LS does.
func lsRouter(t *testing.T, n, neighbor int) *server.BgpServer {
	t.Helper()
	s := server.NewBgpServer(server.LoggerOption(slog.New(slog.NewTextHandler(t.Output(), nil)),
		new(slog.LevelVar)))
	go s.Serve()
	t.Cleanup(s.Stop)
	must(t, s.StartBgp(context.Background(), &api.StartBgpRequest{Global: &api.Global{
		Asn: 64512, RouterId: loopback(n).String(), ListenPort: port,
		ListenAddresses: []string{loopback(n).String()},
	}}))
	must(t, s.AddPeer(context.Background(), &api.AddPeerRequest{Peer: &api.Peer{
		Conf:      &api.PeerConf{NeighborAddress: loopback(neighbor).String(), PeerAsn: 64512},
		Transport: &api.Transport{RemotePort: port, LocalAddress: loopback(n).String()},
		AfiSafis: []*api.AfiSafi{{Config: &api.AfiSafiConfig{
			Family: &api.Family{Afi: api.Family_AFI_LS, Safi: api.Family_SAFI_LS}, Enabled: true,
		}}},
	}}))
	return s
}

// A topology comes over BGP-LS with its SIDs, and follows what the router says: a link goes,
// another gets a worse metric.
func TestTopologyOverBGP(t *testing.T) {
	near := settings(1, 2)
	near.Neighbors[0].Families = []config.Family{config.LinkState}
	speaker := open(t, bgp.Options{BGP: near})
	far := lsRouter(t, 2, 1)
	var n linkstatetest.Network
	for i, name := range []string{"R1", "R2", "R3"} {
		n.Node(i+1, name, "fcbb:bb00:"+string(rune('1'+i))+"::")
	}
	for _, ends := range [][2]int{{1, 2}, {2, 3}, {1, 3}} {
		n.Link(ends[0], ends[1], linkstatetest.Link{Number: ends[0]*8 + ends[1], Metric: 10,
			Delay: 100, EndX: "fcbb:bb00:1:e001::"})
		n.Link(ends[1], ends[0], linkstatetest.Link{Number: ends[0]*8 + ends[1], Metric: 10})
	}
	tell := func(paths ...*apiutil.Path) {
		t.Helper()
		_, err := far.AddPath(apiutil.AddPathRequest{Paths: paths})
		must(t, err)
	}
	tell(n.Routes...)
	graph := func() *topology.Graph {
		t.Helper()
		routes, err := speaker.LinkState()
		must(t, err)
		g, _, err := linkstate.Graph("net", routes)
		must(t, err)
		return g
	}
	await(t, speaker, "three nodes with their SIDs, and three links", func() bool {
		g := graph()
		for name, sid := range map[string]string{"R1": "fcbb:bb00:1::", "R2": "fcbb:bb00:2::",
			"R3": "fcbb:bb00:3::"} {
			if v, ok := g.Lookup(name); !ok || g.Node(v).SID.Addr().String() != sid {
				return false
			}
		}
		return g.Nodes() == 3 && g.Edges() == 6
	})
	weight := func(from, to string) uint32 {
		if e, ok := protection.EdgeOf(graph(), protection.Link{From: from, To: to}); ok {
			return graph().Weight(e)
		}
		return 0
	}
	var changed linkstatetest.Network
	changed.Link(1, 2, linkstatetest.Link{Number: 10, Metric: 99})
	tell(changed.Routes...)
	await(t, speaker, "the metric of R1>R2 is 99",
		func() bool { return weight("R1", "R2") == 99 && weight("R2", "R1") == 10 })
	for _, p := range n.Routes {
		if p.Nlri.(*gobgp.LsAddrPrefix).Type == gobgp.LS_NLRI_TYPE_LINK &&
			strings.Contains(p.Nlri.String(), "LOCAL_NODE: 0000.0000.0003") {
			must(t, far.DeletePath(apiutil.DeletePathRequest{Paths: []*apiutil.Path{p}}))
		}
	}
	await(t, speaker, "R3 has no link that both ends tell of",
		func() bool { return graph().Edges() == 2 && weight("R1", "R3") == 0 })
}
