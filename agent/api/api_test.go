package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

const nodeFile = `
node: both1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  services:
    - {name: web, vip: 192.0.2.80, port: 80, backends: [{name: web1, sid: "fcbb:bb00:1::"}, {name: web2, sid: "fcbb:bb00:2::"}]}
    - {name: dns, vip: 192.0.2.53, port: any, protocol: udp}
host:
  interfaces: [{name: eth1}]
  sids: [{prefix: "fcbb:bb00:9::/48", behavior: End.OFFER}]
  services: [{name: web, vip: 192.0.2.80, port: 80, accept: {policy: static, threshold: 4}}]
`

// memory is an agent that runs nothing.
type memory struct {
	api.Historian
	mu   sync.Mutex
	node *config.Node
	fail error
	// events are numbered from 1.
	events []api.Event
	flows  []api.FlowPath
}

func (m *memory) Status(context.Context) (api.Status, error) {
	return api.Status{Node: m.node.Name, Roles: m.node.Roles()}, m.fail
}

func (m *memory) Services(_ context.Context, names ...string) ([]api.Service, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []api.Service
	for _, s := range m.node.Edge.Services {
		edge := &api.EdgeService{Policy: s.Policy, Table: s.Table, Candidates: s.Candidates,
			Backends: []api.Backend{}}
		for _, b := range s.Backends {
			edge.Backends = append(edge.Backends, api.Backend{Service: s.Name, Name: b.Name,
				SID: b.SID, Weight: b.Weight, State: b.State})
		}
		list = append(list, api.Service{Name: s.Name, Role: api.Edge, VIP: s.VIP,
			Protocol: s.Protocol, Port: s.Port, Edge: edge})
	}
	if m.node.Host != nil {
		for _, s := range m.node.Host.Services {
			host := &api.HostService{Accept: api.AcceptOf(s.Accept)}
			list = append(list, api.Service{Name: s.Name, Role: api.Host, VIP: s.VIP,
				Protocol: s.Protocol, Port: s.Port, Host: host})
		}
	}
	list = slices.DeleteFunc(list, func(s api.Service) bool {
		return len(names) > 0 && !slices.Contains(names, s.Name)
	})
	return list, m.fail
}

func (m *memory) Counters(context.Context) ([]api.Counters, error) {
	return []api.Counters{{Role: api.Edge, TransmittedPackets: 3,
		Drops: []api.Drop{{Reason: "no_route", Packets: 1}}}}, m.fail
}

func (m *memory) Maps(context.Context) ([]api.Map, error) { return nil, m.fail }

func (m *memory) Trace(_ context.Context, f api.Flow) (api.Trace, error) {
	return api.Trace{Flow: f, Service: "web", Chain: []api.Place{}, Opening: []netip.Addr{},
		Following: []netip.Addr{}}, m.fail
}

func (m *memory) DumpMap(_ context.Context, role api.Role, name string,
	limit int) ([]api.MapEntry, error) {
	return []api.MapEntry{{Key: string(role) + name, Value: limit}}, m.fail
}

func (m *memory) Explain(_ context.Context, q api.Question) ([]api.Explanation, error) {
	return []api.Explanation{{Number: 1, Flow: q.Flow, Bytes: len(q.Frames)}}, m.fail
}

func (m *memory) Capture(_ context.Context, want api.Capture, begin func() error,
	each func([]api.CapturedPacket) error) error {
	if m.fail != nil {
		return m.fail
	}
	e := api.Explanation{Number: 1, Interface: want.Interface, Service: want.Service,
		Verdict: want.Verdict}
	if err := begin(); err != nil {
		return err
	}
	if err := each([]api.CapturedPacket{{Time: time.Unix(7, 0), Frame: api.Frame{1, 2},
		Explanation: e}}); err != nil {
		return err
	}
	return errors.New("the interface is gone")
}

func (m *memory) Policies(context.Context) ([]api.Policy, error) {
	return []api.Policy{{Name: "protected", Computed: true}}, m.fail
}

func (m *memory) MarkList(_ context.Context, policy, list string,
	down bool) ([]config.Change, error) {
	return []config.Change{{Operation: config.Modify, Object: policy + "/" + list,
		To: fmt.Sprint(down)}}, nil
}

func (m *memory) FlowPaths(context.Context) ([]api.FlowPath, error) { return m.flows, m.fail }

func (m *memory) SetFlowPath(_ context.Context, p api.FlowPath) error {
	m.flows = append(m.flows, p)
	return m.fail
}

func (m *memory) RemoveFlowPath(_ context.Context, f api.Flow) error {
	m.flows = slices.DeleteFunc(m.flows, func(p api.FlowPath) bool { return p.Flow == f })
	return m.fail
}

