package e2e_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v4/pkg/server"

	"sextant/routing/linkstate/linkstatetest"
)

// runLinkState is a router that tells a neighbor of the network of examples/protect.yaml by BGP-LS:
// "OWN NEIGHBOR FILE". When there is something in the file, the link from b1 to c1 is gone.
func runLinkState(ctx context.Context, args []string) error {
	s := gobgp.NewBgpServer()
	go s.Serve()
	defer s.Stop()
	err := s.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{
		Asn: 64512, RouterId: "192.0.2.7", ListenPort: 179, ListenAddresses: []string{args[0]},
	}})
	if err != nil {
		return err
	}
	family := &api.Family{Afi: api.Family_AFI_LS, Safi: api.Family_SAFI_LS}
	err = s.AddPeer(ctx, &api.AddPeerRequest{Peer: &api.Peer{
		Conf:      &api.PeerConf{NeighborAddress: args[1], PeerAsn: 64512},
		Transport: &api.Transport{LocalAddress: args[0], RemotePort: 179},
		Timers: &api.Timers{Config: &api.TimersConfig{ConnectRetry: 1,
			IdleHoldTimeAfterReset: 1}},
		AfiSafis: []*api.AfiSafi{{Config: &api.AfiSafiConfig{Family: family, Enabled: true}}},
	}})
	if err != nil {
		return err
	}
	var all, gone linkstatetest.Network
	ladderRoutes(&all)
	linkBoth(&gone, 3, 4, 1001)
	if _, err := s.AddPath(apiutil.AddPathRequest{Paths: all.Routes}); err != nil {
		return err
	}
	for withdrawn := false; ; time.Sleep(20 * time.Millisecond) {
		if ctx.Err() != nil {
			return nil
		}
		if text, err := os.ReadFile(args[2]); err == nil && len(text) > 0 && !withdrawn {
			if err := s.DeletePath(apiutil.DeletePathRequest{Paths: gone.Routes}); err != nil {
				return err
			}
			withdrawn = true
		}
	}
}

// ladderRoutes numbers r1 and r7 as 1 and 2, then b1, c1, b2 and so on.
func ladderRoutes(n *linkstatetest.Network) {
	n.Node(1, "r1", "fcbb:bb00:1::")
	n.Node(2, "r7", "fcbb:bb00:7::")
	for i := 1; i <= 4; i++ {
		near, far := 2*i+1, 2*i+2
		n.Node(near, fmt.Sprintf("b%d", i), fmt.Sprintf("fcbb:bb00:b%d::", i))
		n.Node(far, fmt.Sprintf("c%d", i), fmt.Sprintf("fcbb:bb00:c%d::", i))
		linkBoth(n, 1, near, 10)
		linkBoth(n, near, far, uint32(1000+i))
		linkBoth(n, far, 2, 10)
	}
}

func linkBoth(n *linkstatetest.Network, a, b int, delay uint32) {
	l := linkstatetest.Link{Number: min(a, b)*32 + max(a, b), Metric: 10, Delay: delay,
		Kbps: 10_000}
	n.Link(a, b, l)
	n.Link(b, a, l)
}
