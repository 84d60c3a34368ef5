package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/telemetry"
)

const intPort = 33122

// An inbandLab is hosts h1 and h2 with routers r1, r2, r3 between them: r1 encapsulates and is the
// source of telemetry, r2 adds, r3 takes it out and decapsulates. The kernel does the rest.
type inbandLab struct {
	ns    map[string]*linux.Netns
	nodes map[string]*datapath.Telemetry
}

// inbandLinks are created in r1, r2, r3 in turn. Router N has the network 2001:db8:N::/64.
const inbandLinks = `-n H1 link add e0 type veth peer name e1 netns R1
-n R1 link add r2 mtu 1700 type veth peer name r1 mtu 1700 netns R2
-n R2 link add r3 mtu 1700 type veth peer name r2 mtu 1700 netns R3
-n R3 link add e2 type veth peer name e0 netns H2
-n H1 addr add 2001:db8:1::1/64 dev e0 nodad
-n R1 addr add 2001:db8:1::ff/64 dev e1 nodad
-n R1 addr add fd00:12::1/64 dev r2 nodad
-n R2 addr add fd00:12::2/64 dev r1 nodad
-n R2 addr add fd00:23::2/64 dev r3 nodad
-n R3 addr add fd00:23::3/64 dev r2 nodad
-n R3 addr add 2001:db8:2::ff/64 dev e2 nodad
-n H2 addr add 2001:db8:2::1/64 dev e0 nodad
-n H1 link set e0 up
-n R1 link set e1 up
-n R1 link set r2 up
-n R2 link set r1 up
-n R2 link set r3 up
-n R3 link set r2 up
-n R3 link set e2 up
-n H2 link set e0 up
-n H1 -6 route add default via 2001:db8:1::ff
-n H2 -6 route add default via 2001:db8:2::ff
-n R1 -6 route add fcbb:0:3::/48 via fd00:12::2
-n R1 -6 route add fcbb:0:2::/48 via fd00:12::2
-n R1 -6 route add 2001:db8:2::/64 encap seg6 mode encap segs fcbb:0:2::1,fcbb:0:3::d6 dev r2
-n R2 -6 route add fcbb:0:2::1/128 encap seg6local action End dev r3
-n R2 -6 route add fcbb:0:3::/48 via fd00:23::3
-n R2 -6 route add 2001:db8:1::/64 via fd00:12::1
-n R3 -6 route add fcbb:0:3::d6/128 encap seg6local action End.DT6 table 254 dev e2
-n R3 -6 route add 2001:db8:1::/64 via fd00:23::2`

func newInbandLab(t *testing.T) *inbandLab {
	t.Helper()
	needsRoot(t)
	l := &inbandLab{ns: map[string]*linux.Netns{}, nodes: map[string]*datapath.Telemetry{}}
	commands := []byte(inbandLinks)
	for _, node := range []string{"H1", "R1", "R2", "R3", "H2"} {
		ns, name := linuxtest.Netns(t)
		l.ns[node] = ns
		commands = bytes.ReplaceAll(commands, []byte(node), []byte(name))
		must(t, ns.Do(func() error {
			return linux.WriteSysctl("net.ipv6.conf.all.forwarding",
				map[bool]string{true: "1", false: "0"}[node[0] == 'R'])
		}))
	}
	must(t, linuxtest.IP(string(commands)))
	l.offloads(t)
	bpffs, _, err := linux.BPFFS()
	must(t, err)
	dir, err := os.MkdirTemp(bpffs, "sextant-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for number, node := range []string{"R1", "R2", "R3"} {
		config := datapath.TelemetryConfig{Node: uint32(number + 1), Port: intPort,
			Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00::/16")}}
		switch node {
		case "R1":
			config.Source = []string{"r2"}
		case "R2":
			config.Transit = []string{"r3"}
		case "R3":
			config.Sink = []string{"r2"}
			config.SIDs = []netip.Prefix{netip.MustParsePrefix("fcbb:0:3::/48")}
		}
		must(t, l.ns[node].Do(func() (err error) {
			if l.nodes[node], err = datapath.OpenTelemetry(filepath.Join(dir, node),
				config); err == nil {
				_, err = l.nodes[node].Commit()
			}
			return err
		}))
		t.Cleanup(l.nodes[node].Close)
		must(t, l.nodes[node].SetWatch(model.TelemetryWatch{Reasons: model.TelemetryEach,
			Limit: math.MaxUint32}))
	}
	return l
}

// offloads has hosts send packets as they are on a wire: what the kernel cuts up behind the source
// gets no telemetry.
func (l *inbandLab) offloads(t *testing.T) {
	t.Helper()
	for _, host := range []string{"H1", "H2"} {
		must(t, l.ns[host].Do(func() error {
			out, err := exec.Command("ethtool", "-K", "e0", "tx", "off", "tso", "off", "gso",
				"off").CombinedOutput()
			if err != nil {
				return fmt.Errorf("ethtool: %w: %s", err, out)
			}
			return nil
		}))
	}
}

// outcomes is what a node's programs counted.
func (l *inbandLab) outcomes(t *testing.T, node string) map[model.TelemetryOutcome]uint64 {
	t.Helper()
	counters, err := l.nodes[node].Outcomes()
	must(t, err)
	outcomes := map[model.TelemetryOutcome]uint64{}
	for outcome, counter := range counters {
		outcomes[model.TelemetryOutcome(outcome)] = counter.Packets
	}
	return outcomes
}

// transfer sends octets from h1 to h2, and returns the sum of what came.
func (l *inbandLab) transfer(t *testing.T, content []byte) [sha256.Size]byte {
	t.Helper()
	var listener net.Listener
	must(t, l.ns["H2"].Do(func() (err error) {
		listener, err = net.Listen("tcp", "[2001:db8:2::1]:5001")
		return err
	}))
	defer listener.Close()
	came := make(chan [sha256.Size]byte, 1)
	failed := make(chan error, 2)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			failed <- err
			return
		}
		defer c.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, c); err != nil {
			failed <- err
			return
		}
		came <- [sha256.Size]byte(sum.Sum(nil))
	}()
	go func() {
		failed <- l.ns["H1"].Do(func() error {
			c, err := net.Dial("tcp", "[2001:db8:2::1]:5001")
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(content)
			return err
		})
	}()
	for {
		select {
		case sum := <-came:
			return sum
		case err := <-failed:
			must(t, err)
		case <-t.Context().Done():
			t.Fatal("the transfer did not end")
		}
	}
}

