package e2e_test

import (
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/config"
	"sextant/controller/tsharktest"
)

// copy has the edge send packets of some kinds over both routers; none: over one of them.
func (w *wayLab) copy(kinds ...config.Copied) {
	w.t.Helper()
	must(w.t, w.configure(func(e *config.Edge) {
		e.Network = &config.EdgeNetwork{Network: config.Network{Topology: w.file, FRR: "/run/frr",
			Node: w.node}}
		s := &e.Services[0]
		s.Depth, s.Copies = 3, kinds
		s.Way = &config.Way{By: config.ByIGP, Disjoint: 2, SIDs: 2}
		for i := range s.Backends {
			s.Backends[i].Node = "out"
		}
	}))
}

// talk has all connections talk, and returns how often they spoke, each time in a packet with data,
// which mostly acknowledges the answer before, too; how many packets came to each router; and how
// many the servers dropped as second copies.
func (w *wayLab) talk(rounds int) (said, left, right, second uint64) {
	w.t.Helper()
	left, right, second = w.received("left"), w.received("right"), w.seconds()
	for range rounds {
		for i, conn := range w.conns {
			if err := echo(conn); err != nil {
				w.t.Fatalf("connection %d: %v", i, err)
			}
		}
	}
	return uint64(rounds * len(w.conns)), w.received("left") - left,
		w.received("right") - right, w.seconds() - second
}

// seconds counts the copies that servers have dropped.
func (w *wayLab) seconds() (n uint64) {
	w.t.Helper()
	for i := range w.accepted {
		n += w.dropped(server(i+1), api.Host, "duplicate")
	}
	return n
}

// retransmissions are those of all connections so far.
func (w *wayLab) retransmissions() (n uint32) {
	w.t.Helper()
	for _, conn := range w.conns {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		must(w.t, err)
		must(w.t, raw.Control(func(fd uintptr) {
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			must(w.t, err)
			n += info.Total_retrans
		}))
	}
	return n
}

// Copies of all packets take both routers, servers take one of each, and one router may lose all
// without a retransmission. Copies of SYNs alone leave other packets to one router. Each connection
// is accepted once, by whichever of two servers that refuse.
func TestCopiesToServers(t *testing.T) {
	w := upWays(t, "carrier")
	w.node = "in" // it has both links
	w.copy(config.CopiedAll)
	w.explainedCopies()
	w.traced()
	w.open(20)
	w.refused()
	said, left, right, second := w.talk(10)
	if left < said || right < said || second < said*9/10 {
		t.Errorf("%d packets: %d and %d came to the routers, %d were dropped as second copies",
			said, left, right, second)
	}
	w.lossy("left", true)
	before := w.retransmissions()
	w.open(10)
	said, _, right, second = w.talk(10)
	if n := w.retransmissions() - before; n != 0 || right < said || second > said/10 {
		t.Errorf("a router that loses all: %d packets, %d retransmissions, %d by the other "+
			"router, %d second copies", said, n, right, second)
	}
	w.lossy("left", false)
	w.narrow()
	w.copy(config.CopiedSYN)
	if said, left, right, second := w.talk(10); second > said/10 || left+right > said*3/2 ||
		left+right < said {
		t.Errorf("copies of SYNs: %d packets, %d and %d at the routers, %d second copies", said,
			left, right, second)
	}
	seconds := w.seconds()
	w.open(20)
	if n := w.seconds() - seconds; n < 20 {
		t.Errorf("20 connections, %d second copies", n)
	}
	w.copy(config.CopiedData)
	if said, _, _, second := w.talk(10); second < said*9/10 {
		t.Errorf("copies of data: %d packets, %d second copies", said, second)
	}
	w.loopRemoved()
	w.copy()
	if _, _, _, second := w.talk(10); second != 0 {
		t.Errorf("no copies: %d second copies", second)
	}
	if n := w.accepted[0].Load() + w.accepted[1].Load(); n != int64(len(w.conns)) {
		t.Errorf("%d connections, and servers accepted %d", len(w.conns), n)
	}
}

