package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"sextant/agent"
	"sextant/agent/api"
	"sextant/config"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

// nodeText is an edge and host; words in capitals stand for what differs from test to test.
const nodeText = `
node: both1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
edge:
  interfaces: [{name: edge0}]
  source: fd00:5e::e1
  services:
    - name: web
      vip: 2001:db8:80::80
      port: 80
      backends:
        - {name: web1, sid: "fcbb:bb00:1::"}
        - {name: web2, sid: "fcbb:bb00:2::"}
        - {name: web3, sid: "fcbb:bb00:3::"}
    - {name: dns, vip: 192.0.2.53, port: any, protocol: udp, backends: [{name: dns1, sid: "fcbb:bb00:4::"}]}
host:
  interfaces: [{name: host0}]
  cgroup: CGROUP
  sids: [{prefix: "fcbb:bb00:9::/48", behavior: End.OFFER}]
  services:
    - {name: api, vip: 2001:db8:80::81, port: 443, accept: {policy: dynamic, workers: 32}}
    - {name: rest, vip: 2001:db8:80::81, port: any}
`

// machine is a network namespace with two interfaces, and room for one node's state and pins.
type machine struct {
	t      testing.TB
	ns     *linux.Netns
	dir    string // of files
	pins   string
	cgroup string
	breaks bool // agents start with node files that end connections
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	ns, name := linuxtest.Netns(t)
	bpffs, _, err := linux.BPFFS()
	must(t, err)
	cgroups, _, err := linux.CgroupRoot()
	must(t, err)
	m := &machine{t: t, ns: ns, dir: t.TempDir(), pins: filepath.Join(bpffs, name),
		cgroup: filepath.Join(cgroups, name)}
	group, err := linux.CreateCgroup(m.cgroup)
	must(t, err)
	t.Cleanup(func() { must(t, group.Remove()) })
	t.Cleanup(func() {
		must(t, m.unload())
		if _, err := os.Stat(m.pins); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after unloading, %s is there", m.pins)
		}
	})
	must(t, m.ns.Do(func() error {
		return errors.Join(addLink("edge0"), addLink("host0"))
	}))
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addLink(name string) error {
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-peer"}
	return errors.Join(netlink.LinkAdd(veth), netlink.LinkSetUp(veth))
}

func (m *machine) unload() error { return m.ns.Do(func() error { return agent.Unload(m.pins) }) }

// text writes the machine's own paths into the text of a node file, and replaces pairs of words.
func (m *machine) text(text string, pairs ...string) string {
	return strings.NewReplacer(append(pairs, "DIR", m.dir, "CGROUP", m.cgroup)...).Replace(text)
}

func (m *machine) parse(text string) *config.Node {
	m.t.Helper()
	node, err := config.Parse("node.yaml", []byte(m.text(text)))
	must(m.t, err)
	must(m.t, api.ReadKeys(node))
	return node
}

// running is an agent at work.
type running struct {
	*api.Client
	t      testing.TB
	cancel context.CancelFunc
	ended  chan error
}

// run runs an agent in the machine until it fails or the context ends.
func (m *machine) run(ctx context.Context, node *config.Node) error {
	return m.ns.Do(func() error {
		return agent.Run(ctx, agent.Options{
			Node: node, PinDirectory: m.pins, Version: "test",
			Log:              slog.New(slog.NewTextHandler(io.Discard, nil)),
			BreakConnections: m.breaks,
		})
	})
}

