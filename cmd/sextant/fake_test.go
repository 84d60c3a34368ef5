package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/membership"
)

const fakeNode = `
node: both1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  services:
    - name: web
      vip: 2001:db8:80::80
      port: 80
      backends:
        - {name: web1, sid: "fcbb:bb00:1::"}
        - {name: web2, sid: "fcbb:bb00:2::", weight: 2}
        - {name: web3, sid: "fcbb:bb00:3::", state: draining}
    - {name: dns, vip: 192.0.2.53, port: any, protocol: udp}
host:
  interfaces: [{name: eth1}]
  sids: [{prefix: "fcbb:bb00:9::/48", behavior: End.OFFER}, {prefix: "fcbb:bb00:9:d46::/64", behavior: End.DT46}]
  services:
    - {name: api, vip: 2001:db8:80::81, port: 443, accept: {policy: dynamic, workers: 32}}
    - {name: rest, vip: 2001:db8:80::81, port: any}
`

const fakeEdge = `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge: {interfaces: [{name: eth0}], source: fd00:5e::e1}
`

// fakeAgent keeps a configuration and makes numbers up. While it is busy, each look finds more packets.
type fakeAgent struct {
	mu   sync.Mutex
	node *config.Node
	busy bool
	look uint64
}

func (f *fakeAgent) Status(context.Context) (api.Status, error) {
	return api.Status{
		Node: f.node.Name, Version: "v1.2.3", Roles: f.node.Roles(),
		StartedAt: time.Date(2026, 11, 5, 10, 30, 0, 0, time.UTC), UptimeSeconds: 7384,
		ConfigHash: "0123456789abcdef",
		Programs: []api.Program{
			{Name: "edge", Interface: "eth0", Mode: config.Native, Side: config.Mixed, Tag: "00aa11bb22cc33dd"},
			{Name: "host", Interface: "eth1", Mode: config.Generic, Tag: "99aa11bb22cc33dd"},
			{Name: "host_sockets", Cgroup: "/sys/fs/cgroup", Tag: "77aa11bb22cc33dd"},
		},
		Warnings: []string{"eth1 runs the program in generic mode, which is slower; use a driver with native XDP"},
	}, nil
}

func (f *fakeAgent) Services(context.Context) ([]api.Service, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy {
		f.look++
	}
	var list []api.Service
	for i, s := range f.node.Edge.Services {
		list = append(list, f.edgeService(uint64(i), s))
	}
	if f.node.Host != nil {
		for _, s := range f.node.Host.Services {
			list = append(list, f.hostService(s))
		}
	}
	return list, nil
}

func (f *fakeAgent) edgeService(i uint64, s config.Service) api.Service {
	edge := &api.EdgeService{
		Policy: s.Policy, Table: s.Table, Candidates: s.Candidates, Depth: s.Depth, Encapsulation: f.node.Edge.Encapsulation, Buckets: f.node.Edge.Buckets, Backends: []api.Backend{},
	}
	for j, b := range s.Backends {
		packets := uint64(1000*(j+1)) + f.look
		edge.Backends = append(edge.Backends, api.Backend{
			Service: s.Name, Name: b.Name, SID: b.SID, Weight: b.Weight, State: b.State, Effective: b.State, Agent: b.Agent,
			Health:  fakeHealth(b.Name),
			Buckets: 100 * b.Weight, Packets: packets, Bytes: 100 * packets,
		})
	}
	packets := 12345*(i+1) + f.look
	return api.Service{
		Name: s.Name, Role: api.Edge, VIP: s.VIP, Protocol: s.Protocol, Port: s.Port,
		Packets: packets, Bytes: 100 * packets, Edge: edge,
	}
}

// fakeHealth is that of two backends; nobody checks the others.
func fakeHealth(backend string) *api.Health {
	since := time.Date(2026, 11, 5, 11, 0, 0, 0, time.UTC)
	switch backend {
	case "web1":
		return &api.Health{Status: "healthy", Since: since, LastCheck: &since, LastDurationSeconds: 0.001, SucceededChecks: 9}
	case "web2":
		return &api.Health{Status: "failing", Since: since, LastCheck: &since, LastDurationSeconds: 1, FailedChecks: 3,
			LastError: "get /health: status 503, not 200-399"}
	}
	return nil
}

