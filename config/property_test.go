package config_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/config"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// drawNode makes a valid node.
func drawNode(t *rapid.T) *config.Node {
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	n := &config.Node{
		Name: rapid.StringMatching(`[0-9A-Za-z][-_.0-9A-Za-z]{0,62}`).Draw(t, "name"),
		Domain: config.Domain{
			Block:          block,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
			MTU:            rapid.IntRange(1280+256, 65535).Draw(t, "mtu"),
			Overhead:       rapid.IntRange(184, 256).Draw(t, "overhead"),
		},
		State: "/" + rapid.StringMatching(`[-a-z #:"']{0,9}`).Draw(t, "state"),
		API:   config.API{Socket: "/s"},
	}
	if rapid.Bool().Draw(t, "secret in file") {
		n.SecretFile = "/secret"
	} else {
		n.Secret = flow.Secret{rapid.ByteRange(1, 255).Draw(t, "secret")}
	}
	if rapid.Bool().Draw(t, "locators") {
		n.Domain.Locators = []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")}
	}
	if rapid.Bool().Draw(t, "metrics") {
		n.API.Metrics = netip.MustParseAddrPort("[::1]:9477")
	}
	role := rapid.IntRange(1, 127).Draw(t, "roles")
	if role&1 != 0 {
		n.Edge = drawEdge(t)
	}
	if role&2 != 0 {
		n.Host = drawHost(t)
	}
	if role&4 != 0 {
		n.Headend = drawHeadend(t)
		n.Domain.MTU = max(n.Domain.MTU, 1500) // lists need room
	}
	if role&8 != 0 {
		n.Merge = drawMerge(t)
	}
	if role&16 != 0 {
		n.Strays = drawStrays(t)
	}
	if role&32 != 0 {
		n.CFLB = drawCFLB(t)
	}
	if role&64 != 0 {
		n.Telemetry = drawTelemetry(t)
	}
	if rapid.Bool().Draw(t, "pathSource") {
		n.PathSource = drawPathSource(t)
	}
	if rapid.Bool().Draw(t, "subflows") {
		n.Subflows = drawSubflows(t)
	}
	if rapid.Bool().Draw(t, "flowlets") {
		n.Flowlets = drawFlowlets(t)
	}
	if rapid.Bool().Draw(t, "bgp") {
		n.BGP = drawBGP(t)
		for i := 0; n.Host != nil && i < len(n.Host.Services); i++ {
			n.Host.Services[i].Check = drawHostCheck(t)
		}
	}
	return n
}

