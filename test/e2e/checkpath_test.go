package e2e_test

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// checkPath lets the checks of service tcp reach a server, or not; clients' packets take another
// way, by the server's own SID.
func (c *checkedLab) checkPath(i int, open bool) {
	c.t.Helper()
	inside(c.t, c.lab, "router", func() error {
		_, prefix, err := net.ParseCIDR(fmt.Sprintf("fcbb:bb00:%d:e046::/64", i))
		route := &netlink.Route{Dst: prefix, Type: unix.RTN_BLACKHOLE}
		if open {
			return errors.Join(err, netlink.RouteDel(route))
		}
		return errors.Join(err, netlink.RouteAdd(route))
	})
}

// talkers are connections that all the time send a byte and get it back.
type talkers struct {
	t       *testing.T
	running sync.WaitGroup
	rounds  []atomic.Int64 // by connection
	broken  atomic.Int64
	first   atomic.Pointer[error]
	end     chan struct{}
}

func talk(t *testing.T, conns []net.Conn) *talkers {
	t.Helper()
	k := &talkers{t: t, rounds: make([]atomic.Int64, len(conns)), end: make(chan struct{})}
	for i, conn := range conns {
		k.running.Go(func() {
			pause := time.NewTicker(10 * time.Millisecond)
			defer pause.Stop()
			for last := false; ; {
				if err := echo(conn); err != nil {
					k.first.CompareAndSwap(nil, &err)
					k.broken.Add(1)
					return
				}
				k.rounds[i].Add(1)
				if last {
					return
				}
				select {
				case <-k.end:
					last = true
				case <-pause.C:
				}
			}
		})
	}
	return k
}

// stop ends them when each has been answered once more, and returns how many were broken.
func (k *talkers) stop() int64 {
	close(k.end)
	k.running.Wait()
	return k.broken.Load()
}

// tcp waits until the backends of service tcp are as they should be.
func (c *checkedLab) tcp(what string, panics bool, failing ...int) {
	c.t.Helper()
	is := map[string]bool{}
	for _, i := range failing {
		is[server(i)] = true
	}
	c.await(what, func(b api.Backend) bool {
		fails := is[b.Name]
		return b.Service != "tcp" ||
			(b.Health.Status == "failing") == fails && (b.Buckets > 0) == (panics || !fails)
	})
}

// Where the way of the checks alone is cut, returns, and flaps, no connection is reset, be it old,
// or begun while servers were taken for failing.
func TestCutCheckPathResetsNothing(t *testing.T) {
	c := upChecked(t)
	var all []*talkers
	begin := func() { all = append(all, talk(t, c.dial(50))) }
	begin()
	for _, i := range []int{1, 2, 3, 4} {
		c.checkPath(i, false)
	}
	c.tcp("panic: no server is reached by its checks", true, 1, 2, 3, 4)
	begin()
	c.checkPath(2, true)
	c.checkPath(3, true)
	c.tcp("the panic is over: two are reached, and two are not", false, 1, 4)
	begin()
	c.checkPath(3, false)
	c.tcp("panic: one is reached", true, 1, 3, 4)
	begin()
	for range 3 { // while news of the last step are still coming
		c.checkPath(1, true)
		c.checkPath(2, false)
		time.Sleep(300 * time.Millisecond)
		c.checkPath(1, false)
		c.checkPath(2, true)
		time.Sleep(300 * time.Millisecond)
	}
	for _, i := range []int{1, 3, 4} {
		c.checkPath(i, true)
	}
	c.tcp("all are reached", false)
	for stage, k := range all {
		if broken := k.stop(); broken > 0 {
			t.Errorf("stage %d: %d of %d connections are broken, one by: %v",
				stage, broken, len(k.rounds), *k.first.Load())
		}
	}
}