func (m *memory) Merge(context.Context) ([]api.MergedFlow, error) {
	return []api.MergedFlow{{Flows: []uint32{1, 2}, PassedPackets: 7}}, m.fail
}

func (m *memory) BGPPeers(context.Context) ([]api.BGPPeer, error) {
	return []api.BGPPeer{{Address: netip.MustParseAddr("2001:db8::1"), ASN: 64512, State: "active",
		Session: "lost"}}, m.fail
}

func (m *memory) Routes(context.Context) ([]api.Route, error) { return nil, m.fail }

func (m *memory) RouteSources(context.Context) ([]api.RouteSource, error) { return nil, m.fail }

func (m *memory) NextHops(context.Context) ([]api.NextHops, error)        { return nil, m.fail }
func (m *memory) Subflows(context.Context) ([]api.MPTCPConnection, error) { return nil, m.fail }

func (m *memory) BGPRoutes(context.Context) ([]api.BGPRoute, error) { return nil, m.fail }

func (m *memory) Config(context.Context) (*config.Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node, m.fail
}

func (m *memory) Change(_ context.Context,
	edit func(*config.Node) (*config.Node, error)) ([]config.Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := edit(m.node)
	if err != nil {
		return nil, err
	}
	changes := config.Diff(m.node, next)
	m.node = next
	return changes, m.fail
}

func (m *memory) Replace(ctx context.Context, read func() (*config.Node, error),
	dryRun bool) ([]config.Change, error) {
	next, err := read()
	if err != nil {
		return nil, err
	}
	if dryRun {
		return config.Diff(m.node, next), m.fail
	}
	return m.Change(ctx, func(*config.Node) (*config.Node, error) { return next, nil })
}

func (m *memory) Events(_ context.Context, after uint64) ([]api.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.events[min(after, uint64(len(m.events))):], m.fail
}

func (m *memory) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "sextant_build_info 1\n")
	})
}

// start serves a memory agent and returns a client for it, and a plain HTTP client.
func start(t *testing.T, text string) (*api.Client, *memory, *http.Client) {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{node: node}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: api.NewHandler(m)}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	plain := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	return api.NewClient(socket), m, plain
}

func pointer[T any](v T) *T { return &v }