// TestInbandTelemetry carries 100 MB through source, transit and sink, with telemetry in each
// packet, in one of 50 by chance, and in one of 50 in turn: the octets are those sent, the shares
// those asked for, and what the sink reports is what the nodes wrote.
func TestInbandTelemetry(t *testing.T) {
	l := newInbandLab(t)
	content := make([]byte, 100<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, err := random.Read(content)
	must(t, err)
	sent := sha256.Sum256(content)
	events, err := l.nodes["R3"].Events()
	must(t, err)
	reported := make(chan error, 1)
	go func() { reported <- checkReports(events) }()
	queues := telemetry.NodeID | telemetry.Queue
	before := map[model.TelemetryOutcome]uint64{}
	for _, class := range []datapath.TelemetryClass{
		{OneIn: 1, Instructions: queues, Hops: 8},
		{OneIn: 50, Instructions: queues, Hops: 8},
		{OneIn: 50, Instructions: queues, Hops: 8, Slots: 1},
	} {
		must(t, l.nodes["R1"].SetClasses([]datapath.TelemetryClass{class}))
		packets := l.packets(t)
		if got := l.transfer(t, content); got != sent {
			t.Fatalf("%+v: came with SHA-256 %x, sent with %x", class, got, sent)
		}
		packets = l.packets(t) - packets
		now := l.outcomes(t, "R1")
		inserted := now[model.TelemetryInserted] - before[model.TelemetryInserted]
		before = now
		p := 1 / float64(class.OneIn)
		if spread := 5 * math.Sqrt(float64(packets)*p*(1-p)); packets < 50000 ||
			math.Abs(float64(inserted)-p*float64(packets)) > spread+20 {
			t.Errorf("%+v: %d of %d packets got telemetry, want %.0f +- %.0f", class, inserted,
				packets, p*float64(packets), spread)
		}
	}
	must(t, events.Close())
	must(t, <-reported)
	source, transit, sink := l.outcomes(t, "R1"), l.outcomes(t, "R2"), l.outcomes(t, "R3")
	t.Log(source, transit, sink)
	inserted := source[model.TelemetryInserted]
	added := transit[model.TelemetryPushed] + transit[model.TelemetryInPlace]
	removed, again := sink[model.TelemetryRemoved], l.retransmitted(t)
	if added > inserted || removed > added || inserted-removed > again ||
		transit[model.TelemetryInPlace] == 0 {
		t.Errorf("inserted %d, added %d, removed %d, %d segments sent again", inserted, added,
			removed, again)
	}
}

// retransmitted is how many TCP segments h1 has sent again: what a network drops on the way, TCP
// makes good.
func (l *inbandLab) retransmitted(t *testing.T) (segments uint64) {
	t.Helper()
	must(t, l.ns["H1"].Do(func() error {
		out, err := exec.Command("nstat", "-asz", "--json", "TcpRetransSegs").Output()
		if err != nil {
			return err
		}
		var counters struct {
			Kernel struct {
				Segments uint64 `json:"TcpRetransSegs"`
			}
		}
		err = json.Unmarshal(out, &counters)
		segments = counters.Kernel.Segments
		return err
	}))
	return segments
}

// packets is how many packets h1 has sent.
func (l *inbandLab) packets(t *testing.T) (packets uint64) {
	t.Helper()
	must(t, l.ns["H1"].Do(func() error {
		out, err := exec.Command("ip", "-j", "-s", "link", "show", "e0").Output()
		if err != nil {
			return err
		}
		var links []struct {
			Stats struct {
				TX struct{ Packets uint64 }
			} `json:"stats64"`
		}
		if err := json.Unmarshal(out, &links); err != nil {
			return err
		}
		packets = links[0].Stats.TX.Packets
		return nil
	}))
	return packets
}

// checkReports fails unless each report has the nodes 1 and 2, until events are closed.
func checkReports(events *datapath.TelemetryEvents) error {
	for {
		event, err := events.Next()
		if errors.Is(err, ringbuf.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		md, err := telemetry.EmbeddedMD(event.Packet, telemetry.InIPv6, intPort)
		if err != nil {
			return fmt.Errorf("reported %x: %w", event.Packet, err)
		}
		samples := md.AppendSamples(nil, 0)
		if len(samples) != 2 || samples[0].Node != 1 || samples[1].Node != 2 ||
			(samples[1].Known&telemetry.FieldQueue != 0) != datapath.KnowsQueues() {
			return fmt.Errorf("reported %+v", samples)
		}
	}
}

// TestInbandQueue stops the queue of the transit, and compares the octets in it as packets that
// enter it saw them with what tc(8) shows.
func TestInbandQueue(t *testing.T) {
	t.Parallel()
	l := newInbandLab(t)
	tc := func(command string, args ...string) []byte {
		t.Helper()
		var out []byte
		must(t, l.ns["R2"].Do(func() (err error) {
			cmd := exec.Command("tc", append([]string{command}, args...)...)
			if out, err = cmd.CombinedOutput(); err != nil {
				err = fmt.Errorf("tc %s %v: %w: %s", command, args, err, out)
			}
			return err
		}))
		return out
	}
	backlog := func() uint32 {
		var qdiscs []struct{ Backlog uint32 }
		must(t, json.Unmarshal(tc("-s", "-j", "qdisc", "show", "dev", "r3"), &qdiscs))
		return qdiscs[0].Backlog
	}
	// one packet passes, all others wait
	tc("qdisc", "add", "dev", "r3", "root", "handle", "1:", "tbf", "rate", "8bit", "burst", "1700",
		"limit", "1000000")
	must(t, l.nodes["R1"].SetClasses([]datapath.TelemetryClass{{OneIn: 1, Hops: 8,
		Instructions: telemetry.NodeID | telemetry.Queue}}))
	events, err := l.nodes["R3"].Events()
	must(t, err)
	must(t, l.ns["H2"].Do(func() error { // so that no ICMP error comes back
		c, err := net.ListenPacket("udp", "[2001:db8:2::1]:9")
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return err
	}))
	const packets = 40
	var want []uint32
	must(t, l.ns["H1"].Do(func() error {
		c, err := net.Dial("udp", "[2001:db8:2::1]:9")
		if err != nil {
			return err
		}
		defer c.Close()
		for i := range packets {
			want = append(want, backlog())
			before := l.outcomes(t, "R2")[model.TelemetryPushed]
			if _, err := c.Write(make([]byte, 700+10*i)); err != nil {
				return err
			}
			for l.outcomes(t, "R2")[model.TelemetryPushed] == before && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		return nil
	}))
	if want[packets-1] < packets/2*700 {
		t.Fatalf("tc shows %d octets before the last packet: the queue does not wait",
			want[packets-1])
	}
	tc("qdisc", "change", "dev", "r3", "root", "handle", "1:", "tbf", "rate", "1gbit", "burst",
		"1700", "limit", "1000000")
	for i := range packets {
		event, err := events.Next()
		must(t, err)
		md, err := telemetry.EmbeddedMD(event.Packet, telemetry.InIPv6, intPort)
		must(t, err)
		transit, _ := md.Hop(1)
		if transit.QueueBytes != want[i] {
			t.Errorf("packet %d saw %d octets in the queue, tc %d", i, transit.QueueBytes, want[i])
		}
	}
	must(t, events.Close())
}
