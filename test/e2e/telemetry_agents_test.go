package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/controller/listener"
)

// A telemetryFabric is the lab of telemetry.yaml with a collector.
type telemetryFabric struct {
	*agents
	reports chan listener.Report
	client  *listener.Client
}

func newTelemetryFabric(t *testing.T) *telemetryFabric {
	t.Helper()
	f := &telemetryFabric{agents: upFile(t, "telemetry.yaml"),
		reports: make(chan listener.Report, 4096)}
	f.ready()
	socket := filepath.Join(t.TempDir(), "telemetry.sock")
	f.client = listener.NewClient(socket)
	ctx, end := context.WithCancel(t.Context())
	lines, writer := io.Pipe()
	opened, ended := make(chan struct{}), make(chan error, 1)
	ns := namespaceOf(t, f.lab, "collector")
	go func() {
		defer ns.Close()
		ended <- ns.Do(func() error {
			return listener.Run(ctx, listener.Options{Socket: socket, Lines: writer,
				Listen: netip.MustParseAddrPort("[::]:32766"),
				Log:    slog.New(slog.DiscardHandler),
				Ready:  func(netip.AddrPort) { close(opened) }})
		})
	}()
	go func() {
		decoder := json.NewDecoder(lines)
		for {
			var r listener.Report
			if decoder.Decode(&r) != nil {
				return
			}
			select {
			case f.reports <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		end()
		writer.Close()
		// it may be writing a line then that nobody reads any more
		if err := <-ended; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	})
	select {
	case <-opened:
	case err := <-ended:
		t.Fatalf("the collector ended: %v", err)
	}
	return f
}

// counted is what a node's programs counted of an outcome.
func (f *telemetryFabric) counted(node, outcome string) uint64 {
	f.t.Helper()
	counters, err := f.agents.client(node).Counters(f.t.Context())
	must(f.t, err)
	for _, c := range counters {
		if c.Telemetry == nil {
			continue
		}
		for _, one := range c.Telemetry.Packets {
			if one.Outcome == outcome {
				return one.Packets
			}
		}
	}
	f.t.Fatalf("%s has no counter of %s", node, outcome)
	return 0
}

// download carries octets from h1 to h2, and fails unless the same arrive.
func (f *telemetryFabric) download(content []byte, port int) {
	t := f.t
	t.Helper()
	var server net.Listener
	inside(t, f.lab, "h1", func() (err error) {
		server, err = net.Listen("tcp", fmt.Sprintf("[2001:db8:a::1]:%d", port))
		return err
	})
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err == nil {
			c.Write(content)
			c.Close()
		}
	}()
	var got []byte
	inside(t, f.lab, "h2", func() error {
		c, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		got, err = io.ReadAll(c)
		return err
	})
	if sha256.Sum256(got) != sha256.Sum256(content) {
		t.Fatalf("%d octets came, with SHA-256 %x; sent were %d, with %x", len(got),
			sha256.Sum256(got), len(content), sha256.Sum256(content))
	}
}

// next waits for a report that is wanted.
func (f *telemetryFabric) next(wanted func(listener.Report) bool) listener.Report {
	f.t.Helper()
	for {
		select {
		case r := <-f.reports:
			if wanted(r) {
				return r
			}
		case <-time.After(patience):
			exporters, err := f.client.Exporters(f.t.Context())
			counters, _ := f.agents.client("leaf2").Counters(f.t.Context())
			said, _ := json.Marshal(counters)
			f.t.Fatalf("no such report came; of exporters: %+v (%v); the sink says %s", exporters,
				err, said)
		}
	}
}

// drain takes reports until none comes of those that the sink sent.
func (f *telemetryFabric) drain(want uint64) (list []listener.Report) {
	f.t.Helper()
	for uint64(len(list)) < want {
		list = append(list, f.next(func(listener.Report) bool { return true }))
	}
	return list
}

var transmitted = regexp.MustCompile(`TX:[^\n]*\n\s+\d+\s+(\d+)`)