func text(changes api.Changes) string {
	var lines []string
	for _, c := range changes.Items {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}

func codeOf(err error) api.Code {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Each step is one write; the next sees what it did.
func TestWrites(t *testing.T) {
	client, _, _ := start(t, nodeFile)
	vip := pointer(netip.MustParseAddr("198.51.100.1"))
	ctx := t.Context()
	steps := []struct {
		name string
		do   func() (api.Changes, error)
		code api.Code
		want string
	}{
		{"create without role", func() (api.Changes, error) {
			return client.PutService(ctx, api.Create, "tls", "",
				api.ServiceSpec{VIP: vip, Port: pointer(uint16(443))})
		}, api.Invalid, `node "both1" is edge and host; say which role is meant`},
		{"create in a made-up role", func() (api.Changes, error) {
			return client.PutService(ctx, api.Create, "tls", "router", api.ServiceSpec{})
		}, api.Invalid, `unknown role "router"; write edge or host`},
		{"create", func() (api.Changes, error) {
			return client.PutService(ctx, api.Create, "tls", api.Edge,
				api.ServiceSpec{VIP: vip, Port: pointer(uint16(443))})
		}, "", "+ service tls (vip 198.51.100.1:443/tcp, policy offer, table rendezvous, " +
			"candidates 2)"},
		{"create again", func() (api.Changes, error) {
			return client.PutService(ctx, api.Create, "tls", api.Edge,
				api.ServiceSpec{VIP: vip, Port: pointer(uint16(443))})
		}, api.Conflict,
			`service "tls" is there already; choose another name, or change it with set`},
		{"update", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "tls", api.Edge,
				api.ServiceSpec{ContinuitySpec: api.ContinuitySpec{Candidates: pointer(3)}})
		}, "", "~ service tls: candidates 2 -> 3"},
		{"limit new connections", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "tls", api.Edge,
				api.ServiceSpec{NewConnections: &api.NewConnectionsSpec{Rate: 1000, Burst: 50}})
		}, "", "~ service tls: newConnections none -> 1000 per second, 50 at once"},
		{"limit new connections to none", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "tls", api.Edge,
				api.ServiceSpec{NewConnections: &api.NewConnectionsSpec{Rate: 1000}})
		}, api.Invalid, "burst 0 is out of range; write 1 to 1000000000"},
		{"limit new connections no more", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "tls", api.Edge,
				api.ServiceSpec{NewConnections: &api.NewConnectionsSpec{}})
		}, "", "~ service tls: newConnections 1000 per second, 50 at once -> none"},
		{"limit new connections at a host", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "web", api.Host,
				api.ServiceSpec{NewConnections: &api.NewConnectionsSpec{}})
		}, api.Invalid, "a host limits no new connections; leave newConnections out, or choose " +
			"the role edge"},
		{"update what is absent", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "ssh", api.Edge, api.ServiceSpec{})
		}, api.NotFound, `there is no service "ssh"; known: web, dns, tls`},
		{"update an edge with a host's parameter", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "tls", api.Edge,
				api.ServiceSpec{Accept: &api.AcceptSpec{}})
		}, api.Invalid, "an edge has no acceptance policy; leave it and its parameters out, or " +
			"choose the role host"},
		{"update a host with an edge's parameter", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "web", api.Host,
				api.ServiceSpec{ContinuitySpec: api.ContinuitySpec{Candidates: pointer(2)}})
		}, api.Invalid, "a host chooses no candidates; leave policy, table, candidates, depth, " +
			"drain time, slow start and return hold out, or choose the role edge"},
		{"update a host", func() (api.Changes, error) {
			accept := &api.AcceptSpec{Policy: pointer(config.Dynamic), Workers: pointer(8),
				Low: pointer(0.25)}
			return client.PutService(ctx, api.Update, "web", api.Host,
				api.ServiceSpec{Accept: accept})
		}, "", "~ host service web: accept static threshold 4 -> dynamic workers 8 window 50 low " +
			"0.25 high 0.6 initial 1"},
		{"update a host with too fine a share", func() (api.Changes, error) {
			return client.PutService(ctx, api.Update, "web", api.Host,
				api.ServiceSpec{Accept: &api.AcceptSpec{High: pointer(0.60005)}})
		}, api.Invalid, "high 0.60005 is not a share; write a number from 0 to 1 with at most " +
			"three decimals"},
		{"create in a host", func() (api.Changes, error) {
			return client.PutService(ctx, api.Create, "all", api.Host,
				api.ServiceSpec{VIP: vip, Port: pointer(config.AnyPort)})
		}, "", "+ host service all (vip 198.51.100.1:any/tcp, accept average)"},
		{"add backend", func() (api.Changes, error) {
			return client.PutBackend(ctx, api.Create, "web", "web3",
				api.BackendSpec{SID: pointer(netip.MustParseAddr("fcbb:bb00:3::"))})
		}, "", "+ service web: backend web3 (sid fcbb:bb00:3::, weight 1, state up)"},
		{"drain backend", func() (api.Changes, error) {
			return client.PutBackend(ctx, api.Update, "web", "web3",
				api.BackendSpec{State: pointer(config.Draining)})
		}, "", "~ service web: backend web3: state up -> draining"},
		{"drain backend of no service", func() (api.Changes, error) {
			return client.PutBackend(ctx, api.Update, "a/b?c", "web3",
				api.BackendSpec{State: pointer(config.Draining)})
		}, api.NotFound, `there is no service "a/b?c"; known: web, dns, tls`},
		{"delete backend", func() (api.Changes, error) {
			return client.DeleteBackend(ctx, "web", "web3")
		}, "", "- service web: backend web3 (sid fcbb:bb00:3::, weight 1, state draining)"},
		{"delete service", func() (api.Changes, error) {
			return client.DeleteService(ctx, "tls",
				api.Edge)
		},
			"", "- service tls (vip 198.51.100.1:443/tcp, policy offer, table rendezvous, " +
				"candidates 3)"},
		{"delete host service", func() (api.Changes, error) {
			return client.DeleteService(ctx,
				"all", api.Host)
		},
			"", "- host service all (vip 198.51.100.1:any/tcp, accept average)"},
		{"delete without role", func() (api.Changes, error) {
			return client.DeleteService(ctx,
				"web", "")
		},
			api.Invalid, `node "both1" is edge and host; say which role is meant`},
	}
	for _, s := range steps {
		changes, err := s.do()
		got := text(changes)
		if err != nil {
			got = err.Error()
		}
		if codeOf(err) != s.code || got != s.want {
			t.Errorf("%s: code %q, %s\nwant code %q, %s", s.name, codeOf(err), got, s.code, s.want)
		}
	}
}

