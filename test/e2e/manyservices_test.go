package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// manyBeside is how many services change together with those that have traffic.
const manyBeside = 60

// besides adds services to an edge, before and behind those that have traffic.
func besides(n *config.Node) {
	list := n.Edge.Services
	n.Edge.Services = nil
	for i := range manyBeside {
		s := list[0]
		s.Name, s.Port = fmt.Sprintf("beside%d", i), uint16(100+i)
		s.Backends = append([]config.Backend(nil), s.Backends...)
		if n.Edge.Services = append(n.Edge.Services, s); i == manyBeside/2 {
			n.Edge.Services = append(n.Edge.Services, list...)
		}
	}
}

// turned gives one backend of all services another state or weight.
func turned(turn int) func(*config.Node) {
	return func(n *config.Node) {
		for i := range n.Edge.Services {
			b := n.Edge.Services[i].Backends
			for j := range b {
				b[j].State, b[j].Weight = config.Up, config.DefaultWeight
			}
			if at := &b[turn%len(b)]; turn%2 == 0 {
				at.State = config.Draining
			} else {
				at.Weight = 2 + turn
			}
		}
	}
}

// asOne sees that all services of the edge have their backends as the turn before or after says,
// and that packets are forwarded by that.
func (a *agents) asOne(when string) {
	a.t.Helper()
	services, err := a.client("edge").Services(a.t.Context(), "", "")
	must(a.t, err)
	if len(services) != manyBeside+2 {
		a.t.Fatalf("%s: %d services", when, len(services))
	}
	first := services[0].Edge.Backends
	for _, s := range services {
		for i, b := range s.Edge.Backends {
			if b.State != first[i].State || b.Weight != first[i].Weight {
				a.t.Errorf("%s: %s of %s is %s of weight %d, that of %s %s of weight %d", when,
					b.Name, s.Name, b.State, b.Weight, services[0].Name, first[i].State,
					first[i].Weight)
			}
		}
	}
}

// Many services change together, again and again, and the edge's agent is killed at all times of
// such a change: no connection breaks, no datagram is lost, and what runs after a restart is all
// old, or all new.
func TestManyServicesChangeUnderLoad(t *testing.T) {
	a := upWithAgents(t)
	for _, node := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, node)
	}
	a.reconfigure("edge", besides)
	tr := startTraffic(t, a.lab)
	again := tr.comeAndGo(a.lab, "client", echoAddress)
	took := time.Duration(0)
	for turn := range 12 {
		text := a.changed("edge", turned(turn))
		began := time.Now()
		_, err := a.client("edge").Apply(t.Context(), "node.yaml", text, false)
		must(t, err)
		took = time.Since(began)
		tr.flows(fmt.Sprint("turn ", turn))
		a.asOne(fmt.Sprint("turn ", turn))
	}
	again("changes")
	for turn := range 12 {
		a.dieInApply(turned(turn), took*time.Duration(turn)/10)
		when := fmt.Sprint("an agent that died in turn ", turn)
		tr.flows(when)
		a.asOne(when)
	}
	again("agents that died")
	if lost := tr.stop(); lost != 0 {
		t.Errorf("%d of %d datagrams are lost", lost, tr.sent.Load())
	}
}

// dieInApply kills the edge's agent some time after it was given another node file by the API, and
// starts it again by the file that it has.
func (a *agents) dieInApply(change func(*config.Node), after time.Duration) {
	a.t.Helper()
	text := a.changed("edge", change)
	given := make(chan struct{})
	go func() {
		defer close(given)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		client := api.NewClient(nodeOf(a.t, a.lab, "edge").Socket)
		_, _ = client.Apply(ctx, "node.yaml", text, false) // it fails as the agent dies
	}()
	time.Sleep(after)
	must(a.t, a.processes["edge"].Kill())
	a.processes["edge"].Wait()
	<-given
	a.processes["edge"] = startAgent(a.t, a.lab, "edge")
	awaitAgent(a.t, a.lab, "edge", patience)
}
