package e2e_test

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// visited counts what a web server meets with.
type visited struct{ asked, opened, open atomic.Int32 }

// servePages has a server answer checks of service page until the end of the test.
func (c *checkedLab) servePages(i int) {
	c.t.Helper()
	v := &c.pages[i]
	web := &http.Server{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { v.asked.Add(1) }),
		ConnState: func(_ net.Conn, now http.ConnState) {
			switch now {
			case http.StateNew:
				v.opened.Add(1)
				v.open.Add(1)
			case http.StateClosed:
				v.open.Add(-1)
			}
		},
	}
	var listener net.Listener
	inside(c.t, c.lab, server(i), func() (err error) {
		listener, err = net.Listen("tcp", "[2001:db8:80::80]:80")
		return err
	})
	go func() { _ = web.Serve(listener) }()
	c.t.Cleanup(func() { web.Close() })
}

// until waits for something about the pages of a server.
func (c *checkedLab) until(what string, is func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not so", what)
		}
	}
}

// Checks take the connection of those before, which is closed when their backend drains, or goes.
// A server that is not reached fails its checks on it.
func TestChecksKeepConnections(t *testing.T) {
	t.Parallel()
	c := upChecked(t)
	v := &c.pages[1]
	asked, opened := v.asked.Load(), v.opened.Load()
	c.until("ten checks on one connection", func() bool {
		if now := v.opened.Load(); now != opened {
			asked, opened = v.asked.Load(), now
		}
		return v.asked.Load() >= asked+10
	})
	state := func(s config.BackendState) {
		t.Helper()
		if _, err := c.client("edge").PutBackend(t.Context(), api.Update, "page", server(1),
			api.BackendSpec{State: &s}); err != nil {
			t.Fatal(err)
		}
	}
	state(config.Draining)
	asked = v.asked.Load()
	c.until("it is checked while it drains", func() bool { return v.asked.Load() >= asked+3 })
	c.until("no connection stays while it drains", func() bool {
		left, err := c.client("edge").Connections(t.Context(), "page", server(1))
		return err == nil && left.Connections == 0 && v.open.Load() == 0
	})
	state(config.Up)
	c.until("one is kept again", func() bool { return v.open.Load() == 1 })

	if _, err := c.client("edge").DeleteBackend(t.Context(), "page", server(2)); err != nil {
		t.Fatal(err)
	}
	c.until("no connection of a backend that is gone", func() bool {
		return c.pages[2].open.Load() == 0
	})

	c.power(1, false)
	c.await("web1 fails", func(b api.Backend) bool {
		return (b.Name == server(1)) == (b.Health.Status == "failing")
	})
	c.power(1, true)
	c.await("web1 is back", func(b api.Backend) bool { return b.Health.Status == "healthy" })

	asked = v.asked.Load()
	c.until("checks go on", func() bool { return v.asked.Load() >= asked+3 })
}
