package e2e_test

import (
	"net"
	"sync"
	"syscall"
	"testing"

	"sextant/agent/api"
)

// A service gets no more new connections than its limit allows: who comes too early comes again,
// and nobody is turned away for good. Connections that are there go on, and the limit changes and
// goes while they do.
func TestNewConnections(t *testing.T) {
	a := upWithAgents(t)
	for _, node := range []string{"web1", "web2", "web3"} {
		serveEcho(t, a.lab, node)
	}
	tr := startTraffic(t, a.lab)
	limit := func(rate, burst int) {
		t.Helper()
		spec := api.ServiceSpec{NewConnections: &api.NewConnectionsSpec{Rate: rate, Burst: burst}}
		if _, err := a.client("edge").PutService(t.Context(), api.Update, "tcp", api.Edge,
			spec); err != nil {
			t.Fatal(err)
		}
	}
	limit(8, 4)
	const newcomers = 16
	var dialing sync.WaitGroup
	ns := namespaceOf(t, a.lab, "client")
	defer ns.Close()
	dial := func(dialer net.Dialer) error {
		return ns.Do(func() error {
			conn, err := dialer.Dial("tcp", echoAddress)
			if err == nil {
				conn.Close()
			}
			return err
		})
	}
	var ready sync.WaitGroup
	ready.Add(newcomers)
	together := func(string, string,
		syscall.RawConn) error { // at once, however slow the machine is
		ready.Done()
		ready.Wait()
		return nil
	}
	for i := range newcomers {
		dialing.Go(func() {
			if err := dial(net.Dialer{Timeout: 3 * patience, Control: together}); err != nil {
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
	if n := *services[0].Edge.NewConnections; n.Rate != 8 || n.Burst != 4 || n.Taken < newcomers ||
		n.Refused == 0 ||
		n.Refused != a.dropped("edge", api.Edge, "new_connections") {
		t.Errorf("of %d connections with a limit of 8 per second, 4 at once: %+v", newcomers, n)
	}
	limit(0, 0)
	refused := a.dropped("edge", api.Edge, "new_connections")
	for range newcomers {
		if err := dial(net.Dialer{Timeout: patience}); err != nil {
			t.Error(err)
		}
	}
	if after := a.dropped("edge", api.Edge, "new_connections"); after != refused {
		t.Errorf("%d connections were refused without a limit", after-refused)
	}
	tr.flows("without a limit")
}
