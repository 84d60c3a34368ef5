package agent_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

const subflowsText = `
node: client1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
subflows:
  keyFile: DIR/cflb.key
  ipv4: {fields: source-port, radix: 4}
  afterBytes: 0
  rules: [{name: near, destination: 10.9.0.2/32, nextHops: "HOPS"}]
`

// withoutSubflows is the node without the role.
const withoutSubflows = "cflb: {interfaces: [{name: edge0}], router: 1, keyFile: DIR/cflb.key, " +
	"ipv4: {fields: source-port, radix: 4}}\n"

// newSubflowMachine is a machine on whose loopback interface an MPTCP connection is opened, to a
// listener that admits subflows.
func newSubflowMachine(t *testing.T) (m *machine, connect func() net.Conn) {
	t.Helper()
	m = newMachine(t)
	must(t, os.WriteFile(m.dir+"/cflb.key", []byte(strings.Repeat("05", 16)), 0o600))
	var listener net.Listener
	must(t, m.ns.Do(func() (err error) {
		if err := linuxtest.IP("link set lo up\naddr add 10.9.0.1/24 dev lo\n" +
			"addr add 10.9.0.2/24 dev lo\nmptcp limits set subflows 8"); err != nil {
			return err
		}
		config := net.ListenConfig{}
		config.SetMultipathTCP(true)
		listener, err = config.Listen(t.Context(), "tcp4", "10.9.0.2:5001")
		return err
	}))
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			_, _ = conn.Write([]byte{1})
		}
	}()
	return m, func() (conn net.Conn) {
		t.Helper()
		must(t, m.ns.Do(func() (err error) {
			dialer := net.Dialer{Timeout: 20 * time.Second,
				LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 9, 0, 1)}}
			dialer.SetMultipathTCP(true)
			if conn, err = dialer.DialContext(context.Background(), "tcp4",
				"10.9.0.2:5001"); err != nil {
				return err
			}
			_, err = conn.Read(make([]byte, 1))
			return err
		}))
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

// pathManager is who manages paths of connections that are opened now.
func (m *machine) pathManager() (manager string) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() (err error) {
		manager, _, err = linux.PathManager()
		return err
	}))
	return manager
}

// subflows waits until the connection from an end has subflows on so many paths, and returns their
// local ends.
func (r *running) subflows(conn net.Conn, state string, paths int) (sources []string) {
	r.t.Helper()
	r.await(fmt.Sprintf("%s is %s on %d paths", conn.LocalAddr(), state, paths),
		func(api.Status) bool {
			list, err := r.Subflows(r.t.Context())
			must(r.t, err)
			for _, c := range list {
				if c.Source.String() != conn.LocalAddr().String() || c.State != state ||
					len(c.Subflows) != paths {
					continue
				}
				sources = nil
				for _, s := range c.Subflows {
					sources = append(sources, s.Source.String())
				}
				return true
			}
			return false
		})
	return sources
}

// The role manages connections of its rule that are opened while it is there, and those that it
// finds when it starts again: they keep their subflows. A connection from before the role is the
// kernel's, and stays alone. Other rules hold for what is there. Who managed paths before does so
// again when the role goes, or is unloaded, or does not come to run.
func TestSubflowsRole(t *testing.T) {
	m, connect := newSubflowMachine(t)
	before := m.pathManager()
	foreign := connect()
	three, two := m.text(subflowsText, "HOPS", "3"), m.text(subflowsText, "HOPS", "2")
	a := m.start(three)
	if m.pathManager() == before {
		t.Errorf("the path manager is %s while the role runs", before)
	}
	conn := connect()
	first := a.subflows(conn, "managed", 3)
	a.subflows(foreign, "left", 0)
	a.stop()
	if m.pathManager() == before {
		t.Errorf("the path manager is %s after the end of the agent", before)
	}
	a = m.start(three)
	if again := a.subflows(conn, "managed", 3); !slices.Equal(again, first) {
		t.Errorf("after a restart subflows come from %s, not %s", again, first)
	}
	_, err := a.apply(two, false)
	must(t, err)
	if fewer := a.subflows(conn, "managed", 2); !slices.Equal(fewer, first[:2]) {
		t.Errorf("with two paths subflows come from %s, not %s", fewer, first[:2])
	}
	surplus := uint64(1)
	if first[2] == conn.LocalAddr().String() {
		surplus = 0 // the third path was the connection's own, whose port the kernel drew
	}
	a.await("counters", func(api.Status) bool {
		counters, err := a.Counters(t.Context())
		must(t, err)
		c := *counters[0].Subflows
		return c.Managed == 1 && c.Surplus == surplus && c.Left == 1
	})
	without := m.text(strings.Split(subflowsText, "subflows:")[0] + withoutSubflows)
	_, err = a.apply(without, true)
	must(t, err)
	if m.pathManager() == before {
		t.Errorf("a dry run makes the path manager %s", before)
	}
	_, err = a.apply(without, false)
	must(t, err)
	if got := m.pathManager(); got != before {
		t.Errorf("without the role the path manager is %s, not %s", got, before)
	}
	if list, err := a.Subflows(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("without the role connections are %+v, %v", list, err)
	}
	_, err = a.apply(two, false)
	must(t, err)
	a.subflows(conn, "managed", 2)
	a.stop()
	must(t, m.unload())
	if got := m.pathManager(); got != before {
		t.Errorf("after unloading the path manager is %s, not %s", got, before)
	}
}

// A change that fails in another role leaves the path manager as it was, and one that an operator
// chose while the role ran stays.
func TestSubflowsGiveBack(t *testing.T) {
	m, _ := newSubflowMachine(t)
	before := m.pathManager()
	text := m.text(subflowsText, "HOPS", "2")
	_ = m.fails(text + m.text(strings.ReplaceAll(withoutSubflows, "edge0", "none0")))
	if got := m.pathManager(); got != before {
		t.Errorf("after a refused start the path manager is %s, not %s", got, before)
	}
	a := m.start(text)
	must(t, m.ns.Do(func() error { return linux.SetPathManager(before) }))
	a.await("a warning", func(s api.Status) bool {
		return slices.ContainsFunc(s.Warnings,
			func(w string) bool { return strings.Contains(w, "subflows: net.mptcp.") })
	})
	a.stop()
	must(t, m.unload())
	if got := m.pathManager(); got != before {
		t.Errorf("the path manager that an operator chose became %s", got)
	}
}
