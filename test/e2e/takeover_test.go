package e2e_test

import (
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// Agents are killed and started again, also in the midst of taking over, and the configuration
// changes meanwhile: no connection notices, and not one datagram is lost.
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
		// somewhere between the first instruction and the last
		time.Sleep(took * time.Duration(i) / 9)
		a.kill()
	}
	tr.flows("after ten agents that never got far")
	a.start()
	a.ready()
	tr.flows("after a take-over from one that never got far")
	backends, err := a.client("edge").Backends(t.Context(), "tcp")
	if err != nil || len(backends) != 3 || backends[0].State != config.Draining ||
		backends[1].Weight != 5 {
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
		_, err := a.client("edge").PutBackend(a.t.Context(), api.Update, service, "web1",
			api.BackendSpec{State: &draining})
		if err == nil {
			_, err = a.client("edge").PutBackend(a.t.Context(), api.Update, service, "web2",
				api.BackendSpec{Weight: &weight})
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
		changed := strings.Replace(string(text), `["fd00:5e::/48"]`,
			`["fd00:5e::/48", "fd00:5f::/48"]`, 1)
		changes, err := a.client(node).Apply(a.t.Context(), "node.yaml", []byte(changed), false)
		if err != nil || len(changes.Items) != 1 {
			a.t.Fatalf("node %s: changed %v, error %v", node, changes.Items, err)
		}
	}
}
