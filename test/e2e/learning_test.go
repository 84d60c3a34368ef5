package e2e_test

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/linux"
)

// learning is the lab of learning.yaml.
type learning struct {
	*agents
	edges, servers []string
}

// learningConnections are opened at once to each of both VIPs.
const learningConnections = 40

// Hosts tell the edges who has a connection: then no packet but SYNs goes to a host that has not.
// What the edges know is taken from them, is wrong, or is switched off: no connection notices.
func TestLearning(t *testing.T) {
	l := &learning{
		agents: upFile(t, "learning.yaml"), edges: []string{"edge1", "edge2"},
		servers: []string{"web1", "web2", "web3"},
	}
	for _, server := range l.servers {
		l.serve(server)
	}
	var open []net.Conn
	t.Run("straight to the owner", func(t *testing.T) { open = l.straight(t) })
	t.Run("a server is drained", func(t *testing.T) { l.drain(t, open) })
	t.Run("the cache is lost", func(t *testing.T) { l.lose(t, open) })
	t.Run("the doctor", func(t *testing.T) { l.doctor(t) })
	t.Run("an owner is down", func(t *testing.T) { l.down(t, open) })
	t.Run("switched off", func(t *testing.T) { l.off(t) })
}

// serve answers what comes to both VIPs of a server.
func (l *learning) serve(server string) {
	l.t.Helper()
	for _, vip := range []string{"[2001:db8:80::80]:7", "198.51.100.80:7"} {
		serveWords(l.t, l.lab, server, vip, nil)
	}
}

func (l *learning) dial(t *testing.T) (open []net.Conn) {
	t.Helper()
	inside(t, l.lab, "client", func() error {
		for range learningConnections {
			for _, vip := range []string{"[2001:db8:80::80]:7", "198.51.100.80:7"} {
				conn, err := net.DialTimeout("tcp", vip, patience)
				if err != nil {
					return err
				}
				l.t.Cleanup(func() { conn.Close() })
				open = append(open, conn)
			}
		}
		return nil
	})
	return open
}

// talk sends something over each connection, and returns those that brought it back.
func (l *learning) talk(open []net.Conn) (alive []net.Conn) {
	for _, conn := range open {
		out, in := []byte("there and back"), make([]byte, 14)
		conn.SetDeadline(time.Now().Add(patience))
		_, err := conn.Write(out)
		if err == nil {
			_, err = io.ReadFull(conn, in)
		}
		if err == nil && string(in) == string(out) {
			alive = append(alive, conn)
		}
	}
	return alive
}

// talks wants all connections to live.
func (l *learning) talks(t *testing.T, open []net.Conn) {
	t.Helper()
	for range 3 {
		if alive := l.talk(open); len(alive) != len(open) {
			t.Fatalf("%d of %d connections are broken", len(open)-len(alive), len(open))
		}
	}
}

// seen is what the nodes have counted.
type seen struct {
	events    map[string]uint64 // of the edges' caches
	learned   uint64            // SYN-ACKs at the edges
	byEdge    uint64            // SYN-ACKs at the hosts
	passedOn  uint64            // packets that met a host other than their own
	refused   uint64            // of these, SYNs
	notRouted uint64
}

func (l *learning) count(t *testing.T) seen {
	t.Helper()
	s := seen{events: map[string]uint64{}}
	for _, edge := range l.edges {
		counters, err := l.client(edge).Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range counters {
			s.learned += c.LearnedPackets
			for _, e := range c.FlowCache {
				s.events[e.Event] += e.Packets
			}
		}
	}
	for _, server := range l.servers {
		services, err := l.client(server).Services(t.Context(), "", api.Host)
		if err != nil {
			t.Fatal(err)
		}
		for _, service := range services {
			s.byEdge += service.Host.ByEdge
			s.notRouted += service.Host.NotRouted
			s.passedOn += service.Host.PassedOnPackets
			s.refused += service.Host.Refused
		}
	}
	return s
}

// sentAgain is how many segments TCP has sent more than once: on a busy machine one may take longer
// than TCP waits.
func (l *learning) sentAgain(t *testing.T) (sum uint64) {
	t.Helper()
	for _, node := range append([]string{"client"}, l.servers...) {
		sum += tcpCounter(t, l.lab, node, "RetransSegs")
	}
	return sum
}

// straight opens connections: all SYN-ACKs go by way of the edges, and all that follows goes to the
// owner at once.
func (l *learning) straight(t *testing.T) []net.Conn {
	open := l.dial(t)
	l.talks(t, open)
	now, again := l.count(t), l.sentAgain(t)
	right := func(got, want uint64) bool { return got >= want && got <= want+again }
	if want := uint64(len(open)); !right(now.byEdge, want) || !right(now.learned, want) ||
		!right(now.events["stored"], want) {
		t.Errorf("%d SYN-ACKs went by way of the edges, of which %d came there and %d were "+
			"noted; want %d: %+v",
			now.byEdge, now.learned, now.events["stored"], want, now)
	}
	if !right(now.refused, uint64(len(open))) || !right(now.passedOn, now.refused) {
		t.Errorf("hosts passed on %d packets, of which %d were SYNs that they refused; want the "+
			"SYN of each connection and nothing else", now.passedOn, now.refused)
	}
	if now.events["miss"] != 0 || now.events["stale"] != 0 ||
		now.events["hit"] < 4*uint64(len(open)) {
		t.Errorf("the caches say %v, want hits alone", now.events)
	}
	for _, edge := range l.edges {
		if counters, err := l.client(edge).Counters(t.Context()); err != nil ||
			counters[0].LearnedPackets == 0 {
			t.Errorf("%s has learnt nothing, error %v", edge, err)
		}
	}
	return open
}

