package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/linux"
)

// subflowsAgent is the client of parallel links, with the role and without it.
const (
	subflowsClient = `
node: client
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
cflb: {interfaces: [{name: c0}], router: 9, keyFile: DIR/cflb.key, ipv4: {fields: source-port}}
`
	subflowsAgent = subflowsClient + `
subflows:
  keyFile: DIR/cflb.key
  ipv4: {fields: source-port, radix: 8}
  afterBytes: 100000
  rules: [{name: server, destination: 10.2.0.0/24, nextHops: "7"}]
`
	scheduledAgent = subflowsClient + `
subflows:
  controller: {socket: SOCKET}
  afterBytes: 100000
  rules: [{name: server, destination: 10.2.0.0/24, scheduled: 7}]
`
)

// subflowsNode is an agent at the client.
type subflowsNode struct {
	*fatTree
	program, dir, file, pins string
	agent                    *exec.Cmd
}

func newSubflowsNode(f *fatTree, program, text string) *subflowsNode {
	f.t.Helper()
	pins, err := f.pins()
	must(f.t, err)
	n := &subflowsNode{fatTree: f, program: program, dir: f.t.TempDir(),
		pins: filepath.Join(pins, "client")}
	n.file = filepath.Join(n.dir, "node.yaml")
	must(f.t, os.WriteFile(filepath.Join(n.dir, "cflb.key"), []byte(treeKey), 0o600))
	n.write(text)
	return n
}

func (n *subflowsNode) write(text string) {
	n.t.Helper()
	must(n.t, os.WriteFile(n.file, []byte(strings.ReplaceAll(text, "DIR", n.dir)), 0o600))
}

func (n *subflowsNode) start() {
	n.t.Helper()
	n.agent = exec.Command(n.program, "agent", "-f", n.file, "--bpf", n.pins)
	n.agent.Stderr = os.Stderr
	must(n.t, linux.Start(n.agent, n.ns["client"], nil))
	n.await("the agent answers", func() bool {
		_, err := n.client().Status(n.t.Context())
		return err == nil
	})
}

// stop ends the agent at once, or as an operator does.
func (n *subflowsNode) stop(signal os.Signal) {
	n.t.Helper()
	_ = n.agent.Process.Signal(signal)
	_ = n.agent.Wait()
}

func (n *subflowsNode) client() *api.Client {
	return api.NewClient(filepath.Join(n.dir, "agent.sock"))
}

func (n *subflowsNode) manager() (name string) {
	n.t.Helper()
	must(n.t, n.ns["client"].Do(func() (err error) {
		name, _, err = linux.PathManager()
		return err
	}))
	return name
}

// run runs a command of the client's node.
func (n *subflowsNode) run(words ...string) string {
	n.t.Helper()
	command := exec.Command(n.program, append(words, "--socket",
		filepath.Join(n.dir, "agent.sock"))...)
	command.Stderr = os.Stderr
	text, err := command.Output()
	must(n.t, err)
	return string(text)
}

