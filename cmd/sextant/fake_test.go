package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/discovery"
	"sextant/linux/facts"
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

// fakeBeside is a node beside whose router strays are taken away.
const fakeBeside = `
node: web1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
strays: {interfaces: [{name: eth0}], vrfs: [{vrf: blue, backup: green}]}
`

// fakeEgress is a node with two protected flows.
const fakeEgress = `
node: egress
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
merge: {interfaces: [{name: eth0}], sids: [{prefix: "fcbb:bb00:2:f::/80", flows: [1, 2]}, {prefix: "fcbb:bb00:2:e::/80", flows: [7], form: sid, ordered: true}]}
`

// fakeAgent keeps a configuration and makes numbers up. While it is busy, each look finds more
// packets.
type fakeAgent struct {
	mu   sync.Mutex
	node *config.Node
	busy bool
	look uint64

	flows []api.FlowPath
	past  []*config.Node // before node
	kept  bool           // a configuration was confirmed
}

func (f *fakeAgent) Status(context.Context) (api.Status, error) {
	return api.Status{
		Node: f.node.Name, Version: "v1.2.3", Roles: f.node.Roles(),
		StartedAt: time.Date(2026, 11, 5, 10, 30, 0, 0, time.UTC), UptimeSeconds: 7384,
		ConfigHash: "0123456789abcdef",
		Programs: []api.Program{
			{Name: "edge", Interface: "eth0", Mode: config.Native, Side: config.Mixed,
				Tag: "00aa11bb22cc33dd"},
			{Name: "host", Interface: "eth1", Mode: config.Generic, Tag: "99aa11bb22cc33dd"},
			{Name: "host_sockets", Cgroup: "/sys/fs/cgroup", Tag: "77aa11bb22cc33dd"},
		},
		Warnings: []string{"eth1 runs the program in generic mode, which is slower; use a driver " +
			"with native XDP"},
	}, nil
}

func (f *fakeAgent) Services(_ context.Context, names ...string) ([]api.Service, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy {
		f.look++
	}
	var list []api.Service
	if f.node.Edge != nil {
		for i, s := range f.node.Edge.Services {
			list = append(list, f.edgeService(uint64(i), s))
		}
	}
	if f.node.Host != nil {
		for _, s := range f.node.Host.Services {
			list = append(list, f.hostService(s))
		}
	}
	list = slices.DeleteFunc(list, func(s api.Service) bool {
		return len(names) > 0 && !slices.Contains(names, s.Name)
	})
	return list, nil
}

