package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	serverload "sextant/agent/serverload"
	"sextant/lb/acceptance"
	"sextant/packet/quiclb"
)

// QUIC servers say themselves whether they want connections. The first packets hunt from one that
// is full, or as busy as its policy allows, to the other; what is there stays there, and goes on
// from another address.
func TestQUICServerRefuses(t *testing.T) {
	needsRoot(t)
	text, err := os.ReadFile("testdata/quic-load.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loads := t.TempDir()
	var servers []*quicLoad
	for i := range 2 {
		gauge, err := serverload.OpenGauge(filepath.Join(loads, fmt.Sprintf("web%d", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { gauge.Close() })
		servers = append(servers, &quicLoad{node: fmt.Sprintf("web%d", i+1), gauge: gauge})
	}
	a := upText(t, "quic-load.yaml", strings.ReplaceAll(string(text), "LOADS", loads))
	for i := range servers {
		serveQUIC(t, a.lab, i+1, quiclb.Config{ServerIDLength: 2, NonceLength: 6})
	}
	all := dialAll(t, a.lab, 2)
	for _, phase := range []struct {
		busy [2]int
		want byte
	}{{[2]int{acceptance.Full, 0}, 2}, {[2]int{0, acceptance.Full}, 1}, {[2]int{1000, 999}, 2},
		{[2]int{7, 1001}, 1}} {
		for i, busy := range phase.busy {
			servers[i].say(t, a, busy)
		}
		busier := servers[2-phase.want]
		for before, dialed := busier.service(t, a).Refused,
			0; busier.service(t, a).Refused == before; dialed++ {
			if dialed == 40 {
				t.Fatalf("busy %v: %s was offered none of %d connections", phase.busy, busier.node,
					dialed)
			}
			c := dialQUIC(t, a.lab, len(all))
			if c.owner != phase.want {
				t.Fatalf("busy %v: connection %d is at server %d", phase.busy, len(all), c.owner)
			}
			all = append(all, c)
		}
	}
	for i, address := range []string{"2001:db8:c::2", "2001:db8:c::1"} {
		servers[i].say(t, a, acceptance.Full)
		moveAll(t, a.lab, all, address)
		for number, c := range all {
			if err := c.talk(); err != nil {
				t.Fatalf("connection %d from %s, servers full: %v", number, address, err)
			}
		}
	}
	if c := dialQUIC(t, a.lab, len(all)); c.owner == 0 {
		t.Error("of servers that are all full, none took a connection")
	}
}

// quicLoad is a server's word about its load.
type quicLoad struct {
	node  string
	gauge *serverload.Gauge
}

// say sets the number, and waits until the host knows it.
func (q *quicLoad) say(t *testing.T, a *agents, busy int) {
	t.Helper()
	q.gauge.Set(busy)
	for deadline := time.Now().Add(patience); q.service(t,
		a).Busy != busy; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s says it is %d busy, its host knows of %d", q.node, busy,
				q.service(t, a).Busy)
		}
	}
}

func (q *quicLoad) service(t *testing.T, a *agents) api.HostService {
	t.Helper()
	services, err := a.client(q.node).Services(t.Context(), "h3", api.Host)
	if err != nil || len(services) != 1 || services[0].Host == nil {
		t.Fatalf("%s: services %+v, error %v", q.node, services, err)
	}
	return *services[0].Host
}