// paths are the paths of the connection's subflows, as path subflows says.
func (n *subflowsNode) paths() (paths []string) {
	n.t.Helper()
	var list api.List[api.MPTCPConnection]
	must(n.t, json.Unmarshal([]byte(n.run("path", "subflows", "-o", "json")), &list))
	for _, c := range list.Items {
		for _, s := range c.Subflows {
			paths = append(paths, s.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// A long connection of a node with role subflows uses all seven links. It does so when the agent
// was killed and started again, which replaces a subflow whose path fails; and it goes on when the
// role goes, which gives the kernel's path manager back.
func TestSubflowsRole(t *testing.T) {
	f := newParallel(t)
	f.discard(5001)
	n := newSubflowsNode(f, buildSextant(t), subflowsAgent)
	before := n.manager()
	n.start()
	defer func() { n.stop(os.Interrupt) }()
	connection, failed := n.elephant()
	defer connection.Close()
	all := []string{"0", "1", "2", "3", "4", "5", "6"}
	n.await("a subflow on each path", func() bool { return slices.Equal(n.paths(), all) })
	ports := n.sortedPorts()
	n.carries("all seven links", parallelLinks)

	n.stop(os.Kill)
	n.start()
	n.await("the subflows are found again", func() bool { return slices.Equal(n.paths(), all) })
	if again := n.sortedPorts(); !slices.Equal(again, ports) {
		t.Errorf("after a restart the subflows have ports %d, not %d", again, ports)
	}

	n.failLinks("replace")
	n.await("a subflow of a dead path is ended", func() bool {
		now := n.sortedPorts()
		return slices.ContainsFunc(ports, func(p uint16) bool { return !slices.Contains(now, p) })
	})
	n.failLinks("del")
	n.await("it is replaced", func() bool {
		return slices.Equal(n.paths(), all) && len(n.sortedPorts()) >= parallelLinks
	})

	n.write(subflowsClient)
	n.run("apply", "-f", n.file)
	if got := n.manager(); got != before {
		t.Errorf("without the role the path manager is %s, not %s", got, before)
	}
	if paths := n.paths(); len(paths) > 0 {
		t.Errorf("without the role there are subflows on %q", paths)
	}
	n.carries("the connection goes on", 1)
	select {
	case err := <-failed:
		t.Errorf("the connection ended: %v", err)
	default:
	}
}

// A controller gives the subflows of a node's connection their paths, one on each of seven links,
// and counts them there. It has the same ones when the agent was killed and started again, and
// knows of none when the connection has ended.
func TestSubflowsRoleAsksController(t *testing.T) {
	f := newParallel(t)
	f.discard(5001)
	program := buildSextant(t)
	controller, socket := scheduleParallel(t, program)
	placed := func() (names []string) {
		list, err := controller.Elephants(t.Context())
		must(t, err)
		for _, e := range list {
			names = append(names, e.Name+" "+e.Flow.Source.String())
		}
		slices.Sort(names)
		return names
	}
	n := newSubflowsNode(f, program, strings.ReplaceAll(scheduledAgent, "SOCKET", socket))
	n.start()
	defer func() { n.stop(os.Interrupt) }()
	connection, _ := n.elephant()
	defer connection.Close()
	n.await("seven subflows are counted", func() bool { return len(placed()) == parallelLinks })
	n.carries("all seven links", parallelLinks)
	names, ports := placed(), n.sortedPorts()

	n.stop(os.Kill)
	n.start()
	n.await("the subflows are found again", func() bool { return len(n.paths()) == parallelLinks })
	if again := n.sortedPorts(); !slices.Equal(again, ports) {
		t.Errorf("after a restart the subflows have ports %d, not %d", again, ports)
	}
	if again := placed(); !slices.Equal(again, names) {
		t.Errorf("after a restart the controller has the subflows %q, not %q", again, names)
	}
	must(t, connection.Close())
	n.await("the controller is told of the end", func() bool { return len(placed()) == 0 })
}

// elephant is a connection that sends for as long as it can.
func (n *subflowsNode) elephant() (connection net.Conn, failed chan error) {
	n.t.Helper()
	must(n.t, n.ns["client"].Do(func() (err error) {
		dialer := net.Dialer{Timeout: 20 * time.Second}
		dialer.SetMultipathTCP(true)
		connection, err = dialer.DialContext(context.Background(), "tcp4", "10.2.0.1:5001")
		return err
	}))
	failed = make(chan error, 1)
	go func() {
		_, err := io.Copy(connection, endless{})
		failed <- err
	}()
	return connection, failed
}

// endless is as many zeros as are read.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func (n *subflowsNode) sortedPorts() []uint16 {
	n.t.Helper()
	return slices.Sorted(slices.Values(n.localPorts(5001)))
}

// carries waits until so many links, or more, have carried half a megabyte each.
func (n *subflowsNode) carries(what string, links int) {
	n.t.Helper()
	before := n.octets()
	n.await(what, func() bool { return n.busyLinks(before) >= links })
}