func drawEdge(t *rapid.T) *config.Edge {
	e := &config.Edge{
		Interfaces: []config.EdgeInterface{{Name: "e0",
			Side: pick(t, config.External, config.Internal,
				config.Mixed), Mode: config.Native}},
		Source:        netip.MustParseAddr("fd00:5e::1"),
		Encapsulation: pick(t, config.Carrier, config.SRH, config.SRHReduced),
		EdgeOuter:     config.EdgeOuter{HopLimit: rapid.IntRange(1, 255).Draw(t, "hop limit")},
		AnswerRate:    rapid.IntRange(1, 1_000_000).Draw(t, "answer rate"),
		Buckets:       pick(t, 0, rapid.IntRange(1021, 1<<20).Draw(t, "buckets")),
		Shadow: config.Shadow{SID: netip.MustParseAddr("fcbb:bb00:f0::"),
			LastOffer: srv6.CSID(rapid.Uint16Range(0xe000, 0xffff).Draw(t, "last offer"))},
	}
	if e.Encapsulation != config.Carrier && rapid.Bool().Draw(t, "signs") {
		key := drawHMACKey(t)
		e.HMAC = &key
	}
	if rapid.Bool().Draw(t, "flow cache") {
		e.FlowCache = config.FlowCache{SID: netip.MustParseAddr("fd00:5e::1ea"),
			Entries: rapid.IntRange(64, 1<<28).Draw(t, "flows")}
	}
	if rapid.Bool().Draw(t, "peers") {
		e.Peers = []netip.AddrPort{netip.MustParseAddrPort("[fd00:5e::e2]:9477"),
			netip.MustParseAddrPort("[fd00:5e::e3]:9477")}
	}
	if rapid.Bool().Draw(t, "etcd") {
		e.Etcd = drawEtcd(t)
	}
	if rapid.Bool().Draw(t, "network") {
		e.Network = &config.EdgeNetwork{Network: config.Network{Topology: "/n.graph",
			FRR: "/run/frr", Node: "e1"}, Controller: pick(t, "", "/run/c.sock")}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "services") {
		s := config.Service{Name: fmt.Sprintf("s%d", i), Endpoint: drawEndpoint(t, i),
			Continuity: drawContinuity(t), Check: drawCheck(t)}
		s.MaxBackends = pick(t, 0, rapid.IntRange(1, 10000).Draw(t, "max backends"))
		if s.Check != nil {
			s.Check.Port = rapid.Uint16Range(1, 65535).Draw(t, "check port")
		}
		if e.Peers != nil || e.Etcd != nil {
			s.Table = config.Rendezvous
		}
		if s.Check != nil && s.Protocol == config.TCP && rapid.Bool().Draw(t, "passive") {
			s.Check.Passive = &config.Passive{ResetsPermille: rapid.IntRange(0, 1000).Draw(t,
				"resets"), TimeoutsPermille: 300, Minimum: 7}
		}
		if s.Protocol == config.TCP && rapid.Bool().Draw(t, "new connections") {
			s.NewConnections = config.NewConnections{Rate: rapid.IntRange(1, 1e9).Draw(t, "rate"),
				Burst: rapid.IntRange(1, 1e9).Draw(t, "burst")}
		}
		if s.Protocol == config.UDP && rapid.Bool().Draw(t, "quic") {
			s.QUIC.Configs = []config.QUIC{{
				Rotation:       rapid.IntRange(0, 6).Draw(t, "rotation"),
				ServerIDLength: rapid.IntRange(2, 15).Draw(t, "server ID"), NonceLength: 4,
				KeyFile: pick(t, "", "/etc/quic.key"),
			}}
		}
		if e.Network != nil && s.Depth <= 4 && rapid.Bool().Draw(t, "way") {
			s.Way = &config.Way{By: pick(t, config.ByIGP, config.ByDelay), Disjoint: pick(t, 1, 2),
				Avoid: pick(t, nil, []string{"a>b", "c", "risk 7"}),
				SIDs:  rapid.IntRange(1, 2).Draw(t, "SIDs")}
		}
		if rapid.Bool().Draw(t, "learned") {
			s.Learned = []config.Learned{{
				SID:   netip.MustParseAddr("fcbb:bb00:77::"),
				State: pick(t, config.Up, config.Draining, config.Down, config.Maintenance),
				Agent: pick(t, netip.AddrPort{}, netip.MustParseAddrPort("[fd00:5e::51]:9477")),
			}}
		}
		for j := range rapid.IntRange(0, 3).Draw(t, "backends") {
			s.Backends = append(s.Backends, config.Backend{
				Name: fmt.Sprintf("%d", j), SID: netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::",
					j+1)),
				Weight: rapid.IntRange(0, 65535).Draw(t, "weight"),
				State:  pick(t, config.Up, config.Draining, config.Down, config.Maintenance),
				Agent:  pick(t, netip.AddrPort{}, netip.MustParseAddrPort("[fd00:5e::51]:9477")),
			})
		}
		drawPaths(t, &s)
		e.Services = append(e.Services, s)
	}
	return e
}

// drawPaths gives the service and its backends paths, as long as chains leave room.
func drawPaths(t *rapid.T, s *config.Service) {
	routers := []netip.Addr{netip.MustParseAddr("fcbb:bb00:a1::"),
		netip.MustParseAddr("fcbb:bb00:a2::"), netip.MustParseAddr("fcbb:bb00:a3::"),
		netip.MustParseAddr("fcbb:bb00:a4::")}
	room := len(routers)
	if s.Policy == config.PolicyOffer {
		room = min(room, 6-s.Depth)
	}
	path := func() []netip.Addr {
		if n := rapid.IntRange(0, room).Draw(t, "path"); n > 0 {
			return routers[:n]
		}
		return nil
	}
	s.Path = path()
	for i := range s.Backends {
		s.Backends[i].Path = path()
	}
}

func drawEtcd(t *rapid.T) *config.Etcd {
	e := &config.Etcd{
		Endpoints: pick(t, []string{"https://[fd00:5e::3]:2379"},
			[]string{"https://etcd1.example:2379", "https://192.0.2.3:65535"}),
		Prefix: "/" + rapid.StringMatching(`[-_./a-z]{0,9}[A-Z]`).Draw(t, "prefix"),
		TLS:    config.TLSFiles{CA: pick(t, "", "/ca.pem")},
	}
	if rapid.Bool().Draw(t, "user") {
		e.Username, e.PasswordFile = rapid.StringMatching(`[a-z "#:{]{0,9}[a-z]`).Draw(t,
			"username"), "/password"
	}
	if rapid.Bool().Draw(t, "certificate") {
		e.TLS.Certificate, e.TLS.Key = "/edge.pem", "/edge.key"
	}
	return e
}