// drain changes the pool: the owners of before are still found at once.
func (l *learning) drain(t *testing.T, open []net.Conn) {
	before := l.count(t)
	l.setState(t, "web1", config.Draining)
	l.talks(t, open)
	now := l.count(t)
	if now.passedOn != before.passedOn || now.events["miss"] != before.events["miss"] ||
		now.events["stale"] != before.events["stale"] {
		t.Errorf("%+v became %+v; want no packet on a detour", before, now)
	}
}

func (l *learning) setState(t *testing.T, backend string, state config.BackendState) {
	t.Helper()
	for _, edge := range l.edges {
		for _, service := range []string{"ipv6", "ipv4"} {
			if _, err := l.client(edge).PutBackend(t.Context(), api.Update, service, backend,
				api.BackendSpec{State: &state}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// lose takes programs and tables of the edges away, so that they begin without a cache: the chains
// find the owners.
func (l *learning) lose(t *testing.T, open []net.Conn) {
	l.kill()
	for _, edge := range l.edges {
		l.unload(edge)
	}
	l.start()
	l.ready()
	before := l.count(t)
	if before.events["stored"] != 0 {
		t.Fatalf("the caches still say %v", before.events)
	}
	l.talks(t, open)
	now := l.count(t)
	if now.events["hit"] != 0 || now.events["miss"] == 0 || now.passedOn <= before.passedOn {
		t.Errorf("%+v became %+v; want misses alone, and packets on detours", before, now)
	}
}

// doctor looks at nodes whose tables are new: SYN-ACKs have no route to the edges, then they have,
// and then an edge does not forward them.
func (l *learning) doctor(t *testing.T) {
	o := newOperator(t, l.agents)
	finds := func(node, code string, want bool) {
		t.Helper()
		if found := strings.Fields(string(o.run(node, "doctor --quick -o name"))); slices.Contains(
			found, code) != want {
			t.Errorf("%s: the doctor finds %v; want %s among them: %v", node, found, code, want)
		}
	}
	route := func(verb string) {
		for _, server := range l.servers {
			for i := range l.edges {
				sid := fmt.Sprintf("fd00:5e:0:1ea::%d", i+1)
				inside(t, l.lab, server, func() error {
					return exec.Command("ip", "-6", "route", verb, "unreachable", sid, "metric",
						"1").Run()
				})
			}
		}
	}
	before := l.count(t)
	route("add")
	l.talks(t, l.dial(t))
	if now := l.count(t); now.notRouted == before.notRouted || now.events["stored"] != 0 {
		t.Fatalf("%+v became %+v; want SYN-ACKs that have no route to an edge", before, now)
	}
	finds("web2", "learner_unrouted", true)
	finds("edge1", "cache_silent", true)
	finds("edge1", "sysctl_forwarding", false)
	route("del")
	l.talks(t, l.dial(t))
	finds("edge1", "cache_silent", false)
	inside(t, l.lab, "edge1", func() error { return linux.WriteSysctl("net.ipv4.ip_forward", "0") })
	finds("edge1", "sysctl_forwarding", true)
	inside(t, l.lab, "edge1", func() error { return linux.WriteSysctl("net.ipv4.ip_forward", "1") })
	finds("edge1", "sysctl_forwarding", false)
}

// down takes an owner out: what the caches say of it is not believed any more, and connections of
// the others live.
func (l *learning) down(t *testing.T, open []net.Conn) {
	fresh := l.dial(t)
	l.talks(t, fresh)
	before := l.count(t)
	l.setState(t, "web2", config.Down)
	alive := l.talk(fresh)
	now := l.count(t)
	lost := len(fresh) - len(alive)
	if lost == 0 || len(alive) == 0 {
		t.Fatalf("%d of %d connections are lost, want those of web2", lost, len(fresh))
	}
	if stale := now.events["stale"] - before.events["stale"]; stale < uint64(lost) {
		t.Errorf("the caches were disbelieved %d times, with %d connections of a server that is "+
			"down", stale, lost)
	}
	hosts, err := l.client("web2").Services(t.Context(), "", api.Host)
	if err != nil {
		t.Fatal(err)
	}
	taken := hosts[0].Packets + hosts[1].Packets
	l.talks(t, alive)
	if hosts, err = l.client("web2").Services(t.Context(), "", api.Host); err != nil ||
		hosts[0].Packets+hosts[1].Packets != taken {
		t.Errorf("a server that is down has got %d packets, error %v",
			hosts[0].Packets+hosts[1].Packets-taken, err)
	}
	l.setState(t, "web2", config.Up)
}

// off makes the edges forget about learning: all is as without it.
func (l *learning) off(t *testing.T) {
	cache := regexp.MustCompile(`(?m)^ +flowCache:\n +sid: .*\n +entries: .*\n`)
	for _, edge := range l.edges {
		text, err := l.client(edge).Config(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		if changes, err := l.client(edge).Apply(t.Context(), "node.yaml",
			cache.ReplaceAll(text, nil), false); err != nil || len(changes.Items) != 1 {
			t.Fatalf("%s: changed %v, error %v", edge, changes.Items, err)
		}
	}
	before := l.count(t)
	fresh := l.dial(t)
	l.talks(t, fresh)
	now := l.count(t)
	if now.byEdge != before.byEdge || now.learned != before.learned || len(now.events) != 0 {
		t.Errorf("%+v became %+v; want SYN-ACKs to go straight", before, now)
	}
	if now.passedOn-before.passedOn <= now.refused-before.refused {
		t.Error("no packet but SYNs was passed on: the test's connections are not hunted for")
	}
}
