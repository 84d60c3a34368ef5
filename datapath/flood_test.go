package datapath

import (
	"bytes"
	"flag"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/srv6"
)

var flood = flag.Int("flood", 10_000_000, "SYNs of a flood, each of another flow, per program")

// TestEdgeFlood: a flood of SYNs leaves nothing behind in the edge. Packets before and after it go
// the same way, as whole frames.
func TestEdgeFlood(t *testing.T) {
	w := newWorld(t)
	oneCPU(t)
	addRoute(t, "fcbb:bb00::/32", "fd00:5e:1::2", 0)
	e := newBenchEdge(t, w, Carrier)
	driver := newBenchDriver(t, w.near)
	run := newRunner(e.programs[External], w.near)
	through := func() (frames [][]byte) {
		for _, p := range []packettest.Packet{
			benchACK(benchClientV6, hostVIPv6), benchACK(benchClientV4, hostVIPv4),
			benchSYN(benchStrangerV6, hostVIPv6),
		} {
			_, frame := run.run(t, benchLink.Frame(t, p.Bytes(t)))
			frames = append(frames, bytes.Clone(frame))
		}
		return frames
	}
	before, memory := through(), entries(t, e.collection)
	for _, p := range []packettest.Packet{benchSYN(benchClientV6, hostVIPv6),
		benchSYN(benchClientV4, hostVIPv4)} {
		if _, verdict := driver.run(t, e.programs[External], benchArriving(t, p, *flood/2),
			*flood/2); verdict != xdpTransmit {
			t.Fatalf("a SYN of the flood: verdict %d", verdict)
		}
	}
	for i, frame := range through() {
		packettest.WantFrame(t, frame, before[i])
	}
	if after := entries(t, e.collection); after != memory {
		t.Errorf("%d entries in tables that grow, %d before the flood", after, memory)
	}
}

// entries counts what is in the tables that grow. Arrays do not.
func entries(t testing.TB, c *collection) (count int) {
	t.Helper()
	for _, use := range c.Maps() {
		count += max(0, use.Entries)
	}
	return count
}

// TestHostFlood: through a flood of SYNs, taken and refused, a host takes the packets of its
// connections, and passes those of others on.
func TestHostFlood(t *testing.T) {
	w := newWorld(t)
	oneCPU(t)
	addRoute(t, "fcbb:bb00::/32", "fd00:5e:1::2", 0)
	addAddresses(t, hostVIPv6, clientV6)
	tuple := established(t, listen(t, hostVIPv6), clientV6)
	config := hostConfig(t)
	config.SIDs = []LocalSID{{Prefix: netip.MustParsePrefix("fcbb:bb00:1::/48"),
		Behavior: srv6.EndOFFER}}
	h := newBenchHost(t, w, config, acceptance.Policy{Kind: acceptance.Static, Threshold: 4})
	host := subject{runner: newRunner(h.programs["host"], w.near), tables: h.collection, host: true}
	driver := newBenchDriver(t, w.near)
	memory, count := entries(t, h.collection), *flood/2
	for _, flood := range []struct {
		busy    int32
		verdict uint32
	}{{0, xdpPass},
		{4, xdpTransmit}} { // in this order: who was refused is refused again for a while
		setBusy(t, h, 1, flood.busy)
		syn := benchOffered(t, benchSYN(benchStrangerV6, hostVIPv6), count)
		if _, got := driver.run(t, h.programs["host"], syn, count); got != flood.verdict {
			t.Fatalf("a SYN of the flood: verdict %d, want %d", got, flood.verdict)
		}
		wantOffer(t, host, "to an established connection", tuple, "A", 5, 7, "taken")
		other := tuple
		other.SrcPort ^= 1
		wantOffer(t, host, "beside an established connection", other, "A", 5, 7, "transmitted")
	}
	if after := entries(t, h.collection); after != memory {
		t.Errorf("%d entries in tables that grow, %d before the flood", after, memory)
	}
}

// TestEdgeNewConnections: a service gets as many new connections as its limit lets through; nothing
// else is limited.
func TestEdgeNewConnections(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 1)
	const burst = 5
	limit := func(rate, burst int) {
		must(t, e.LimitNewConnections(0, rate, burst))
		must(t, e.SetService(ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}, 0,
			tableBuckets))
	}
	limit(1, burst)
	edge := w.edgeSubject(e, External)
	send := func(p packettest.Packet) string {
		outcome, _ := edge.process(t, packettest.FromClient().Frame(t, p.Bytes(t)))
		return outcome
	}
	limited := false
	for i := range 3 * burst {
		got := send(packettest.Web4("S"))
		if i < burst && got != "redirected" {
			t.Errorf("SYN %d of a burst of %d: %s", i, burst, got)
		}
		limited = limited || got == "new_connections"
		for _, p := range []packettest.Packet{packettest.Web4("A"), packettest.Web4("SA"),
			packettest.Web4("R"), packettest.Web6("S")} {
			if got := send(p); got != "redirected" {
				t.Errorf("%s to %v: %s", p.Flags, p.Dst, got)
			}
		}
	}
	if !limited {
		t.Error("no SYN was one too many")
	}
	count, err := e.Openings(0)
	must(t, err)
	if count.Taken < burst || count.Refused == 0 || count.Taken+count.Refused != 3*burst {
		t.Errorf("of %d SYNs, %+v are counted", 3*burst, count)
	}
	limit(0, 0)
	if got := send(packettest.Web4("S")); got != "redirected" {
		t.Errorf("without a limit: %s", got)
	}
	if after, err := e.Openings(0); err != nil || after != count {
		t.Errorf("without a limit, counted %+v after %+v, error %v", after, count, err)
	}
}

// TestEdgeNewConnectionRate: over some time, a service gets the rate of its limit. Time is moved by
// writing it into the table.
func TestEdgeNewConnectionRate(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	e := tableEdge(t, w, Carrier)
	serveAll(t, e, 1, 1)
	must(t, e.LimitNewConnections(0, 1, 2))
	must(t, e.SetService(ServiceKey{VIP: packettest.VIP4, Port: 80, Protocol: 6}, 0, tableBuckets))
	edge := w.edgeSubject(e, External)
	passed := 0
	for range 10 {
		for range 4 {
			if outcome, _ := edge.process(t, packettest.FromClient().Frame(t,
				packettest.Web4("S").Bytes(t))); outcome == "redirected" {
				passed++
			}
		}
		var n newConnections
		must(t, e.maps["new_connections"].Lookup(uint32(0), &n))
		n.Due -= n.Limit.IntervalNs // a second goes by
		must(t, e.maps["new_connections"].Update(uint32(0), n, ebpf.UpdateAny))
	}
	if passed < 11 || passed > 20 { // with what time went by in truth
		t.Errorf("%d connections in 10 s at 1 per second, 2 at once", passed)
	}
}