func drawContinuity(t *rapid.T) config.Continuity {
	k := config.Continuity{
		Policy:     pick(t, config.PolicyOffer, config.PolicyShadow, config.PolicyECMP),
		Table:      pick(t, config.Rendezvous, config.Exact),
		Candidates: rapid.IntRange(1, 6).Draw(t, "candidates"),
		DrainTime:  time.Duration(rapid.IntRange(0, 3600).Draw(t, "drain time")) * time.Second,
		SlowStart:  time.Duration(rapid.IntRange(0, 3600).Draw(t, "slow start")) * time.Millisecond,
		ReturnHold: time.Duration(rapid.IntRange(0, 3600).Draw(t,
			"return hold")) * time.Millisecond,
	}
	k.Depth = rapid.IntRange(k.Candidates, 6).Draw(t, "depth")
	return k
}

// drawCheck makes a check of any kind, or none.
func drawCheck(t *rapid.T) *config.Check {
	c := &config.Check{
		Kind: pick(t, "", config.CheckTCP, config.CheckHTTP, config.CheckHTTPS,
			config.CheckGRPC, config.CheckExec),
		Interval: time.Duration(rapid.IntRange(1000, 10000).Draw(t,
			"interval")) * time.Millisecond,
		Timeout: time.Duration(rapid.IntRange(10, 1000).Draw(t,
			"timeout")) * time.Millisecond,
		Rise:           rapid.IntRange(1, 10).Draw(t, "rise"),
		Fall:           rapid.IntRange(1, 10).Draw(t, "fall"),
		JitterPermille: rapid.IntRange(0, 1000).Draw(t, "jitter"),
		Startup:        pick(t, config.StartUp, config.StartDown),
		OnFail:         pick(t, config.FailDrain, config.FailDown),
		PanicPermille:  rapid.IntRange(0, 1000).Draw(t, "panic"),
		Function:       pick(t, 0, srv6.CSID(0xe046)),
	}
	text := rapid.StringMatching(`[a-z "#:{]{0,9}`)
	c.Reuse = c.Kind != config.CheckTCP && c.Kind != config.CheckExec &&
		rapid.Bool().Draw(t, "reuse")
	switch c.Kind {
	case "":
		return nil
	case config.CheckHTTP, config.CheckHTTPS:
		c.Path, c.Host, c.Status = "/"+rapid.StringMatching(`[a-z?"#:{]{0,9}`).Draw(t, "path"),
			pick(t, "", "web.example"), config.StatusRange{First: 200, Last: pick(t, 200, 299)}
		c.Body, c.Insecure = text.Draw(t, "body"), c.Kind == config.CheckHTTPS &&
			rapid.Bool().Draw(t, "insecure")
	case config.CheckGRPC:
		c.Service = text.Draw(t, "service")
	case config.CheckExec:
		c.Command = append([]string{"/bin/true"},
			rapid.SliceOfN(text, 0, 2).Draw(t, "arguments")...)
	}
	return c
}

// drawHostCheck makes a check that a host can make of itself, or none.
func drawHostCheck(t *rapid.T) *config.Check {
	c := drawCheck(t)
	if c != nil {
		c.OnFail, c.Function, c.Reuse, c.Port = config.FailDrain,
			0, false, rapid.Uint16Range(1, 65535).Draw(t, "host check port")
	}
	return c
}

func drawHost(t *rapid.T) *config.Host {
	h := &config.Host{
		Interfaces: []config.HostInterface{{Name: "h0",
			Mode: pick(t, config.Auto, config.Generic)}},
		Cgroup: pick(t, "", "/sys/fs/cgroup"),
		SIDs: []config.SID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"),
			Behavior: srv6.EndOFFER}},
	}
	if rapid.Bool().Draw(t, "verifies") {
		h.HMAC = &config.HMAC{Require: pick(t, config.HMACRequireNone, config.HMACRequireSRH,
			config.HMACRequireAll)}
		h.HMAC.Keys = rapid.SliceOfNDistinct(rapid.Custom(drawHMACKey), 1, 3,
			func(k config.HMACKey) int { return k.ID }).Draw(t, "keys")
	}
	if rapid.Bool().Draw(t, "learners") {
		h.Source, h.Learners = netip.MustParseAddr("fd00:5e::2"),
			[]netip.Prefix{netip.MustParsePrefix("fd00:5e:0:1ea::/64")}
	}
	if rapid.Bool().Draw(t, "conditional") {
		h.Source = netip.MustParseAddr("fd00:5e::2")
		h.SIDs = append(h.SIDs, config.SID{
			Prefix:   netip.MustParsePrefix("fcbb:bb00:2::/48"),
			Behavior: pick(t, srv6.EndDT4COND, srv6.EndDT6COND, srv6.EndDT46COND),
			Backup:   netip.MustParseAddr("fcbb:bb00:f0::"),
		})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "host services") {
		h.Services = append(h.Services, config.HostService{Name: fmt.Sprintf("s%d", i),
			Endpoint: drawEndpoint(t, i),
			Accept:   drawAccept(t)})
		h.Services[i].QUIC = h.Services[i].Protocol == config.UDP && rapid.Bool().Draw(t, "quic")
	}
	return h
}

