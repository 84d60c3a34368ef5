package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
)

const echoAddress4 = "198.51.100.80:7"

// checkedLab is the lab of health.yaml with its servers.
type checkedLab struct {
	*agents
	accepted [5]atomic.Int32 // connections of the client at server 1 to 4
	pages    [5]visited      // what checks do there
}

func upChecked(t *testing.T) *checkedLab {
	t.Helper()
	c := &checkedLab{agents: upFile(t, "health.yaml")}
	for i := 1; i <= 4; i++ {
		c.serve(i, echoAddress)
		c.serve(i, echoAddress4)
		c.servePages(i)
	}
	c.await("all are healthy", func(b api.Backend) bool {
		return b.Health.Status == "healthy" && b.Effective == config.Up
	})
	return c
}

func server(i int) string { return fmt.Sprintf("web%d", i) }

// serve answers at an address of a server until the end of the test.
func (c *checkedLab) serve(i int, address string) {
	c.t.Helper()
	serveWords(c.t, c.lab, server(i), address, func(conn net.Conn) {
		if conn.RemoteAddr().(*net.TCPAddr).IP.Equal(net.ParseIP("2001:db8:c::1")) {
			c.accepted[i].Add(1)
		}
	})
}

// await waits until all backends of all services are as they should be.
func (c *checkedLab) await(what string, as func(api.Backend) bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		backends, err := c.client("edge").Backends(c.t.Context(), "")
		if err != nil {
			log, _ := os.ReadFile(c.lab.Log("edge", "sextant"))
			c.t.Fatalf("%v\n%s", err, log)
		}
		wrong := -1
		for i, b := range backends {
			if b.Health == nil || !as(b) {
				wrong = i
			}
		}
		if wrong < 0 {
			return
		}
		if b := backends[wrong]; time.Now().After(deadline) {
			log, _ := os.ReadFile(c.lab.Log("edge", "sextant"))
			c.t.Fatalf("%s: not so: %+v, health %+v\n%s", what, b, b.Health, log)
		}
	}
}

// power makes a server unreachable, as a dead one is, or brings it back.
func (c *checkedLab) power(i int, on bool) {
	c.t.Helper()
	inside(c.t, c.lab, "router", func() (err error) {
		for _, half := range []string{"fcbb:bb00:%d::/49", "fcbb:bb00:%d:8000::/49"} {
			_, prefix, failed := net.ParseCIDR(fmt.Sprintf(half, i))
			route := &netlink.Route{Dst: prefix, Type: unix.RTN_BLACKHOLE}
			if on {
				err = errors.Join(err, failed, netlink.RouteDel(route))
			} else {
				err = errors.Join(err, failed, netlink.RouteAdd(route))
			}
		}
		return err
	})
}

// dial opens connections and sees that each answers.
func (c *checkedLab) dial(n int) []net.Conn {
	c.t.Helper()
	conns := make([]net.Conn, n)
	for i := range conns {
		inside(c.t, c.lab, "client", func() (err error) {
			conns[i], err = net.DialTimeout("tcp", echoAddress, patience)
			return err
		})
		c.t.Cleanup(func() { conns[i].Close() })
		if err := echo(conns[i]); err != nil {
			c.t.Fatalf("connection %d: %v", i, err)
		}
	}
	return conns
}

func echo(conn net.Conn) error {
	var buffer [1]byte
	conn.SetDeadline(time.Now().Add(patience / 3)) // those of a dead host take as long
	if _, err := conn.Write([]byte{7}); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, buffer[:])
	return err
}

// A host that dies leaves the chains, takes only its own connections along, and comes back; the
// next agent knows.
func TestDeadHostLeaves(t *testing.T) {
	t.Parallel()
	c := upChecked(t)
	conns := c.dial(60)
	c.power(3, false)
	began := time.Now()
	c.await("web3 fails, the others do not", func(b api.Backend) bool {
		if b.Name == server(3) {
			return b.Health.Status == "failing" && b.Effective == config.Draining &&
				b.State == config.Up && b.Buckets == 0 && b.Health.LastError != ""
		}
		return b.Health.Status == "healthy" && b.Effective == config.Up && b.Buckets > 0
	})
	t.Logf("web3 left after %v, with checks every 500 ms of which 3 fail after 500 ms each",
		time.Since(began))
	for metric, want := range map[string]string{
		`sextant_backend_up{backend="web3",service="tcp"}`:      "0",
		`sextant_backend_up{backend="web2",service="tcp"}`:      "1",
		`sextant_backend_healthy{backend="web3",service="tcp"}`: "0",
		`sextant_service_panic{service="tcp"}`:                  "0",
	} {
		if text := c.metrics("edge"); !strings.Contains(text, metric+" "+want+"\n") {
			t.Errorf("metric %s is not %s in\n%s", metric, want, text)
		}
	}
	dead := int(c.accepted[3].Load())
	var echoes sync.WaitGroup
	var silent atomic.Int32
	for _, conn := range conns {
		echoes.Go(func() {
			if echo(conn) != nil {
				silent.Add(1)
			}
		})
	}
	echoes.Wait()
	dead -= int(silent.Load())
	if dead != 0 || c.accepted[3].Load() == 0 {
		t.Errorf("web3 had %d connections, of which %d are not missing", c.accepted[3].Load(), dead)
	}
	c.dial(60) // nobody is sent to the dead host, so nobody waits

	found := c.foundFailing(3)
	c.kill()
	c.start()
	c.ready()
	c.await("the next agent knows from the beginning",
		func(b api.Backend) bool { return b.Name != server(3) || b.Effective == config.Draining })
	c.power(3, true)
	c.await("web3 is back, and grows to its whole share", func(b api.Backend) bool {
		return b.Health.Status == "healthy" && b.Effective == config.Up &&
			b.Buckets > config.DefaultBuckets/5
	})
	if again := c.foundFailing(3) - found; found < 2 || again != 0 {
		t.Errorf("two services' checks found web3 failing %d times, and %d times after the agent "+
			"began again; it should know without checking", found, again)
	}
}