func TestDiffAndApply(t *testing.T) {
	client, m, _ := start(t, nodeFile)
	other := []byte(strings.Replace(nodeFile, "threshold: 4", "threshold: 5", 1))
	const want = "~ host service web: accept static threshold 4 -> static threshold 5"
	for _, step := range []struct {
		name string
		do   func() (api.Changes, error)
		want string
		dry  bool
	}{
		{"diff", func() (api.Changes, error) { return client.Diff(t.Context(), "n.yaml", other) },
			want, true},
		{"dry run", func() (api.Changes, error) {
			return client.Apply(t.Context(), "n.yaml", other, true)
		}, want, true},
		{"apply", func() (api.Changes, error) {
			return client.Apply(t.Context(), "n.yaml", other, false)
		}, want, false},
		{"apply again", func() (api.Changes, error) {
			return client.Apply(t.Context(), "n.yaml", other, false)
		}, "", false},
	} {
		got, err := step.do()
		if err != nil || text(got) != step.want || got.DryRun != step.dry {
			t.Errorf("%s: %+v, %v; want %s", step.name, got, err, step.want)
		}
	}
	if m.node.Host.Services[0].Accept.Threshold != 5 {
		t.Error("apply did not change the agent's node")
	}
	_, err := client.Apply(t.Context(), "n.yaml", []byte("node: a b\n"), false)
	if codeOf(err) != api.Invalid || !strings.HasPrefix(err.Error(), "n.yaml:1:") {
		t.Errorf("apply of a wrong file: %v", err)
	}
}

