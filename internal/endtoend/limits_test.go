package endtoend_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/kernel"
)

// A service gets no more new connections than its limit allows: who comes too early comes again, and nobody is turned away for good.
// Connections that are there go on, and the limit changes and goes while they do.
func TestNewConnections(t *testing.T) {
	a := upWithAgents(t)
	for _, node := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, node)
	}
	tr := startTraffic(t, a.lab)
	limit := func(rate, burst int) {
		t.Helper()
		spec := api.ServiceSpec{NewConnections: &api.NewConnectionsSpec{Rate: rate, Burst: burst}}
		if _, err := a.client("edge").PutService(t.Context(), api.Update, "tcp", api.Edge, spec); err != nil {
			t.Fatal(err)
		}
	}
	limit(8, 4)
	const newcomers = 16
	var dialing sync.WaitGroup
	client, err := a.lab.Node("client")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := kernel.OpenNetns(client.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	dial := func(timeout time.Duration) error {
		return ns.Do(func() error {
			conn, err := net.DialTimeout("tcp", echoAddress, timeout)
			if err == nil {
				conn.Close()
			}
			return err
		})
	}
	for i := range newcomers {
		dialing.Go(func() {
			if err := dial(3 * patience); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	dialing.Wait()
	tr.flows("with a limit")
	services, err := a.client("edge").Services(t.Context(), "tcp", api.Edge)
	if err != nil || len(services) != 1 || services[0].Edge.NewConnections == nil {
		t.Fatalf("services %+v, error %v", services, err)
	}
	if n := *services[0].Edge.NewConnections; n.Rate != 8 || n.Burst != 4 || n.Taken < newcomers || n.Refused == 0 ||
		n.Refused != a.dropped("edge", api.Edge, "new_connections") {
		t.Errorf("of %d connections with a limit of 8 per second, 4 at once: %+v", newcomers, n)
	}
	limit(0, 0)
	refused := a.dropped("edge", api.Edge, "new_connections")
	for range newcomers {
		if err := dial(time.Second / 2); err != nil { // sooner than a SYN is sent again
			t.Error(err)
		}
	}
	if after := a.dropped("edge", api.Edge, "new_connections"); after != refused {
		t.Errorf("%d connections were refused without a limit", after-refused)
	}
	tr.flows("without a limit")
}
