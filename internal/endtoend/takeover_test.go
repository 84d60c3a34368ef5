package endtoend_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lab"
)

// agents are those of a lab's nodes.
type agents struct {
	t         *testing.T
	lab       *lab.Lab
	processes map[string]*os.Process // by node
}

// upWithAgents brings the lab of takeover.yaml up until the end of the test.
func upWithAgents(t *testing.T) *agents {
	t.Helper()
	return upFile(t, "takeover.yaml")
}

// upFile brings the lab of a file in testdata up until the end of the test.
func upFile(t *testing.T, file string) *agents {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return upText(t, file, string(text))
}

// upText brings the lab up that a text describes in which the lab's name is NAME.
func upText(t *testing.T, file, text string) *agents {
	t.Helper()
	name := fmt.Sprintf("t%d", os.Getpid())
	spec, err := lab.Parse(file, []byte(strings.ReplaceAll(text, "NAME", name)))
	if err != nil {
		t.Fatal(err)
	}
	a := &agents{t: t, processes: map[string]*os.Process{}}
	a.lab, err = lab.Up(t.Context(), spec, lab.Options{Events: func(e lab.Event) {
		if started, ok := e.(lab.ProcessStarted); ok {
			a.processes[started.Node], _ = os.FindProcess(started.PID)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.end()
		if err := lab.Down(name, nil); err != nil {
			t.Error(err)
		}
	})
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
		n, err := a.lab.Node(node)
		if err != nil {
			a.t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "agent", "-f", n.Dir+"/node.yaml")
		log, err := os.OpenFile(a.lab.Log(node, "sextant"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			a.t.Fatal(err)
		}
		cmd.Stdout, cmd.Stderr = log, log
		cmd.Env = append(os.Environ(), "SEXTANT_BPF="+n.BPF)
		inside(a.t, a.lab, node, cmd.Start)
		log.Close()
		a.processes[node] = cmd.Process
	}
}

// ready waits until all agents answer.
func (a *agents) ready() {
	a.t.Helper()
	for node := range a.processes {
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			_, err := a.client(node).Status(a.t.Context())
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				log, _ := os.ReadFile(a.lab.Log(node, "sextant"))
				a.t.Fatalf("node %s: %v\n%s", node, err, log)
			}
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

func (a *agents) client(node string) *api.Client {
	n, err := a.lab.Node(node)
	if err != nil {
		a.t.Fatal(err)
	}
	return api.NewClient(n.Dir + "/agent.sock")
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

// Agents are killed and started again, also in the midst of taking over, and the configuration changes meanwhile: no
// connection notices, and not one datagram is lost.
func TestAgentsDieUnderLoad(t *testing.T) {
	a := upWithAgents(t)
	for _, node := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, node)
	}
	tr := startTraffic(t, a.lab)
	tr.flows("with agents")
	counted := a.packets()
	a.kill()
	tr.flows("without agents")
	began := time.Now()
	a.start()
	a.ready()
	took := time.Since(began)
	tr.flows("with new agents")
	if now := a.packets(); now < counted+500 {
		t.Errorf("the edge has counted %d packets, %d before its agent was killed", now, counted)
	}

	a.change()
	tr.flows("with changed backends")
	a.kill()
	tr.flows("without agents, changed")
	for i := range 10 {
		a.start()
		time.Sleep(took * time.Duration(i) / 9) // somewhere between the first instruction and the last
		a.kill()
	}
	tr.flows("after ten agents that never got far")
	a.start()
	a.ready()
	tr.flows("after a take-over from one that never got far")
	backends, err := a.client("edge").Backends(t.Context(), "tcp")
	if err != nil || len(backends) != 3 || backends[0].State != config.Draining || backends[1].Weight != 5 {
		t.Errorf("the changes are gone: %+v, error %v", backends, err)
	}
	a.replacePrograms()
	tr.flows("with new programs")
	lost := tr.stop()
	if lost != 0 {
		t.Errorf("%d of %d datagrams are lost", lost, tr.sent.Load())
	}
	t.Logf("%d datagrams, %d lost; agents take over in %v", tr.sent.Load(), lost, took)
}

// change drains the first backend and gives the second a larger share.
func (a *agents) change() {
	a.t.Helper()
	draining, weight := config.Draining, 5
	for _, service := range []string{"tcp", "udp"} {
		_, err := a.client("edge").PutBackend(a.t.Context(), api.Update, service, "web1", api.BackendSpec{State: &draining})
		if err == nil {
			_, err = a.client("edge").PutBackend(a.t.Context(), api.Update, service, "web2", api.BackendSpec{Weight: &weight})
		}
		if err != nil {
			a.t.Fatal(err)
		}
	}
}

// replacePrograms changes a setting that is compiled into the programs.
func (a *agents) replacePrograms() {
	a.t.Helper()
	for node := range a.processes {
		text, err := a.client(node).Config(a.t.Context(), true)
		if err != nil {
			a.t.Fatal(err)
		}
		changed := strings.Replace(string(text), `["fd00:5e::/48"]`, `["fd00:5e::/48", "fd00:5f::/48"]`, 1)
		changes, err := a.client(node).Apply(a.t.Context(), "node.yaml", []byte(changed), false)
		if err != nil || len(changes.Items) != 1 {
			a.t.Fatalf("node %s: changed %v, error %v", node, changes.Items, err)
		}
	}
}
