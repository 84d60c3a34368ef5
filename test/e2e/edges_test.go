package e2e_test

import (
	"flag"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

var edgesPeriods = flag.Int("edges.periods",
	4, "periods of 2 s, in each of which an edge dies, in each set-up of TestEdgesDieUnderLoad")

const (
	edgesPeriod = 2 * time.Second
	// how long the router sends packets to an edge that is not there
	unnoticed = 200 * time.Millisecond
)

// Every 2 seconds an edge loses its power or its agent, and a server is drained or returns, which
// the edges learn in different order and at different times. No connection is lost where
// docs/explanation/pcc.md promises that; without a chain, as in a router, many are.
func TestEdgesDieUnderLoad(t *testing.T) {
	t.Parallel()
	for _, setup := range []struct {
		name  string
		peers bool
		keeps []string // services that lose no connection
	}{
		{"alone", false, []string{"rendezvous"}},
		{"peers", true, []string{"rendezvous", "exact"}},
	} {
		t.Run(setup.name, func(t *testing.T) {
			e := upEdges(t, setup.peers)
			for _, server := range edgesServers {
				serveWords(e.t, e.lab, server, "[::]:7", nil)
			}
			loads := map[string]*load{}
			for _, service := range edgesServices {
				loads[service] = e.startLoad(service)
			}
			for period := range *edgesPeriods {
				e.period(period)
				for _, service := range setup.keeps {
					e.agree(period, service)
				}
			}
			lost := map[string]int64{}
			for _, service := range edgesServices {
				lost[service] = loads[service].stop()
				t.Log(loads[service])
			}
			for _, service := range setup.keeps {
				if lost[service] > 0 {
					t.Errorf("%s: %d connections are lost:\n%s", service, lost[service],
						loads[service].why())
				}
			}
			if lost["ecmp"] == 0 {
				t.Error("ecmp: no connection is lost: the test does nothing that would break one")
			}
		})
	}
}

// period has an edge die, a server leave or return meanwhile, and the edge come back. It loses its
// power and all that it knew, or its agent alone: then the programs forward on by the tables of
// before.
func (e *edges) period(n int) {
	next := time.Now().Add(edgesPeriod)
	if n%2 == 0 {
		edge := edgeNames[n/2%len(edgeNames)]
		e.powerOff(edge)
		e.changePool(n, edge)
		e.powerOn(edge)
	} else {
		edge := edgeNames[(n/2+1)%len(edgeNames)]
		e.kill(edge)
		change := e.changePool(n, edge)
		e.start(edge)
		change(edge)
	}
	time.Sleep(time.Until(next))
}

// changePool drains a server, or brings the drained one back, on all edges but one, which is away.
// It returns what does the same on another edge.
func (e *edges) changePool(n int, away string) (change func(edge string)) {
	server, state := edgesServers[n/2%len(edgesServers)], config.Draining
	if n%2 == 1 {
		state = config.Up
	}
	e.states[server] = state
	change = func(edge string) {
		for _, i := range e.random.Perm(len(edgesServices)) {
			_, err := e.client(edge).PutBackend(e.t.Context(), api.Update, edgesServices[i], server,
				api.BackendSpec{State: &state})
			if err != nil {
				e.t.Fatalf("%s: %s of service %s becomes %s: %v", edge, server, edgesServices[i],
					state, err)
			}
		}
	}
	for _, i := range e.random.Perm(len(edgeNames)) {
		if edge := edgeNames[i]; edge != away {
			change(edge)
			time.Sleep(time.Duration(e.random.Int64N(int64(300 * time.Millisecond))))
		}
	}
	return change
}

// agree sees that all edges offer a new connection to the same servers.
func (e *edges) agree(period int, service string) {
	e.t.Helper()
	var first []pool.Chain
	for _, edge := range edgeNames {
		chains, err := datapath.PinnedChains(filepath.Join(nodeOf(e.t, e.lab, edge).BPF, "edge"),
			uint32(1+slices.Index(edgesServices, service)))
		if err != nil || len(chains) == 0 {
			e.t.Fatalf("%s has %d chains for service %s, error %v", edge, len(chains), service, err)
		}
		if first == nil {
			first = chains
			continue
		}
		differ := 0
		for i, c := range chains {
			if c.Candidates != first[i].Candidates || !slices.Equal(c.IDs[:c.Candidates],
				first[i].IDs[:c.Candidates]) {
				differ++
			}
		}
		if differ > 0 {
			e.t.Errorf("period %d, service %s: %s and %s disagree about the candidates of %d of "+
				"%d buckets",
				period, service, edgeNames[0], edge, differ, len(chains))
		}
	}
}