func drawHMACKey(t *rapid.T) config.HMACKey {
	return config.HMACKey{
		ID: rapid.IntRange(1, 1<<32-1).Draw(t, "key"), KeyFile: pick(t, "/etc/sextant/hmac.1",
			"/run/key"),
		Form: pick(t, config.HMACStandard, config.HMACLinux),
	}
}

func drawAccept(t *rapid.T) config.Accept {
	low := rapid.IntRange(0, 999).Draw(t, "low")
	workers := rapid.IntRange(1, 65535).Draw(t, "workers")
	return pick(t,
		config.Accept{Policy: config.Always},
		config.Accept{Policy: config.Static, Threshold: rapid.IntRange(0, 65535).Draw(t,
			"threshold")},
		config.Accept{Policy: config.Dynamic, Workers: workers,
			Window:      rapid.IntRange(1, 65535).Draw(t, "window"),
			LowPermille: low, HighPermille: rapid.IntRange(low+1, 1000).Draw(t, "high"),
			Initial: rapid.IntRange(0,
				workers).Draw(t, "initial")})
}

func drawEndpoint(t *rapid.T, i int) config.Endpoint {
	return config.Endpoint{
		VIP:      netip.MustParseAddr(fmt.Sprintf(pick(t, "192.0.2.%d", "2001:db8::%d"), i+1)),
		Protocol: pick(t, config.TCP, config.UDP),
		Port:     rapid.Uint16().Draw(t, "port"),
	}
}

func pick[T any](t *rapid.T, values ...T) T {
	return values[rapid.IntRange(0, len(values)-1).Draw(t, "pick")]
}

// A node's canonical text, YAML or JSON, reads back as the same node.
func TestMarshalThenParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNode(t)
		if problems := config.Validate(n); len(problems) > 0 {
			t.Fatalf("the drawn node is invalid: %v", problems[0])
		}
		asYAML, err := config.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := config.MarshalAsJSON(n)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{asYAML, asJSON} {
			back, err := config.Parse("node.yaml", text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if d := config.Diff(n, back); len(d) > 0 {
				t.Fatalf("differences %v after\n%s", d, text)
			}
			again, err := config.Marshal(back)
			if err != nil || string(again) != string(asYAML) {
				t.Fatalf("the second text differs (error %v):\n%s\n%s", err, asYAML, again)
			}
		}
	})
}

// A diff is empty exactly between nodes of equal text, and turned round it has as many lines.
func TestDiffAgreesWithText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawNode(t), drawNode(t)
		x, errX := config.Fingerprint(a)
		y, errY := config.Fingerprint(b)
		if errX != nil || errY != nil {
			t.Fatal(errX, errY)
		}
		forth, back := config.Diff(a, b), config.Diff(b, a)
		if (len(forth) == 0) != (x == y) || len(forth) != len(back) {
			t.Fatalf("fingerprints %s and %s, %d changes forth, %d back", x, y, len(forth),
				len(back))
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/errors/*.yaml"} {
		for _, file := range corpus(f, pattern) {
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := config.Parse("fuzz.yaml", data)
		if (n == nil) == (err == nil) {
			t.Fatalf("node %v with error %v", n, err)
		}
		if within, refused := config.ParseWithin("fuzz.yaml", data, 20); err != nil &&
			refused == nil || err == nil && refused == nil && len(config.Diff(n, within)) > 0 {
			t.Fatalf("within a bound: %v and %v, else %v and %v", within, refused, n, err)
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without text")
			}
			return
		}
		text, err := config.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		back, err := config.ParseOwn("again.yaml", text)
		if err != nil {
			t.Fatalf("the canonical text is refused: %v\n%s", err, text)
		}
		if d := config.Diff(n, back); len(d) > 0 {
			t.Fatalf("differences %v after\n%s", d, text)
		}
	})
}