func TestReads(t *testing.T) {
	client, _, plain := start(t, nodeFile)
	services, err := client.Services(t.Context(), "web", api.Host)
	if err != nil || len(services) != 1 || services[0].Endpoint().String() != "192.0.2.80:80/tcp" ||
		services[0].Host == nil {
		t.Errorf("Services = %+v, %v", services, err)
	}
	backends, err := client.Backends(t.Context(), "")
	if err != nil || len(backends) != 2 || backends[1].Name != "web2" {
		t.Errorf("Backends = %+v, %v", backends, err)
	}
	if backends, err := client.Backends(t.Context(), "dns"); err != nil || len(backends) != 0 {
		t.Errorf("Backends of dns = %+v, %v", backends, err)
	}
	sids, err := client.SIDs(t.Context())
	if err != nil || len(sids) != 1 || sids[0].Behavior != "End.OFFER" {
		t.Errorf("SIDs = %+v, %v", sids, err)
	}
	counters, err := client.Counters(t.Context())
	if err != nil || len(counters) != 1 || counters[0].ForwardedPackets() != 3 ||
		counters[0].DroppedPackets() != 1 {
		t.Errorf("Counters = %+v, %v", counters, err)
	}
	for path, want := range map[string]string{
		"/v1/maps":            `{"items":[]}`,
		"/v1/services?name=x": `{"items":[]}`,
		"/metrics":            "sextant_build_info 1",
		"/v1/nothing": `{"error":{"code":"notFound","message":"there is no GET /v1/nothing; ` +
			`the paths are in the documentation of package agent/api"}}`,
		"/v1/services/a/backends/x/y": `{"error":{"code":"notFound","message":"there is no GET /v1/services/a/backends/x/y; ` +
			`the paths are in the documentation of package agent/api"}}`,
		"/v1/monitor?intervalMs=1": `{"error":{"code":"invalid","message":"intervalMs \"1\" is out of range; write 100 to 60000"}}`,
		"/v1/services?name=dns": `{"items":[{"name":"dns","role":"edge","vip":"192.0.2.53","protocol":"udp","port":0,` +
			`"packets":0,"bytes":0,"edge":{"policy":"offer","table":"rendezvous","candidates":2,"depth":0,"drainTimeSeconds":0,"slowStartSeconds":0,"returnHoldSeconds":0,"encapsulation":"","buckets":0,"panic":false,"backends":[],` +
			`"uncountedPackets":0,"uncountedBytes":0}}]}`,
		"/v1/services?role=host": `{"items":[{"name":"web","role":"host","vip":"192.0.2.80","protocol":"tcp","port":80,` +
			`"packets":0,"bytes":0,"host":{"accept":{"policy":"static","threshold":4},"threshold":0,"busy":0,"connections":0,"load":0,"mean":0,"offered":0,` +
			`"accepted":0,"refused":0,"forced":0,"passedOnPackets":0,"passedOnBytes":0,"established":0,"resets":0,"strayResets":0,"byEdge":0,"notRouted":0}}]}`,
	} {
		response, err := plain.Get("http://agent" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if got := strings.TrimSpace(string(body)); err != nil || got != want {
			t.Errorf("GET %s: %v\ngot  %s\nwant %s", path, err, got, want)
		}
	}
}

func TestConfigKeepsTheSecret(t *testing.T) {
	client, _, _ := start(t, nodeFile)
	const secret = "00112233445566778899aabbccddeeff"
	for _, asked := range []bool{false, true} {
		text, err := client.Config(t.Context(), asked)
		if err != nil || strings.Contains(string(text), secret) != asked {
			t.Errorf("Config with secrets %v: %v\n%s", asked, err, text)
		}
		if _, err := config.Parse("running.yaml", text); (err == nil) != asked {
			t.Errorf("Parse of the running configuration with secrets %v: %v", asked, err)
		}
	}
}

func TestMonitor(t *testing.T) {
	client, m, _ := start(t, nodeFile)
	samples := 0
	enough := errors.New("enough")
	err := client.Monitor(t.Context(), 100e6, func(s api.Sample) error {
		if samples++; samples == 2 {
			return enough
		}
		if len(s.Services) != 3 || len(s.Counters) != 1 || s.Time.IsZero() {
			t.Errorf("sample %+v", s)
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatalf("Monitor = %v after %d samples", err, samples)
	}
	m.fail = errors.New("the map is gone")
	if err := client.Monitor(t.Context(), 100e6,
		func(api.Sample) error { return nil }); codeOf(err) != api.Internal {
		t.Errorf("Monitor of a failing agent = %v", err)
	}
}

func TestWrongBodies(t *testing.T) {
	_, _, plain := start(t, nodeFile)
	for body, want := range map[string]string{
		"{":               "unexpected EOF",
		`{"candidate":1}`: `unknown field`,
		`{"port":"any"}`:  "cannot unmarshal string",
	} {
		request, err := http.NewRequest(http.MethodPut, "http://agent/v1/services/web?role=edge",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := plain.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusBadRequest ||
			!strings.Contains(string(answer), want) {
			t.Errorf("PUT %s: %s %s, %v; want it to tell %q", body, response.Status, answer, err,
				want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	silent := filepath.Join(dir, "silent")
	mute, err := net.Listen("unix", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	expired, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	for _, c := range []struct {
		ctx    context.Context
		socket string
		want   string
	}{
		{t.Context(), filepath.Join(dir, "none"), "no such file or directory"},
		{t.Context(), dead, "connection refused"},
		{expired, silent, "no answer"},
	} {
		_, err := api.NewClient(c.socket).Status(c.ctx)
		if !errors.Is(err, api.ErrUnreachable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Status at %s = %v, want it to tell %q", c.socket, err, c.want)
		}
	}
}

// files writes files into a directory of the test.
func files(t *testing.T) (write func(name, text string) string) {
	dir := t.TempDir()
	return func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

func TestLoadNode(t *testing.T) {
	write := files(t)
	withFile := func(name, secretFile string) string {
		return write(name, strings.Replace(nodeFile, "secret: 00112233445566778899aabbccddeeff",
			"secretFile: "+secretFile, 1))
	}
	good := write("secret", "00112233445566778899aabbccddeeff\n")
	n, err := api.LoadNode(withFile("good.yaml", good))
	if err != nil || n.Secret[0] != 0x00 || n.Secret[15] != 0xff {
		t.Errorf("LoadNode with a secret file: %v", err)
	}
	withKey := func(name, keyFile string) string {
		return write(name, strings.Replace(nodeFile, "protocol: udp",
			"protocol: udp, quic: {configs: [{rotation: 0, serverIDLength: 2, nonceLength: 4, "+
				"keyFile: "+keyFile+"}]}", 1))
	}
	n, err = api.LoadNode(withKey("quic.yaml", good))
	if err != nil || !bytes.Equal(n.Edge.Services[1].QUIC.Configs[0].Key, n.Secret[:]) ||
		n.Edge.Services[1].QUIC.Configs[0].Config().Check() != nil {
		t.Errorf("LoadNode with a key file: %v", err)
	}
	for file, want := range map[string]string{
		withKey("nokey.yaml", "/no/key"): "service dns: read keyFile " +
			"/no/key: no such file or directory; make it",
		withKey("badkey.yaml", write("badkey",
			"00112233445566gg")): "the key is not 32 hexadecimal digits",
		filepath.Join(t.TempDir(),
			"none.yaml"): "none.yaml: no such file or directory; give the path",
		write("wrong.yaml", "node: 1 2"): "wrong.yaml:1:1: domain is " +
			"missing",
		withFile("lost.yaml",
			"/no/secret"): "read secretFile /no/secret: no such file or directory; make it",
		withFile("bad.yaml", write("bad", "0011223344")): "secret has 10 characters",
	} {
		if _, err := api.LoadNode(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadNode(%s) = %v, want it to tell %q", file, err, want)
		}
	}
}