func (f *fakeAgent) edgeService(i uint64, s config.Service) api.Service {
	buckets, _ := f.node.Edge.BucketsOf(&s)
	edge := &api.EdgeService{
		Policy: s.Policy, Table: s.Table, Candidates: s.Candidates, Depth: s.Depth,
		Encapsulation: f.node.Edge.Encapsulation, Buckets: buckets, Backends: []api.Backend{},
	}
	for j, b := range s.Backends {
		packets := uint64(1000*(j+1)) + f.look
		edge.Backends = append(edge.Backends, api.Backend{
			Service: s.Name, Name: b.Name, SID: b.SID, Weight: b.Weight, State: b.State,
			Effective: b.State, Agent: b.Agent, Source: "config",
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
		return &api.Health{Status: "healthy", Since: since, LastCheck: &since,
			LastDurationSeconds: 0.001, SucceededChecks: 9}
	case "web2":
		return &api.Health{Status: "failing", Since: since, LastCheck: &since,
			LastDurationSeconds: 1, FailedChecks: 3,
			LastError: "get /health: status 503, not 200-399"}
	}
	return nil
}

func (f *fakeAgent) hostService(s config.HostService) api.Service {
	host := &api.HostService{
		Accept: api.AcceptOf(s.Accept), Threshold: 3,
		Offered: 100, Accepted: 60, Refused: 40, Forced: 7, PassedOnPackets: 55,
		PassedOnBytes: 5500,
	}
	if f.busy {
		host.Busy, host.Connections = 5, 5
	}
	return api.Service{
		Name: s.Name, Role: api.Host, VIP: s.VIP, Protocol: s.Protocol, Port: s.Port, Packets: 777,
		Bytes: 77700, Host: host,
	}
}

func (f *fakeAgent) Counters(context.Context) ([]api.Counters, error) {
	list := []api.Counters{{
		Role: api.Edge, PassedPackets: 5, HandedToKernelPackets: 1, TransmittedPackets: 20,
		RedirectedPackets: 300,
		LearnedPackets:    4, FlowCache: []api.CacheEvent{{Event: "hit", Packets: 300},
			{Event: "miss", Packets: 7}},
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
		Flow: flow, Service: "web", Policy: config.PolicyOffer, Table: config.Rendezvous,
		Bucket: 4711, Buckets: 65537, FlowLabel: 0x1a2b3,
		Chain: []api.Place{
			{Backend: "web1", SID: netip.MustParseAddr("fcbb:bb00:1::"), Role: "candidate",
				State: config.Up},
			{Backend: "web2", SID: netip.MustParseAddr("fcbb:bb00:2::"), Role: "past",
				State: config.Draining, LeftSeconds: &left},
		},
		Opening:   []netip.Addr{netip.MustParseAddr("fcbb:bb00:1::")},
		Following: []netip.Addr{netip.MustParseAddr("fcbb:bb00:1:2::")},
	}, nil
}

// DumpMap has a map of services, and one with a copy per CPU.
func (f *fakeAgent) DumpMap(_ context.Context, _ api.Role, name string,
	limit int) ([]api.MapEntry, error) {
	zero, one := 0, 1
	lists := map[string][]api.MapEntry{
		"services": {
			{Key: map[string]any{"vip": "2001:db8:80::80", "port": 80, "protocol": 6},
				Value: map[string]any{"index": 1}},
			{Key: map[string]any{"vip": "2001:db8:80::80", "port": 443, "protocol": 6},
				Value: map[string]any{"index": 2}},
		},
		"drops": {{Key: "REASON_FRAGMENT", Value: 3, CPU: &zero},
			{Key: "REASON_FRAGMENT", Value: 4, CPU: &one}},
	}
	list, known := lists[name]
	if !known {
		return nil, &api.Error{Code: api.NotFound,
			Message: "there is no map " + name + "; see: sextant map list"}
	}
	if limit > 0 {
		list = list[:min(limit, len(list))]
	}
	return list, nil
}

// Explain knows flows to 198.51.100.80 and all to port 80; of frames, it drops those of one byte.
func (f *fakeAgent) Explain(ctx context.Context, q api.Question) ([]api.Explanation, error) {
	if f.node.Strays != nil {
		return explainedStrays(q), nil
	}
	if f.node.Merge != nil {
		return explainedCopies(f.node.Merge, q), nil
	}
	trace := func(flow api.Flow) *api.Trace { t, _ := f.Trace(ctx, flow); return &t }
	sid := netip.MustParseAddr
	e := api.Explanation{
		Number: 1, Role: api.Edge, Interface: "eth0", Program: "00aa11bb22cc33dd", Bytes: 74,
		Verdict: "transmit", Outcome: "transmitted", OfferedTo: []string{"web1", "web2"},
		Why: "led over fcbb:bb00:a1::; offered to web1, then web2: the first that accepts or has " +
			"the connection takes it, the last must", Service: "web",
		Header: []api.HeaderSID{
			{Bytes: "00a1", SID: sid("fcbb:bb00:a1::"), Role: "path", Name: "left",
				Does: "End: sends it on to the next SID"},
			{Bytes: "0001", SID: sid("fcbb:bb00:1::"), Role: "backend", Backend: "web1",
				Does: "takes it if it accepts it or has its connection, else sends it on to web2"},
			{Bytes: "0002", SID: sid("fcbb:bb00:2::"), Role: "backend", Backend: "web2",
				Does: "takes it, as the last"},
		},
		Way: &api.Way{By: config.ByDelay, Node: "out", Links: []string{"in>left", "left>out"},
			Paths: 1, Cost: 10, Least: 10, Own: 100, AgeSeconds: 12},
		Path: []netip.Addr{netip.MustParseAddr("fcbb:bb00:a1:1:2::")},
		NextHop: &api.NextHop{Interface: "eth0", Source: "02:00:00:00:00:02",
			Destination: "02:00:00:00:00:03"},
		Frame: strings.Repeat("5e", 114),
	}
	if q.Flow != nil {
		e.Packet, e.Flow, e.Trace = "opening", q.Flow, trace(*q.Flow)
		following := e
		following.Number, following.Packet, following.Bytes = 2, "following", 60
		return []api.Explanation{e, following}, nil
	}
	flow := api.Flow{Source: netip.MustParseAddrPort("203.0.113.7:40000"),
		Destination: netip.MustParseAddrPort("198.51.100.80:80"), Protocol: config.TCP}
	var list []api.Explanation
	for i, frame := range q.Frames {
		known := e
		known.Number, known.Packet, known.Flow, known.Trace, known.Bytes = i+1, "frame", &flow,
			trace(flow), len(frame)
		if len(frame) < 20 {
			known = api.Explanation{Number: i + 1, Packet: "frame", Role: api.Edge,
				Interface: "eth0", Program: e.Program, Bytes: len(frame), Verdict: "drop",
				Reason: "truncated", Why: "dropped: a header does not fit before the end of the " +
					"packet"}
		}
		list = append(list, known)
	}
	return list, nil
}

// explainedStrays are a packet that opens a connection to a VRF, and a stray.
func explainedStrays(q api.Question) []api.Explanation {
	flow := q.Flow
	if flow == nil {
		flow = &api.Flow{Source: netip.MustParseAddrPort("203.0.113.7:40000"),
			Destination: netip.MustParseAddrPort("198.51.100.80:80"), Protocol: config.TCP}
	}
	opening := api.Explanation{
		Number: 1, Packet: "opening", Role: api.Strays, Interface: "eth0",
		Program: "00aa11bb22cc33dd", Flow: flow, Bytes: 94, Verdict: "pass", Outcome: "passed",
		SID: &api.SID{Prefix: netip.MustParsePrefix("fcbb:bb00:1:46::/128"), Behavior: "End.DT46"},
		VRF: &api.ExplainedVRF{Name: "blue", Backup: "green", Left: "continues_nothing"},
		Why: "passed to the kernel as it came, which decapsulates it into VRF blue: only a " +
			"packet that continues a TCP connection can be astray",
	}
	stray := opening
	stray.Number, stray.Packet, stray.Verdict, stray.Outcome, stray.Offer = 2, "following",
		"hand_to_kernel", "taken", "stray"
	shadow := []netip.Addr{netip.MustParseAddr("fcbb:bb00:d0::")}
	stray.VRF = &api.ExplainedVRF{Name: "blue", Backup: "green",
		Leaves: &api.StrayWay{Fate: "forwarded", Interface: "eth0", Segments: shadow}}
	stray.Frame = strings.Repeat("5e", 54)
	stray.Why = "a stray: VRF blue has no such connection; decapsulated, and received on green, " +
		"from where the kernel's routes send it by eth0 to fcbb:bb00:d0::"
	return []api.Explanation{opening, stray}
}

// explainedCopies are those of a flow's next packet to each protected flow.
func explainedCopies(m *config.Merge, q api.Question) (list []api.Explanation) {
	for _, s := range m.SIDs {
		var flows []uint32
		for _, flow := range s.Flows {
			flows = append(flows, uint32(flow))
		}
		for i, flow := range flows {
			e := api.Explanation{
				Number: len(list) + 1, Packet: fmt.Sprintf("by flow %d", flow), Role: api.Merge,
				Interface: "eth0", Program: "00aa11bb22cc33dd",
				SID: &api.SID{Prefix: s.Prefix, Behavior: "End.MERGE"},
				Copy: &api.ExplainedCopy{Flow: flow, Flows: flows, Number: 1, First: i == 0,
					Waits: s.Ordered},
				Bytes: 126, Verdict: "drop", Reason: "duplicate",
				Why: fmt.Sprintf("packet 1 by flow %d is dropped: another copy has come", flow),
			}
			if i == 0 {
				e.Flow, e.Verdict, e.Outcome, e.Reason, e.Frame = q.Flow, "hand_to_kernel", "taken",
					"", strings.Repeat("5e", 62)
				e.Why = fmt.Sprintf("the first copy of packet 1, by flow %d: decapsulated, for "+
					"the kernel to route", flow)
			}
			list = append(list, e)
		}
	}
	return list
}

// Capture sees two packets, of which the second is dropped, and then the interface is gone.
func (f *fakeAgent) Capture(ctx context.Context, want api.Capture, begin func() error,
	each func([]api.CapturedPacket) error) error {
	if err := begin(); err != nil {
		return err
	}
	at := time.Date(2026, 11, 5, 12, 0, 0, 250000, time.UTC)
	list, err := f.Explain(ctx, api.Question{Frames: []api.Frame{make([]byte, 60),
		make([]byte, 14)}})
	if err != nil {
		return err
	}
	for i, e := range list {
		e.Trace, e.NextHop, e.Path, e.Frame = nil, nil, nil, ""
		if i > 0 {
			node, queue := uint64(9), uint32(1200)
			e.Telemetry = []api.CarriedTelemetry{{Format: "int-md", Hops: []api.Hop{{Node: &node},
				{Hop: 1, QueueBytes: &queue}}}}
		}
		if want.Matches(&e) {
			p := api.CapturedPacket{Time: at.Add(time.Duration(i) * time.Millisecond),
				Frame: make([]byte, e.Bytes), Lost: 3, Explanation: e}
			if err := each([]api.CapturedPacket{p}); err != nil {
				return err
			}
		}
	}
	return errors.New("the interface is gone")
}

func (f *fakeAgent) BGPPeers(context.Context) ([]api.BGPPeer, error) {
	if f.node.Host == nil {
		return nil, nil
	}
	since := time.Date(2026, 11, 5, 11, 0, 0, 0, time.UTC)
	return []api.BGPPeer{
		{Address: netip.MustParseAddr("192.0.2.1"), ASN: 64512, State: "established",
			Session: "standing", BFD: "up", Since: &since,
			ReceivedRoutes: 3, AdvertisedRoutes: 1},
		{Address: netip.MustParseAddr("2001:db8::1"), ASN: 64513, State: "active", Session: "lost",
			Since: &since, Reason: "hold timer expired"},
	}, nil
}

func (f *fakeAgent) Routes(context.Context) ([]api.Route, error) {
	if f.node.Host == nil {
		return nil, nil
	}
	hop := func(weight int, sids ...string) api.RouteHop {
		h := api.RouteHop{Weight: weight}
		for _, s := range sids {
			h.Segments = append(h.Segments, netip.MustParseAddr(s))
		}
		return h
	}
	return []api.Route{
		{VRF: "blue", Prefix: netip.MustParsePrefix("2001:db8:80::80/128"),
			Datapath: config.WithKernel,
			NextHops: []api.RouteHop{hop(1, "fcbb:bb00:1::"), hop(2, "fcbb:bb00:7::",
				"fcbb:bb00:2::")}, Shadow: []api.RouteHop{hop(1, "fcbb:bb00:3::")}},
		{VRF: "blue", Prefix: netip.MustParsePrefix("2001:db8:80::81/128"),
			Datapath: config.WithKernel, NextHops: []api.RouteHop{}, Pending: true,
			Shadow: []api.RouteHop{hop(1, "fcbb:bb00:3::")}},
		{VRF: "red", Prefix: netip.MustParsePrefix("192.0.2.80/32"), Datapath: config.WithEBPF,
			NextHops: []api.RouteHop{hop(1, "fcbb:bb00:1::")},
			Ignored:  discovery.NoService},
	}, nil
}

func (f *fakeAgent) RouteSources(context.Context) ([]api.RouteSource, error) {
	if f.node.Host == nil {
		return nil, nil
	}
	client := netip.MustParseAddrPort("[::1]:40000")
	return []api.RouteSource{
		{Source: config.SourceFPM, Client: &client, Complete: true, Routes: 3, Messages: 17,
			Sessions: 2, Reason: "the client left"},
		{Source: config.SourceKernel, Routes: 1, Resyncs: 4},
	}, nil
}

func (f *fakeAgent) Subflows(context.Context) ([]api.MPTCPConnection, error) {
	return []api.MPTCPConnection{
		{Token: "0a1b2c3d", Source: netip.MustParseAddrPort("10.1.0.1:40123"),
			Destination: netip.MustParseAddrPort("10.2.0.1:443"), Rule: "fabric", State: "managed",
			AckedBytes: 73400320, Subflows: []api.MPTCPSubflow{
				{Source: netip.MustParseAddrPort("10.1.0.1:40123"), Path: "1,0"},
				{Source: netip.MustParseAddrPort("10.1.0.1:22578"), Path: "0,1", Backup: true}}},
		{Token: "7d00a1f2", Source: netip.MustParseAddrPort("10.1.0.1:40124"),
			Destination: netip.MustParseAddrPort("192.0.2.7:22"), State: "left",
			AckedBytes: 4096, Subflows: []api.MPTCPSubflow{}},
	}, nil
}

func (f *fakeAgent) NextHops(context.Context) ([]api.NextHops, error) {
	if f.node.Host == nil {
		return nil, nil
	}
	gateway := netip.MustParseAddr("10.0.1.2")
	return []api.NextHops{
		{Prefix: netip.MustParsePrefix("10.3.0.0/16"), Hops: []api.ECMPNextHop{
			{Gateway: &gateway, Interface: "up0", Weight: 1},
			{Interface: "up1", Weight: 3, Down: true}}},
		{Prefix: netip.MustParsePrefix("10.3.7.0/24"), Hops: []api.ECMPNextHop{},
			Left: "its next hop group is resilient"},
	}, nil
}

func (f *fakeAgent) BGPRoutes(context.Context) ([]api.BGPRoute, error) {
	if f.node.Host == nil {
		return nil, nil
	}
	vip, peer, sid := netip.MustParseAddr("2001:db8:80::80"), netip.MustParseAddr("192.0.2.1"),
		netip.MustParseAddr("fcbb:bb00:7::")
	return []api.BGPRoute{
		{Direction: api.Announced, VIP: vip},
		{Direction: api.Learned, VIP: vip, SID: &sid, Behavior: "End.OFFER", Weight: 2, Peer: &peer,
			Distinguisher: "192.0.2.7:1",
			Services: []discovery.Port{{Protocol: config.TCP, Port: 80},
				{Protocol: config.UDP}}},
		{Direction: api.Learned, VIP: vip, SID: &sid, Behavior: "End.OFFER", Weight: 1,
			Draining: true, Peer: &peer,
			Distinguisher: "192.0.2.8:1", Ignored: discovery.SIDConflict},
	}, nil
}

func (f *fakeAgent) Config(context.Context) (*config.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.node, nil
}

func (f *fakeAgent) Change(_ context.Context,
	edit func(*config.Node) (*config.Node, error)) ([]config.Change, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := edit(f.node)
	if err != nil {
		return nil, err
	}
	changes := config.Diff(f.node, next)
	f.past, f.node = append(f.past, f.node), next
	return changes, nil
}

func (f *fakeAgent) Replace(ctx context.Context, read func() (*config.Node, error),
	dryRun bool) ([]config.Change, error) {
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
		Number: f.look, Time: time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC), Service: "web",
		Backend: "web2", Status: "failing",
		Reason: "connect to [2001:db8:80::80]:80 at fcbb:bb00:2::: connection refused",
	}}, nil
}

func (f *fakeAgent) Metrics() http.Handler { return http.NotFoundHandler() }

// fakeFacts are those of a machine whose one fault is that nothing listens.
func fakeFacts() facts.Facts {
	device := facts.Interface{Up: true, MTU: 1500, Driver: "device", XDP: "native",
		Forwarding: true, Seg6: true}
	return facts.Facts{
		Kernel:     facts.Kernel{Release: "6.12.1", BPFFS: true, Cgroup2: true, ClockSource: "tsc"},
		Interfaces: map[string]facts.Interface{"eth0": device, "eth1": device},
		Local:      map[netip.Addr]bool{netip.MustParseAddr("2001:db8:80::81"): true},
		Listeners:  []facts.Listener{},
	}
}
