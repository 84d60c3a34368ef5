package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/agent"
	"sextant/agent/api"
	"sextant/config"
	"sextant/lab"
	"sextant/linux"
)

// agents are those of a lab's nodes.
type agents struct {
	t         *testing.T
	lab       *lab.Lab
	processes map[string]*os.Process // by node
	clients   sync.Map               // by node
}

// upWithAgents brings the lab of takeover.yaml up until the end of the test.
func upWithAgents(t *testing.T) *agents {
	t.Helper()
	return upFile(t, "takeover.yaml")
}

// upFile brings the lab of a file in testdata up until the end of the test.
func upFile(t *testing.T, file string) *agents {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile(filepath.Join("testdata", file))
	must(t, err)
	return upText(t, file, string(text))
}

// upText brings the lab up that a text describes in which the lab's name is NAME.
func upText(t *testing.T, file, text string) *agents {
	t.Helper()
	spec, err := lab.Parse(file, []byte(strings.ReplaceAll(text, "NAME", newName())))
	must(t, err)
	return upSpec(t, spec)
}

// upSpec brings a lab up until the end of the test.
func upSpec(t *testing.T, spec *lab.Spec) *agents {
	t.Helper()
	a := &agents{t: t, processes: map[string]*os.Process{}}
	a.lab = bringUp(t, spec, func(e lab.Event) {
		if started, ok := e.(lab.ProcessStarted); ok && started.Process == "sextant" {
			a.processes[started.Node], _ = os.FindProcess(started.PID)
		}
	})
	t.Cleanup(a.end)
	return a
}

// end ends those agents too that the lab does not know of, for it did not start them.
func (a *agents) end() {
	for _, process := range a.processes {
		if process.Kill() == nil {
			process.Wait()
		}
	}
}

// start starts all agents again.
func (a *agents) start() {
	a.t.Helper()
	for node := range a.processes {
		a.processes[node] = startAgent(a.t, a.lab, node)
	}
}

// ready waits until all agents answer.
func (a *agents) ready() {
	a.t.Helper()
	for node := range a.processes {
		awaitAgent(a.t, a.lab, node, patience)
	}
}

// startAgent starts a node's agent as the lab does. Who calls it waits for its end.
func startAgent(t *testing.T, l *lab.Lab, node string) *os.Process {
	t.Helper()
	n := nodeOf(t, l, node)
	log, err := os.OpenFile(l.Log(node, "sextant"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer log.Close()
	cmd := exec.Command(os.Args[0], "agent", "-f", filepath.Join(n.Dir, "node.yaml"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "SEXTANT_BPF="+n.BPF)
	ns := namespaceOf(t, l, node)
	defer ns.Close()
	must(t, linux.Start(cmd, ns, linux.OpenCgroup(n.Cgroup)))
	return cmd.Process
}

// awaitAgent waits until a node's agent answers.
func awaitAgent(t *testing.T, l *lab.Lab, node string, within time.Duration) {
	t.Helper()
	client := api.NewClient(nodeOf(t, l, node).Socket)
	for deadline := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		_, err := client.Status(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(l.Log(node, "sextant"))
			t.Fatalf("node %s: %v\n%s", node, err, log)
		}
	}
}

// kill ends all agents as nobody can prevent.
func (a *agents) kill() {
	a.t.Helper()
	var gone sync.WaitGroup
	for _, process := range a.processes {
		if err := process.Kill(); err != nil {
			a.t.Fatal(err)
		}
		gone.Go(func() { process.Wait() })
	}
	gone.Wait()
}

// client is the one of a node: an agent serves so many at a time, and each keeps a connection.
func (a *agents) client(node string) *api.Client {
	a.t.Helper()
	if known, ok := a.clients.Load(node); ok {
		return known.(*api.Client)
	}
	known, _ := a.clients.LoadOrStore(node, api.NewClient(nodeOf(a.t, a.lab, node).Socket))
	return known.(*api.Client)
}

// unload takes programs and tables of a node away.
func (a *agents) unload(node string) {
	a.t.Helper()
	bpf := nodeOf(a.t, a.lab, node).BPF
	inside(a.t, a.lab, node, func() error { return agent.Unload(bpf) })
}

// on runs a command on a node and returns what it printed.
func (a *agents) on(node string, argv ...string) []byte {
	a.t.Helper()
	return on(a.t, a.lab, node, argv...)
}

// changed is a node's file after a change.
func (a *agents) changed(node string, change func(*config.Node)) []byte {
	a.t.Helper()
	text, err := os.ReadFile(fileOf(a.t, a.lab, node))
	must(a.t, err)
	n, err := config.Parse("node.yaml", text)
	must(a.t, err)
	change(n)
	text, err = config.Marshal(n)
	must(a.t, err)
	return text
}

// rewrite changes a node's file, for the next agent, and returns it.
func (a *agents) rewrite(node string, change func(*config.Node)) []byte {
	a.t.Helper()
	text := a.changed(node, change)
	must(a.t, os.WriteFile(fileOf(a.t, a.lab, node), text, 0o600))
	return text
}

func fileOf(t *testing.T, l *lab.Lab, node string) string {
	t.Helper()
	return filepath.Join(nodeOf(t, l, node).Dir, "node.yaml")
}

// reconfigure changes a node's file, and has its agent take it over.
func (a *agents) reconfigure(node string, change func(*config.Node)) {
	a.t.Helper()
	_, err := a.client(node).Apply(a.t.Context(), "node.yaml", a.rewrite(node, change), false)
	must(a.t, err)
}

// receivedBy is how many packets have come to a node by a device.
func (a *agents) receivedBy(node, device string) (packets uint64) {
	a.t.Helper()
	inside(a.t, a.lab, node, func() error {
		link, err := netlink.LinkByName(device)
		if err == nil {
			packets = link.Attrs().Statistics.RxPackets
		}
		return err
	})
	return packets
}

// metrics are those of a node's agent.
func (a *agents) metrics(node string) string {
	a.t.Helper()
	text, err := a.client(node).MetricsText(a.t.Context())
	must(a.t, err)
	return string(text)
}

// packets are those that the edge has counted for all services.
func (a *agents) packets() (sum uint64) {
	a.t.Helper()
	services, err := a.client("edge").Services(a.t.Context(), "", "")
	if err != nil {
		a.t.Fatal(err)
	}
	for _, s := range services {
		sum += s.Packets
	}
	return sum
}
