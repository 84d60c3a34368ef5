package agent_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sextant/linux/linuxtest"
)

// routedText is an edge that has backends from FRRouting and from a table of the kernel.
const routedText = `
node: both1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
state: DIR/state
api: {socket: DIR/agent.sock}
edge:
  interfaces: [{name: edge0}]
  source: fd00:5e::e1
  services:
    - name: web
      vip: 2001:db8:80::80
      port: 80
      returnHold: 0
      drainTime: 1m
      backends: [{name: web1, sid: "fcbb:bb00:1::"}]
routing:
  fpm: {listen: "[::1]:2620", settle: 1s}
  vrfs: [{name: blue, source: kernel, table: 10}, {name: green, source: fpm, table: main}]
`

// backendsText writes "name state weight source" for each backend of the service.
func backendsText(t *testing.T, r *running) string {
	t.Helper()
	backends, err := r.Backends(t.Context(), "web")
	must(t, err)
	var words []string
	for _, b := range backends {
		words = append(words, fmt.Sprintf("%s %s %d %s", b.Name, b.State, b.Weight, b.Source))
	}
	return strings.Join(words, "; ")
}

func (m *machine) ip(words string) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error { return linuxtest.IP(words) }))
}

// Next hops over SRv6 of a routing table become backends beside those of the node file; one that
// leaves drains, one that has several segments is of no use, and what clients of FPM send changes
// nothing of that. The next agent knows them from the start.
func TestBackendsFromRoutes(t *testing.T) {
	m := newMachine(t)
	m.ip("link set lo up")
	hop := func(id int, segments string) {
		m.ip(fmt.Sprintf("-6 nexthop replace id %d encap seg6 mode encap segs %s dev lo", id,
			segments))
	}
	hop(1, "fcbb:bb00:2::")
	hop(2, "fcbb:bb00:3::")
	hop(3, "fcbb:bb00:5::,fcbb:bb00:4::")
	m.ip("nexthop add id 9 group 1,3/2/3")
	m.ip("-6 route add 2001:db8:80::80 table 10 nhid 9")
	r := m.start(routedText)
	const all = "web1 up 1 config; kernel-fcbb-bb00-2 up 3 kernel; kernel-fcbb-bb00-3 up 1 kernel"
	await(t, all, func() string { return backendsText(t, r) })
	m.hostile()
	routes, err := r.Routes(t.Context())
	must(t, err)
	if len(routes) != 1 || routes[0].VRF != "blue" || routes[0].Ignored != "segments" ||
		len(routes[0].NextHops) != 3 {
		t.Errorf("routes %+v, want one of three next hops, one of which has several segments",
			routes)
	}
	m.ip("nexthop replace id 9 group 1,3")
	const drained = "web1 up 1 config; kernel-fcbb-bb00-2 up 3 kernel; kernel-fcbb-bb00-3 " +
		"draining 1 kernel"
	await(t, drained, func() string { return backendsText(t, r) })
	r.stop()
	r = m.start(routedText)
	if got := backendsText(t, r); got != drained {
		t.Errorf("after a restart: %s, want %s", got, drained)
	}
	_, err = r.apply(strings.Replace(m.text(routedText), "table: 10", "table: 11", 1), false)
	if err == nil || !strings.Contains(err.Error(), "restart the agent") {
		t.Errorf("another table: error %v, want one that tells to restart", err)
	}
	await(t, "fpm false 0; kernel true 1", func() string {
		sources, err := r.RouteSources(t.Context())
		must(t, err)
		var words []string
		for _, s := range sources {
			words = append(words, fmt.Sprintf("%s %v %d", s.Source, s.Complete, s.Routes))
		}
		return strings.Join(words, "; ")
	})
}

// hostile connects to FPM and sends nonsense.
func (m *machine) hostile() {
	m.t.Helper()
	for _, text := range []string{"GET / HTTP/1.0\r\n\r\n", "\x01\x01\x00\x08abcd", "\x01\x01\xff",
		""} {
		must(m.t, m.ns.Do(func() error {
			c, err := net.Dial("tcp", "[::1]:2620")
			if err != nil {
				return err
			}
			_, err = c.Write([]byte(text))
			return errors.Join(err, c.Close())
		}))
	}
}

// await waits until something is as wanted.
func await(t *testing.T, want string, look func() string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got = look(); got == want {
			return
		}
	}
	t.Fatalf("never as wanted:\n%s, want\n%s", got, want)
}