func (f *fakeAgent) hostService(s config.HostService) api.Service {
	host := &api.HostService{
		Accept: api.AcceptOf(s.Accept), Threshold: 3,
		Offered: 100, Accepted: 60, Refused: 40, Forced: 7, PassedOnPackets: 55, PassedOnBytes: 5500,
	}
	if f.busy {
		host.Busy = 5
	}
	return api.Service{
		Name: s.Name, Role: api.Host, VIP: s.VIP, Protocol: s.Protocol, Port: s.Port, Packets: 777, Bytes: 77700, Host: host,
	}
}

func (f *fakeAgent) Counters(context.Context) ([]api.Counters, error) {
	list := []api.Counters{{
		Role: api.Edge, PassedPackets: 5, HandedToKernelPackets: 1, TransmittedPackets: 20, RedirectedPackets: 300,
		Drops: []api.Drop{{Reason: "no_service", Packets: 2}, {Reason: "fragment"}},
	}}
	if f.node.Host != nil {
		list = append(list, api.Counters{Role: api.Host, TakenPackets: 777,
			Drops: []api.Drop{{Reason: "ecn", Packets: 1}}})
	}
	return list, nil
}

func (f *fakeAgent) Maps(context.Context) ([]api.Map, error) {
	entries := 3
	return []api.Map{
		{Name: "services", Role: api.Edge, Type: "Hash", Entries: &entries, Capacity: 2048},
		{Name: "drops", Role: api.Edge, Type: "PerCPUArray", Capacity: 20},
	}, nil
}

func (f *fakeAgent) Trace(_ context.Context, flow api.Flow) (api.Trace, error) {
	left := 12.3
	return api.Trace{
		Flow: flow, Service: "web", Policy: config.PolicyOffer, Table: config.Rendezvous, Bucket: 4711, Buckets: 65537, FlowLabel: 0x1a2b3,
		Chain: []api.Place{
			{Backend: "web1", SID: netip.MustParseAddr("fcbb:bb00:1::"), Role: "candidate", State: config.Up},
			{Backend: "web2", SID: netip.MustParseAddr("fcbb:bb00:2::"), Role: "past", State: config.Draining, LeftSeconds: &left},
		},
		Opening:   []netip.Addr{netip.MustParseAddr("fcbb:bb00:1::")},
		Following: []netip.Addr{netip.MustParseAddr("fcbb:bb00:1:2::")},
	}, nil
}

func (f *fakeAgent) BGPPeers(context.Context) ([]api.BGPPeer, error) {
	if f.node.Host == nil {
		return nil, nil
	}
	since := time.Date(2026, 11, 5, 11, 0, 0, 0, time.UTC)
	return []api.BGPPeer{
		{Address: netip.MustParseAddr("192.0.2.1"), ASN: 64512, State: "established", Session: "standing", BFD: "up", Since: &since,
			ReceivedRoutes: 3, AdvertisedRoutes: 1},
		{Address: netip.MustParseAddr("2001:db8::1"), ASN: 64513, State: "active", Session: "lost", Since: &since, Reason: "hold timer expired"},
	}, nil
}