// start runs an agent and waits until it answers.
func (m *machine) start(text string) *running {
	m.t.Helper()
	node := m.parse(text)
	ctx, cancel := context.WithCancel(m.t.Context())
	r := &running{api.NewClient(node.API.Socket), m.t, cancel, make(chan error, 1)}
	go func() { r.ended <- m.run(ctx, node) }()
	for {
		if _, err := r.Status(ctx); err == nil {
			return r
		}
		select {
		case err := <-r.ended:
			m.t.Fatalf("the agent ended: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stop ends the agent. That leaves the kernel as a killed one does: an agent never cleans up.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	must(r.t, <-r.ended)
}

// fails starts an agent that refuses to run, and returns why.
func (m *machine) fails(text string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Second)
	defer cancel()
	err := m.run(ctx, m.parse(text))
	if err == nil {
		m.t.Fatal("the agent ran")
	}
	return err.Error()
}

func (r *running) apply(text string, dryRun bool) ([]config.Change, error) {
	changes, err := r.BreakingConnections().Apply(r.t.Context(), "node.yaml", []byte(text), dryRun)
	return changes.Items, err
}

// metric reads one line of the metrics.
func (r *running) metric(name string) string {
	r.t.Helper()
	for _, line := range strings.Split(r.metrics(), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return value
		}
	}
	return ""
}

func (r *running) metrics() string {
	r.t.Helper()
	text, err := r.MetricsText(r.t.Context())
	must(r.t, err)
	return string(text)
}

// state lists what the kernel has of the machine's node: which link holds which program, and which
// maps are pinned with what in them.
func (m *machine) state() []string {
	m.t.Helper()
	var state []string
	must(m.t, m.ns.Do(func() error {
		for _, role := range []string{"edge", "host", "headend", "merge"} {
			pins, err := os.ReadDir(filepath.Join(m.pins, role))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			for _, pin := range pins {
				text, err := describe(filepath.Join(m.pins, role, pin.Name()))
				if err != nil {
					return err
				}
				state = append(state, role+"/"+pin.Name()+": "+text)
			}
		}
		for _, name := range []string{"edge0", "host0"} {
			device, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			state = append(state, fmt.Sprintf("%s: XDP program %d", name,
				device.Attrs().Xdp.ProgId))
		}
		return nil
	}))
	return state
}

func describe(pin string) (string, error) {
	if strings.HasPrefix(filepath.Base(pin), "link_") {
		l, err := link.LoadPinnedLink(pin, nil)
		if err != nil {
			return "", err
		}
		defer l.Close()
		info, err := l.Info()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("link %d, program %d", info.ID, info.Program), nil
	}
	table, err := ebpf.LoadPinnedMap(pin, nil)
	if err != nil {
		return "", err
	}
	defer table.Close()
	info, err := table.Info()
	if err != nil {
		return "", err
	}
	id, _ := info.ID()
	return fmt.Sprintf("map %d, keys %v", id, keys(table)), nil
}

// keys of a hash table, sorted; of an array there is nothing to say.
func keys(table *ebpf.Map) []string {
	var list []string
	if table.Type() != ebpf.Hash {
		return nil
	}
	for key, err := table.NextKeyBytes(nil); err == nil &&
		key != nil; key, err = table.NextKeyBytes(key) {
		list = append(list, fmt.Sprintf("%x", key))
	}
	slices.Sort(list)
	return list
}

func same(t *testing.T, what string, before, after []string) {
	t.Helper()
	if !slices.Equal(before, after) {
		t.Errorf("%s:\n%s\nwas before:\n%s", what, strings.Join(after, "\n"),
			strings.Join(before, "\n"))
	}
}

func upLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(lo)
}

// client asks by HTTP at the API's socket, whatever host it names.
func (m *machine) client() *http.Client {
	socket := filepath.Join(m.dir, "agent.sock")
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", socket)
		}}}
	m.t.Cleanup(client.CloseIdleConnections)
	return client
}

// get asks by HTTP in the machine's namespace.
func (m *machine) get(t *testing.T, url string) (response *http.Response, body string) {
	t.Helper()
	dial := func(_ context.Context, network, address string) (c net.Conn, err error) {
		doErr := m.ns.Do(func() error { c, err = net.Dial(network, address); return nil })
		return c, errors.Join(doErr, err)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	response, err := client.Get(url)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response, string(text)
}
