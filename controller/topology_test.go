package controller

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/flow"
	"sextant/te/topology"
	"sextant/te/topology/format"
)

func edges(t *testing.T, lines string) *topology.Graph {
	t.Helper()
	g, err := format.Read(format.File{Name: "net.edges", Text: []byte(lines)}, format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func idle(t *testing.T, g *topology.Graph, text string) *Controller {
	t.Helper()
	c, err := Parse([]byte("topology: x\nseed: 1\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	controller, err := newController(Options{Config: c, Log: slog.New(slog.DiscardHandler)}, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(controller.journal.close)
	return controller
}

func down(c *Controller) (links []string) {
	for e, is := range c.down {
		if is {
			links = append(links, strings.Join(c.names.routers([]topology.Edge{e}), ">"))
		}
	}
	slices.Sort(links)
	return links
}

// Links that are told of no more are down, until they are told of again; of parallel ones, as many
// as are missing. A topology that can't be read, or has links that do not fit the file, is said,
// and the last one stays.
func TestFollowTopology(t *testing.T) {
	const all = "a b 1\na b 1\nb d 1\na c 1\nc d 1\n"
	c := idle(t, edges(t, all), "links: [{from: a, to: b, queueBytes: 1000}]")
	pinned := Pin{Flow: testFlow(1), Path: []string{"a", "c", "d"}}
	if err := c.pin(pinned); err != nil {
		t.Fatal(err)
	}
	r := paused(2, "a", "b", "d")
	report, err := c.names.report(r, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := c.decider.Report(report); len(d.Path) == 0 {
		t.Fatalf("%+v", d)
	}
	for _, step := range []struct{ lines, down string }{
		{all, ""},
		{"a b 1\nb d 1\na c 1\nc d 1\n", "a>b b>a"},
		{"a b 1\nb d 1\nc d 1\n", "a>b a>c b>a c>a"},
		{all, ""},
	} {
		c.followTopology(edges(t, step.lines), nil)
		if got := strings.Join(down(c), " "); got != step.down || c.problem != "" {
			t.Errorf("%q: down %q, problem %q", step.lines, got, c.problem)
		}
	}
	c.followTopology(nil, errors.New("it sleeps"))
	if !strings.Contains(strings.Join(c.status().Warnings, " "), "it sleeps") {
		t.Errorf("warnings %q", c.status().Warnings)
	}
	c.followTopology(edges(t, all+"d e 1\n"), nil)
	f, ok := c.decider.Flow(tupleFor(t, pinned))
	if c.graph.Nodes() != 5 || c.problem != "" || !ok || !f.Pinned || c.decider.Known() != 1 {
		t.Errorf("%d nodes, problem %q, pinned %+v, %d flows", c.graph.Nodes(), c.problem, f,
			c.decider.Known())
	}
	c.followTopology(edges(t, "y z 1\n"), nil)
	if !strings.Contains(c.problem, `no router "a"`) || c.graph.Nodes() != 5 {
		t.Errorf("problem %q, %d nodes", c.problem, c.graph.Nodes())
	}
}

// With another topology flows keep the paths that it has, which are renewed on; what names links
// that it does not have is cleared.
func TestGivenPathsInAnotherTopology(t *testing.T) {
	c := idle(t, edges(t, "a b 1\nb d 1\na c 1\nc d 1\n"), `block: "fcbb:bb00::/32"
southbound: {listen: "[::1]:1", tokens: x, tls: {ca: x, certificate: x, key: x}}
`)
	to := &session{controller: c, router: "a", out: newOutbox(), sent: map[uint64][]flow.Tuple{}}
	to.sending.Lock() // what is said waits in the outbox
	c.gifts.heads["a"] = &head{session: to, followed: true}
	flows := map[string]flow.Tuple{}
	for port, middle := range []string{"b", "c"} {
		p := Pin{Flow: testFlow(uint16(port + 1)), Path: []string{"a", middle, "d"}}
		tuple := tupleFor(t, p)
		path, err := c.names.path(p.Path)
		if err != nil || !c.decider.Adopt(tuple, path, 0) {
			t.Fatal(err)
		}
		c.give(tuple, path)
		flows[middle] = tuple
	}
	if n := len(to.out.paths); n != 2 {
		t.Fatalf("%d paths wait for the head-end, not 2", n)
	}
	clear(to.out.paths) // it has them
	c.followTopology(edges(t, "a b 1\nb d 1\nc d 1\nd e 1\n"), nil)
	if c.graph.Nodes() != 5 || c.problem != "" {
		t.Fatalf("%d nodes, problem %q", c.graph.Nodes(), c.problem)
	}
	stays, said := to.out.paths[flows["b"]]
	f, known := c.decider.Flow(flows["b"])
	if !said || stays == nil || !known || f.Pinned || c.gifts.flows[flows["b"]] == nil ||
		strings.Join(c.names.routers(f.Path), " ") != "a b d" {
		t.Errorf("the path that is there: said %v %v, flow %+v", said, stays, f)
	}
	if goes, said := to.out.paths[flows["c"]]; !said || goes != nil ||
		c.gifts.flows[flows["c"]] != nil {
		t.Errorf("the path that is gone: said %v %+v", said, goes)
	}
}

// When the first of parallel links goes, the second one stays: its SID says that.
func TestFirstOfParallelLinksGoes(t *testing.T) {
	const first, second = "a -> b 1 sid=fc00::1\nb -> a 1 sid=fc00::2\n",
		"a -> b 1 sid=fc00::3\nb -> a 1 sid=fc00::4\n"
	all := edges(t, first+second)
	c := idle(t, all, "")
	for _, step := range []struct {
		lines string
		down  []string
	}{{second, []string{"fc00::1", "fc00::2"}}, {first, []string{"fc00::3", "fc00::4"}},
		{second + first, nil}} {
		c.followTopology(edges(t, step.lines), nil)
		var down []string
		for e := range topology.Edge(c.graph.Edges()) {
			if c.down[e] {
				down = append(down, c.graph.Edge(e).SID.String())
			}
		}
		if diff := cmp.Diff(step.down, down); diff != "" || c.graph != all {
			t.Errorf("%q: down (-want +got):\n%s", step.lines, diff)
		}
	}
}

func tupleFor(t *testing.T, p Pin) flow.Tuple {
	t.Helper()
	tuple, err := tupleOf(p.Flow)
	if err != nil {
		t.Fatal(err)
	}
	return tuple
}

// FRRouting's IS-IS is asked for the topology.
func TestTopologyOfFRR(t *testing.T) {
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "isisd.vty"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			command := make([]byte, 200)
			n, _ := conn.Read(command)
			file := "isis.txt"
			if strings.Contains(string(command[:n]), "hostname") {
				file = "isis-hostname.txt"
			}
			text, _ := os.ReadFile("../routing/linkstate/testdata/" + file)
			_, _ = conn.Write(append(text, 0, 0, 0, 0))
			conn.Close()
		}
	}()
	c, err := Parse([]byte("topology: isis\nblock: fcbb:bb00::/32\nfrr: " + dir))
	if err != nil {
		t.Fatal(err)
	}
	from, err := Options{Config: c}.openSource()
	if err != nil {
		t.Fatal(err)
	}
	known, err := from.Read(t.Context())
	if err != nil || known.Graph.Nodes() != 3 || known.Graph.Edges() != 6 {
		t.Errorf("%+v, %v", known, err)
	}
	if _, err := Parse([]byte("topology: isis")); err == nil ||
		!strings.Contains(err.Error(), "block") {
		t.Errorf("without a block: %v", err)
	}
}