func (f *fakeAgent) BGPRoutes(context.Context) ([]api.BGPRoute, error) {
	if f.node.Host == nil {
		return nil, nil
	}
	vip, peer, sid := netip.MustParseAddr("2001:db8:80::80"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fcbb:bb00:7::")
	return []api.BGPRoute{
		{Direction: api.Announced, VIP: vip},
		{Direction: api.Learned, VIP: vip, SID: &sid, Behavior: "End.OFFER", Weight: 2, Peer: &peer, Distinguisher: "192.0.2.7:1",
			Services: []membership.Port{{Protocol: config.TCP, Port: 80}, {Protocol: config.UDP}}},
		{Direction: api.Learned, VIP: vip, SID: &sid, Behavior: "End.OFFER", Weight: 1, Draining: true, Peer: &peer,
			Distinguisher: "192.0.2.8:1", Ignored: membership.SIDConflict},
	}, nil
}

func (f *fakeAgent) Config(context.Context) (*config.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.node, nil
}

func (f *fakeAgent) Change(_ context.Context, edit func(*config.Node) (*config.Node, error)) ([]config.Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := edit(f.node)
	if err != nil {
		return nil, err
	}
	changes := config.Diff(f.node, next)
	f.node = next
	return changes, nil
}

func (f *fakeAgent) Replace(ctx context.Context, read func() (*config.Node, error), dryRun bool) ([]config.Change, error) {
	next, err := read()
	if err != nil {
		return nil, err
	}
	if next.API.Socket != f.node.API.Socket {
		return nil, errors.New("api.socket can't change while the agent runs; restart the agent")
	}
	if dryRun {
		return config.Diff(f.node, next), nil
	}
	return f.Change(ctx, func(*config.Node) (*config.Node, error) { return next, nil })
}

// Events happen one at each look while the agent is busy.
func (f *fakeAgent) Events(_ context.Context, after uint64) ([]api.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.look <= after {
		return nil, nil
	}
	return []api.Event{{
		Number: f.look, Time: time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC), Service: "web", Backend: "web2", Status: "failing",
		Reason: "connect to [2001:db8:80::80]:80 at fcbb:bb00:2::: connection refused",
	}}, nil
}

func (f *fakeAgent) Metrics() http.Handler { return http.NotFoundHandler() }

// world is a machine with a fake agent, for the commands of one test.
type world struct {
	t           *testing.T
	agent       *fakeAgent
	socket      string
	stdin       string
	interactive bool
	terminal    bool
	environ     map[string]string
	stdout      bytes.Buffer
	stderr      bytes.Buffer
}

func newWorld(t *testing.T, nodeFile string) *world {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(nodeFile))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, agent: &fakeAgent{node: node}, socket: filepath.Join(t.TempDir(), "s"),
		environ: map[string]string{}}
	listener, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: api.NewHandler(w.agent)}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	w.environ["SEXTANT_SOCKET"] = w.socket
	return w
}

func (w *world) env(args ...string) *env {
	return &env{
		args:  args,
		stdin: strings.NewReader(w.stdin), stdout: &w.stdout, stderr: &w.stderr,
		interactive: w.interactive, terminal: w.terminal,
		getenv:   func(name string) string { return w.environ[name] },
		connect:  api.NewClient,
		sleep:    func(context.Context, time.Duration) {},
		runAgent: w.runAgent,
		unload: func(node *config.Node, bpf string) error {
			fmt.Fprintf(&w.stdout, "unload node %v bpf %q\n", node != nil, bpf)
			return nil
		},
		demo: func(_ context.Context, o demoOptions) error {
			_, err := io.WriteString(o.Output, "demo\n")
			return err
		},
	}
}

func (w *world) runAgent(_ context.Context, o agentOptions) error {
	fmt.Fprintf(&w.stdout, "agent of %s, bpf %q, debug %v\n", o.Node.Name, o.BPF, o.Log.Enabled(context.Background(),
		slog.LevelDebug))
	return nil
}

// run executes a command line and writes what it printed like a terminal session.
func (w *world) run(args ...string) string {
	w.stdout.Reset()
	w.stderr.Reset()
	code := run(w.t.Context(), w.env(args...))
	var text strings.Builder
	fmt.Fprintf(&text, "$ sextant %s\n%s", strings.Join(args, " "), w.stdout.String())
	if w.stderr.Len() > 0 {
		fmt.Fprintf(&text, "[stderr]\n%s", w.stderr.String())
		if !strings.HasSuffix(w.stderr.String(), "\n") {
			text.WriteString("\n")
		}
	}
	fmt.Fprintf(&text, "[exit %d]\n", code)
	return strings.ReplaceAll(text.String(), w.socket, "SOCKET")
}