// sent is how many packets h1 has sent.
func (f *telemetryFabric) sent() uint64 {
	f.t.Helper()
	out := f.on("h1", "ip", "-s", "link", "show", "eth0")
	n, err := strconv.ParseUint(string(transmitted.FindSubmatch(out)[1]), 10, 64)
	must(f.t, err)
	return n
}

// dropped is how many packets interfaces on the way have lost.
func (f *telemetryFabric) dropped() uint64 {
	f.t.Helper()
	return lostBy(f.t, f.lab, "leaf1", "spine1", "leaf2")
}

// TestTelemetryShare downloads through source, transit and sink of three agents: the octets are
// those sent, the share of packets with telemetry is the one that the node file and then the watch
// list say, and the collector gets a report with both nodes of each.
func TestTelemetryShare(t *testing.T) {
	f := newTelemetryFabric(t)
	content := make([]byte, 8<<20)
	random := rand.NewChaCha8([32]byte{2})
	random.Read(content)
	before, dropped := f.sent(), f.dropped()
	f.download(content, 5001)
	packets, inserted := float64(f.sent()-before), f.counted("leaf1", "inserted")
	const p = 0.1
	if spread := 5 * math.Sqrt(packets*p*(1-p)); packets < 5000 ||
		math.Abs(float64(inserted)-p*packets) > spread {
		t.Errorf("%d of %.0f packets got telemetry, want %.0f +- %.0f", inserted, packets,
			p*packets, spread)
	}
	one, none := 1, 0
	first := netip.MustParsePrefix("2001:db8:b::1/128")
	protocol := 6
	for _, item := range []struct {
		name string
		spec api.TelemetryWatchSpec
	}{
		{"all", api.TelemetryWatchSpec{Destination: &first, Protocol: &protocol, OneIn: &one}},
		{"rest", api.TelemetryWatchSpec{OneIn: &none}},
	} {
		_, err := f.agents.client("leaf1").PutTelemetryWatch(t.Context(), api.Create, item.name,
			item.spec)
		must(t, err)
	}
	before = f.sent()
	earlier := inserted
	f.download(content[:1<<20], 5002)
	packets = float64(f.sent() - before)
	inserted = f.counted("leaf1", "inserted")
	dropped = f.dropped() - dropped
	// neighbor discovery is not encapsulated
	if got := float64(inserted - earlier); got > packets || got < packets-10-float64(dropped) {
		t.Errorf("with all watched, %.0f of %.0f packets got telemetry", got, packets)
	}
	pushed, removed := f.counted("spine1", "pushed"), f.counted("leaf2", "removed")
	if pushed > inserted || removed > pushed || removed+dropped < inserted {
		counters, _ := f.agents.client("spine1").Counters(t.Context())
		said, _ := json.Marshal(counters)
		t.Errorf("inserted %d, pushed %d, removed %d, and the interfaces dropped %d; spine1 "+
			"says %s; h1: %s", inserted, pushed, removed, dropped, said, f.on("h1", "nstat",
			"-asz", "TcpRetransSegs", "Ip6OutDiscards"))
	}
	for _, r := range f.drain(removed) {
		if len(r.Hops) < 2 || *r.Hops[0].Node != 1 || *r.Hops[1].Node != 11 {
			t.Fatalf("reported %+v", r)
		}
	}
	_, err := f.agents.client("leaf1").DeleteTelemetryWatch(t.Context(), "all")
	must(t, err)
	f.download(content[:1<<18], 5003)
	if got := f.counted("leaf1", "inserted"); got != inserted {
		t.Errorf("%d packets got telemetry of those that the watch list says get none",
			got-inserted)
	}
}

var queueSamples = flag.Int("telemetry.samples", 60, "packets that TestTelemetryQueue compares")