// foundFailing is how often checks found a server failing since the lab is up.
func (c *checkedLab) foundFailing(i int) int {
	c.t.Helper()
	log, err := os.ReadFile(c.lab.Log("edge", "sextant"))
	must(c.t, err)
	return strings.Count(string(log), "backend "+server(i)+": failing")
}

// When too few would be left, all are used; operators' words count in any case, and events tell of
// it.
func TestPanic(t *testing.T) {
	t.Parallel()
	c := upChecked(t)
	enough := errors.New("enough")
	var seen []string
	told := make(chan error, 1)
	begun := make(chan struct{}, 1)
	go func() {
		told <- c.client("edge").Monitor(t.Context(), 100*time.Millisecond,
			func(s api.Sample) error {
				select {
				case begun <- struct{}{}:
				default:
				}
				for _, e := range s.Events {
					if seen = append(seen, e.Service+" "+e.Backend+" "+
						e.Status); e.Status == "panic" &&
						e.Service == "tcp4" {
						return enough
					}
				}
				return nil
			})
	}()
	<-begun
	draining := config.Draining
	for _, service := range []string{"tcp", "tcp4", "page"} {
		if _, err := c.client("edge").PutBackend(t.Context(), api.Update, service, server(4),
			api.BackendSpec{State: &draining}); err != nil {
			t.Fatal(err)
		}
	}
	c.power(1, false)
	c.power(2, false)
	c.await("panic", func(b api.Backend) bool {
		switch b.Name {
		case server(1), server(2):
			return b.Health.Status == "failing" && b.Effective == config.Up && b.Buckets > 0
		case server(4):
			return b.Health.Status == "healthy" && b.Effective == config.Draining
		}
		return b.Health.Status == "healthy" && b.Effective == config.Up
	})
	if err := <-told; !errors.Is(err, enough) {
		t.Errorf("the monitor ended: %v; it told of %q", err, seen)
	}
	services, err := c.client("edge").Services(t.Context(), "tcp", api.Edge)
	if err != nil || !services[0].Edge.Panic {
		t.Errorf("the service says no panic: %+v, %v", services, err)
	}
	c.power(1, true)
	c.await("no panic", func(b api.Backend) bool {
		return b.Name != server(2) ||
			b.Effective == config.Draining
	})
}

// A draining backend tells what is left; whoever asks again when all have gone hears 0.
func TestConnectionsLeft(t *testing.T) {
	c := upChecked(t)
	conns := c.dial(60)
	draining := config.Draining
	if _, err := c.client("edge").PutBackend(t.Context(), api.Update, "tcp", server(1),
		api.BackendSpec{State: &draining}); err != nil {
		t.Fatal(err)
	}
	c.left(int(c.accepted[1].Load()))
	for _, conn := range conns {
		if err := echo(conn); err != nil {
			t.Errorf("a connection broke: %v", err)
		}
		conn.Close()
	}
	c.left(0)
}

// left waits until the backend web1 has so many connections; a check may add one for a moment.
func (c *checkedLab) left(want int) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got, err := c.client("edge").Connections(c.t.Context(), "tcp", server(1))
		if err != nil {
			c.t.Fatal(err)
		}
		if got.Connections == want {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d connections are left, want %d", got.Connections, want)
		}
	}
}

// Unloading leaves no rule and no route of checks.
func TestUnloadRemovesPaths(t *testing.T) {
	c := upChecked(t)
	if rules, routes := c.paths(); rules != 2 || routes != 2 {
		t.Errorf("%d rules and %d routes for 2 VIPs", rules, routes)
	}
	c.kill()
	if rules, routes := c.paths(); rules == 0 || routes == 0 {
		t.Error("a killed agent took its paths along")
	}
	c.unload("edge")
	if rules, routes := c.paths(); rules != 0 || routes != 0 {
		t.Errorf("%d rules and %d routes are left behind", rules, routes)
	}
}

// paths counts rules and routes on the edge that are none of the lab's.
func (c *checkedLab) paths() (rules, routes int) {
	c.t.Helper()
	inside(c.t, c.lab, "edge", func() error {
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			list, err := netlink.RuleList(family)
			if err != nil {
				return err
			}
			for _, r := range list {
				if r.Priority > 0 && r.Priority < 32766 {
					rules++
				}
			}
			all, err := netlink.RouteListFiltered(family, &netlink.Route{}, netlink.RT_FILTER_TABLE)
			if err != nil {
				return err
			}
			for _, r := range all {
				if r.Table > 255 {
					routes++
				}
			}
		}
		return nil
	})
	return rules, routes
}
