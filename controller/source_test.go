package controller

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/server"

	"sextant/routing/linkstate/linkstatetest"
)

// routeReflector is a neighbor that tells of a network by BGP-LS, and marks the end of what it
// knows.
type routeReflector struct {
	t                 *testing.T
	own, neighbor     netip.AddrPort
	server            *server.BgpServer
	nodes, links, all []*apiutil.Path
}

// loopbackPort is a port that is free on a loopback address that is no other process's.
func loopbackPort(t *testing.T, last byte) netip.AddrPort {
	t.Helper()
	pid := os.Getpid()
	address := netip.AddrFrom4([4]byte{127, byte(64 + pid>>8%128), byte(pid), last})
	l, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

func newRouteReflector(t *testing.T) *routeReflector {
	r := &routeReflector{t: t, own: loopbackPort(t, 1), neighbor: loopbackPort(t, 2)}
	var nodes, links linkstatetest.Network
	for i, name := range []string{"a", "b", "c", "d"} {
		nodes.Node(i+1, name, fmt.Sprintf("fcbb:bb00:%d::", i+1))
	}
	for i, ends := range [][2]int{{1, 2}, {2, 4}, {1, 3}, {3, 4}} {
		l := linkstatetest.Link{Number: i + 1, Metric: 10, Kbps: 1_000_000}
		links.Link(ends[0], ends[1], l)
		links.Link(ends[1], ends[0], l)
	}
	r.nodes, r.links = nodes.Routes, links.Routes
	r.all = slices.Concat(r.nodes, r.links)
	return r
}

func (r *routeReflector) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// begin opens the session, over which routes are told that are there.
func (r *routeReflector) begin(paths []*apiutil.Path) {
	r.t.Helper()
	r.server = server.NewBgpServer(server.LoggerOption(slog.New(slog.DiscardHandler),
		new(slog.LevelVar)))
	go r.server.Serve()
	ctx := context.Background()
	r.must(r.server.StartBgp(ctx, &api.StartBgpRequest{Global: &api.Global{Asn: 64512,
		RouterId: r.own.Addr().String(), ListenPort: int32(r.own.Port()),
		ListenAddresses: []string{r.own.Addr().String()}}}))
	r.tell(paths...)
	r.must(r.server.AddPeer(ctx, &api.AddPeerRequest{Peer: &api.Peer{
		Conf: &api.PeerConf{NeighborAddress: r.neighbor.Addr().String(), PeerAsn: 64512},
		Transport: &api.Transport{RemotePort: uint32(r.neighbor.Port()),
			LocalAddress: r.own.Addr().String()},
		Timers: &api.Timers{Config: &api.TimersConfig{ConnectRetry: 1,
			IdleHoldTimeAfterReset: 1}},
		GracefulRestart: &api.GracefulRestart{Enabled: true, RestartTime: 1},
		AfiSafis: []*api.AfiSafi{{
			Config: &api.AfiSafiConfig{Enabled: true,
				Family: &api.Family{Afi: api.Family_AFI_LS, Safi: api.Family_SAFI_LS}},
			MpGracefulRestart: &api.MpGracefulRestart{
				Config: &api.MpGracefulRestartConfig{Enabled: true}},
		}},
	}}))
}

func (r *routeReflector) tell(paths ...*apiutil.Path) {
	r.t.Helper()
	if len(paths) > 0 {
		_, err := r.server.AddPath(apiutil.AddPathRequest{Paths: paths})
		r.must(err)
	}
}

func (r *routeReflector) withdraw(paths ...*apiutil.Path) {
	r.t.Helper()
	r.must(r.server.DeletePath(apiutil.DeletePathRequest{Paths: paths}))
}

// A controller waits for a topology that comes by BGP-LS, moves flows off links that are withdrawn,
// takes links of another rate and routers that are new, and keeps the topology while nobody tells
// of one.
func TestTopologyByBGP(t *testing.T) {
	r := newRouteReflector(t)
	c, stop := startWithout(t, fmt.Sprintf(`topology: bgp
bgp:
  asn: 64512
  routerID: 192.0.2.9
  listen: "%s"
  gracefulRestart: 0s
  neighbors: [{address: %s, asn: 64512, port: %d, local: %s, holdTime: 3s}]
links: [{from: a, to: b, queueBytes: 1000}, {from: a, to: e, queueBytes: 1000}]
`, r.neighbor, r.own.Addr(), r.own.Port(), r.neighbor.Addr()))
	defer stop()
	r.begin(r.all)
	s := awaitStatus(t, c, "four routers",
		func(s Status) bool { return s.Nodes == 4 && s.Links == 8 })
	if !slices.ContainsFunc(s.Warnings, func(w string) bool {
		return strings.Contains(w, `no router "e"`)
	}) {
		t.Errorf("a link of the file that is not there: warnings %q", s.Warnings)
	}
	report := paused(1, "a", "b", "d")
	d, err := c.Report(t.Context(), []Report{report})
	r.must(err)
	if len(d) != 1 || d[0].Verdict != "moved" || !slices.Equal(d[0].Path, []string{"a", "c", "d"}) {
		t.Fatalf("%+v", d)
	}
	pinned := Pin{Flow: testFlow(2), Path: []string{"a", "b", "d"}}
	r.must(c.Pin(t.Context(), pinned))

	r.withdraw(r.links[4]) // a>c
	awaitStatus(t, c, "one link is down",
		func(s Status) bool { return s.LinksDown == 2 && s.Nodes == 4 })
	moves, err := c.Reroutes(t.Context(), 10, true)
	r.must(err)
	if !slices.ContainsFunc(moves, func(d Decision) bool {
		return d.Flow == report.Flow && slices.Equal(d.Path, []string{"a", "b", "d"})
	}) {
		t.Errorf("the flow over the link that went: %+v", moves)
	}
	r.tell(r.links[4])
	awaitStatus(t, c, "the link is back", func(s Status) bool { return s.LinksDown == 0 })

	var more linkstatetest.Network
	more.Node(5, "e", "fcbb:bb00:5::")
	for _, ends := range [][2]int{{1, 5}, {5, 1}, {4, 5}, {5, 4}} {
		more.Link(ends[0], ends[1], linkstatetest.Link{Number: min(ends[0], ends[1]) + 8,
			Metric: 10, Kbps: 500_000})
	}
	r.tell(more.Routes...)
	s = awaitStatus(t, c, "five routers",
		func(s Status) bool { return s.Nodes == 5 && s.Links == 12 })
	if len(s.Warnings) > 0 && strings.Contains(strings.Join(s.Warnings, " "), `"e"`) {
		t.Errorf("warnings %q", s.Warnings)
	}
	flows, err := c.Flows(t.Context())
	r.must(err)
	if !slices.ContainsFunc(flows, func(f Flow) bool { return f.Pinned && f.Flow == pinned.Flow }) {
		t.Errorf("the pinned flow is gone: %+v", flows)
	}

	r.server.Stop()
	awaitStatus(t, c, "the last topology is used on", func(s Status) bool {
		return s.Nodes == 5 && s.LinksDown == 0 && slices.ContainsFunc(s.Warnings,
			func(w string) bool { return strings.Contains(w, "the last one is used") })
	})
	r.begin(slices.Concat(r.all[:len(r.all)-2], more.Routes))
	awaitStatus(t, c, "all but one link are told of anew", func(s Status) bool {
		return s.Nodes == 5 && s.LinksDown == 2 && !slices.ContainsFunc(s.Warnings,
			func(w string) bool { return strings.Contains(w, "the last one is used") })
	})
	r.server.Stop()
}

// startWithout runs a controller that may not answer yet.
func startWithout(t *testing.T, text string) (*Client, func()) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "c.sock")
	config, err := Parse([]byte(text + "seed: 1\napi: {socket: " + socket + "}\n"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Config: config, Log: slog.New(slog.NewTextHandler(t.Output(),
			nil))})
	}()
	return NewClient(socket), func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func awaitStatus(t *testing.T, c *Client, what string, holds func(Status) bool) (s Status) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 *
		time.Millisecond) {
		if s, err = c.Status(t.Context()); err == nil && holds(s) {
			return s
		}
	}
	t.Fatalf("never: %s: %+v, %v", what, s, err)
	return s
}

// A file says who tells the topology, in the words of a node file.
func TestSectionOfTheSpeaker(t *testing.T) {
	const section = "bgp: {asn: 64512, routerID: 192.0.2.9, neighbors: [{address: 2001:db8::1, " +
		"asn: 64512}]}\n"
	c, err := Parse([]byte("topology: bgp\n" + section))
	if err != nil || c.BGP.Neighbors[0].Families[0] != "link-state" ||
		c.BGP.Listen != netip.MustParseAddrPort("[::]:179") {
		t.Fatalf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"topology: bgp": "section bgp",
		"topology: isis\nblock: fcbb:bb00::/32\n" + section:              "write topology: bgp",
		"topology: bgp\n" + strings.Replace(section, "64512", "0", 1):    "asn 0 is out of range",
		"topology: bgp\n" + strings.Replace(section, "asn", "as", 1):     `unknown key "as"`,
		"topology: bgp\n" + strings.Replace(section, "asn", "weight", 1): `unknown key "weight"`,
		"topology: bgp\nbgp: 3": "bgp",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