// TestTelemetryQueue holds the packets of a rate-limited link back, and compares what the collector
// shows of its queue with what tc(8) showed before each packet.
func TestTelemetryQueue(t *testing.T) {
	f := newTelemetryFabric(t)
	all := 1
	_, err := f.agents.client("leaf1").PutTelemetryWatch(t.Context(), api.Create, "all",
		api.TelemetryWatchSpec{OneIn: &all})
	must(t, err)
	f.discard()
	f.on("spine1", "tc", "qdisc", "add", "dev", "leaf2", "root", "handle", "1:", "tbf", "rate",
		"8bit", "burst", "1700", "limit", "16000000")
	packets := *queueSamples
	var want []uint32
	inside(t, f.lab, "h1", func() error {
		c, err := net.Dial("udp", "[2001:db8:b::1]:9")
		if err != nil {
			return err
		}
		defer c.Close()
		for i := range packets {
			want = append(want, f.backlog())
			if _, err := c.Write(make([]byte, 700+10*(i%60))); err != nil {
				return err
			}
			for f.counted("spine1", "pushed") != uint64(i+1) && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			if i == 0 { // its solicitations would wait in the queue, too
				f.keepNeighbors("spine1", "leaf2")
			}
		}
		return nil
	})
	f.on("spine1", "tc", "qdisc", "change", "dev", "leaf2", "root", "handle", "1:", "tbf", "rate",
		"1gbit", "burst", "1700", "limit", "16000000")
	// The queue looks at its new rate when another packet enters it.
	f.on("spine1", "sh", "-c", "ping -c 1 -W 1 ff02::1%leaf2 || true")
	for i, r := range f.drain(uint64(packets)) {
		if got := *r.Hops[1].QueueBytes; got != want[i] {
			t.Errorf("packet %d saw %d octets in the queue, tc %d", i, got, want[i])
		}
	}
	at := func(q float64) uint32 { return want[int(q*float64(packets-1))] }
	t.Logf("%d packets: queue of 0 %%, 25 %%, 50 %%, 75 %%, 100 %% of them: %d, %d, %d, %d, %d "+
		"octets", packets, at(0), at(0.25), at(0.5), at(0.75), at(1))
	links, err := f.client.Links(t.Context())
	must(t, err)
	for _, l := range links {
		if l.Node != 11 || l.QueueBytes == nil {
			continue
		}
		got, median := l.QueueBytes, float64(want[packets/2])
		if float64(got.P50) < 0.9*median || float64(got.P50) > 1.25*median*1.1 ||
			got.Count != uint64(packets) || got.Max != want[packets-1] {
			t.Errorf("the collector shows %+v, tc showed %d", got, want)
		}
		return
	}
	t.Errorf("the collector knows no queue of spine1: %+v", links)
}

// keepNeighbors has a node know the neighbours on an interface for good.
func (f *telemetryFabric) keepNeighbors(node, name string) {
	f.t.Helper()
	f.on(node, "sh", "-c", "ip -6 neigh show dev "+name+" | awk '/lladdr/ { print $1, $3 }' | "+
		"while read -r address link; do ip neigh replace $address lladdr $link dev "+name+
		" nud permanent; done")
}

// discard has h2 take what comes to UDP port 9, so that no ICMP error comes back.
func (f *telemetryFabric) discard() {
	f.t.Helper()
	inside(f.t, f.lab, "h2", func() error {
		c, err := net.ListenPacket("udp", "[2001:db8:b::1]:9")
		if err == nil {
			f.t.Cleanup(func() { c.Close() })
		}
		return err
	})
}

// backlog is how many octets wait at spine1 to leave for leaf2.
func (f *telemetryFabric) backlog() uint32 {
	f.t.Helper()
	var qdiscs []struct{ Backlog uint32 }
	must(f.t, json.Unmarshal(f.on("spine1", "tc", "-s", "-j", "qdisc", "show", "dev", "leaf2"),
		&qdiscs))
	return qdiscs[0].Backlog
}