// narrow has a router's link carry less than the domain does: the client is told what fits,
// although the other copies arrive, and both paths carry what it sends from then on.
func (w *wayLab) narrow() {
	w.t.Helper()
	both := func(mtu string) {
		w.t.Helper()
		w.on("left", "ip", "link", "set", "dev", "out", "mtu", mtu)
		w.on("out", "ip", "link", "set", "dev", "left", "mtu", mtu)
	}
	both("1400")
	defer both("1500")
	told := func() uint64 {
		counters, err := w.client("edge").Counters(w.t.Context())
		must(w.t, err)
		return counters[0].TranslatedPackets
	}
	before, conn := told(), w.conns[0]
	const octets = 20_000
	say := func() {
		must(w.t, conn.SetDeadline(time.Now().Add(patience)))
		_, err := conn.Write(make([]byte, octets))
		must(w.t, err)
		_, err = io.ReadFull(conn, make([]byte, octets))
		must(w.t, err)
	}
	for deadline := time.Now().Add(patience); told() == before; {
		say()
		if time.Now().After(deadline) {
			w.t.Fatal("a router's link is narrow, and the client was told nothing")
		}
	}
	say() // what was too long before is acknowledged
	after, second := told(), w.seconds()
	say()
	if n, copies := told()-after, w.seconds()-second; n != 0 || copies < octets/1400 {
		w.t.Errorf("%d packets were too long again, and %d had second copies", n, copies)
	}
}

// loopRemoved removes the loop through which copies go: it is made anew, and copies go on.
func (w *wayLab) loopRemoved() {
	w.t.Helper()
	w.on("edge", "ip", "link", "del", "srv6copy")
	for deadline := time.Now().Add(patience); ; {
		if said, _, _, second := w.talk(2); second >= said*9/10 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the loop was removed: no copies again within %v", patience)
		}
	}
}

// lossy has a router lose what it is to forward to the servers, or no longer.
func (w *wayLab) lossy(router string, loses bool) {
	w.t.Helper()
	change := map[bool]string{true: "add", false: "del"}[loses]
	w.on(router, "ip", "-6", "rule", change, "pref", "10", "iif", "in", "to", "fcbb:bb00::/32",
		"blackhole")
}

// traced checks that the programs of edge and hosts, one after the other, take a packet once.
func (w *wayLab) traced() {
	w.t.Helper()
	var hosts []explain.Node
	for i := range w.accepted {
		hosts = append(hosts, explain.Node{Name: server(i + 1),
			Ask: w.client(server(i + 1)).Explain})
	}
	edge := explain.Node{Name: "edge", Ask: w.client("edge").Explain}
	list, err := explain.Follow(w.t.Context(), edge, hosts, api.Flow{
		Source:      netip.MustParseAddrPort("[2001:db8:c::1]:4000"),
		Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP})
	must(w.t, err)
	for _, p := range list {
		taken, second := 0, 0
		for _, s := range p.Steps {
			if s.Explanation != nil && s.Explanation.Outcome == "taken" {
				taken++
			}
			if s.Copy == 2 && s.Explanation != nil && s.Explanation.Reason == "duplicate" {
				second++
			}
		}
		if taken != 1 || second != 1 {
			w.t.Errorf("%s: taken %d times, %d second copies dropped: %+v", p.Packet, taken, second,
				p.Steps)
		}
	}
}

// explainedCopies checks what the edge says of a packet that it sends twice, and that the header of
// the first copy is that of the packet.
func (w *wayLab) explainedCopies() {
	w.t.Helper()
	list, err := w.client("edge").Explain(w.t.Context(), api.Question{Flow: &api.Flow{
		Source:      netip.MustParseAddrPort("[2001:db8:c::1]:4000"),
		Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP}})
	must(w.t, err)
	for _, e := range list {
		if e.OtherCopy == nil {
			w.t.Fatalf("%s goes once: %s", e.Packet, e.Why)
		}
		other := e.OtherCopy.Header
		if strings.Join(e.OtherCopy.Links, " ") != "in>right right>out" ||
			other[0].Name != "right" || e.Header[len(e.Header)-1].Bytes != "fffe" ||
			other[len(other)-1].Bytes != "ffff" {
			w.t.Errorf("%s: %+v, %+v", e.Packet, e.Header, e.OtherCopy)
		}
		frame, err := hex.DecodeString(e.Frame)
		must(w.t, err)
		want := "fcbb:bb00:1:2::fffe"
		if e.OfferedTo[0] == server(2) {
			want = "fcbb:bb00:2:1::fffe"
		}
		if got := strings.Fields(tsharktest.Read(w.t, [][]byte{frame}, "-T", "fields", "-e",
			"ipv6.dst")); len(got) == 0 || !strings.HasPrefix(got[0], want) {
			w.t.Errorf("%s: tshark finds the destination %v, want %s", e.Packet, got, want)
		}
	}
}