// TestTelemetryGap changes by apply what the sink reports to pauses: one between two packets is
// reported with its length, and one that goes on without a packet.
func TestTelemetryGap(t *testing.T) {
	f := newTelemetryFabric(t)
	client := f.agents.client("leaf2")
	text, err := client.Config(t.Context(), true)
	must(t, err)
	const gap = 300 * time.Millisecond
	text = bytes.Replace(text, []byte("report: [each]"), []byte("report: [gap]"), 1)
	text = regexp.MustCompile(`gap: \S+`).ReplaceAll(text, []byte("gap: "+gap.String()))
	changes, err := client.Apply(t.Context(), "node.yaml", text, false)
	must(t, err)
	if len(changes.Items) != 2 {
		t.Fatalf("changes %v", changes.Items)
	}
	f.discard()
	var c net.Conn
	inside(t, f.lab, "h1", func() (err error) {
		c, err = net.Dial("udp", "[2001:db8:b::1]:9")
		return err
	})
	defer c.Close()
	write := func() {
		_, err := c.Write(make([]byte, 100))
		must(t, err)
	}
	source := netip.MustParseAddrPort(c.LocalAddr().String())
	paused := func(r listener.Report) bool {
		return r.IdleGapUs != nil && r.Flow != nil && r.Flow.Source == source
	}
	write()
	r := f.next(paused) // found by looking through the flows
	if got := time.Duration(*r.IdleGapUs) * time.Microsecond; got < gap || !r.Congested {
		t.Errorf("reported a pause of %v: %+v", got, r)
	}
	write()
	r = f.next(paused) // found by the packet
	if got := time.Duration(*r.IdleGapUs) * time.Microsecond; got < gap || !r.Congested {
		t.Errorf("reported a pause of %v: %+v", got, r)
	}
}

var gapSamples = flag.Int("telemetry.gaps", 10, "pauses that TestTelemetryGapTime ends")

// TestTelemetryGapTime ends pauses of a flow by a packet each. Each is reported once, whether every
// 50th packet of the flow carries telemetry or every 1,000th; how long that takes is shown: from
// before the packet is sent, three hops away from the sink, until the collector has the report.
func TestTelemetryGapTime(t *testing.T) {
	f := newTelemetryFabric(t)
	client := f.agents.client("leaf2")
	text, err := client.Config(t.Context(), true)
	must(t, err)
	text = bytes.Replace(text, []byte("report: [each]"), []byte("report: [gap]"), 1)
	text = regexp.MustCompile(`gap: \S+`).ReplaceAll(text, []byte("gap: 3ms"))
	_, err = client.Apply(t.Context(), "node.yaml", text, false)
	must(t, err)
	f.discard()
	for i, oneIn := range []int{50, 1000} {
		how := []api.Put{api.Create, api.Update}[i]
		_, err := f.agents.client("leaf1").PutTelemetryWatch(t.Context(), how, "all",
			api.TelemetryWatchSpec{OneIn: &oneIn})
		must(t, err)
		times := f.endPauses(*gapSamples)
		slices.Sort(times)
		at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1))] }
		t.Logf("one in %d: %d pauses, from packet to report: median %v, 99 %% %v, longest %v",
			oneIn, len(times), at(0.5), at(0.99), at(1))
	}
}

// endPauses ends so many pauses of a new flow, and returns after what time each was reported.
func (f *telemetryFabric) endPauses(count int) (times []time.Duration) {
	f.t.Helper()
	var c net.Conn
	inside(f.t, f.lab, "h1", func() (err error) {
		c, err = net.Dial("udp", "[2001:db8:b::1]:9")
		return err
	})
	defer c.Close()
	source := netip.MustParseAddrPort(c.LocalAddr().String())
	write := func() time.Time {
		at := time.Now()
		_, err := c.Write(make([]byte, 100))
		must(f.t, err)
		return at
	}
	write()
	for range count {
		last := time.Now()
		time.Sleep(10 * time.Millisecond)
		least := time.Since(last)
		ended := write()
		// A look through the flows may have reported the same pause before it ended: without
		// hops, as it has no packet.
		r := f.next(func(r listener.Report) bool {
			return len(r.Hops) > 0 && r.IdleGapUs != nil && r.Flow != nil &&
				r.Flow.Source == source && r.Time.After(ended) &&
				time.Duration(*r.IdleGapUs)*time.Microsecond >= least*9/10
		})
		times = append(times, r.Time.Sub(ended))
	}
	return times
}
