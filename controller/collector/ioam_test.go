package collector_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/controller/collector"
	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// ioamNetwork is h1 - r1 - r2 - h2, with r1 and r2 as stock routers and IOAM namespace 123, which
// h2 knows, too. The way from r1 to r2 has a queue that lets one packet pass and keeps the others.
const ioamNetwork = `
-n H1 link set lo up
-n H1 link add e0 type veth peer name e1 netns R1
-n R1 link add e2 type veth peer name e1 address 02:00:00:00:00:21 netns R2
-n R2 link add e2 type veth peer name e0 netns H2
-n H1 link set e0 up
-n R1 link set e1 up
-n R1 link set e2 up
-n R2 link set e1 up
-n R2 link set e2 up
-n H2 link set e0 up
-n H1 addr add fd01::1/64 dev e0 nodad
-n R1 addr add fd01::2/64 dev e1 nodad
-n R1 addr add fd02::1/64 dev e2 nodad
-n R2 addr add fd02::2/64 dev e1 nodad
-n R2 addr add fd03::1/64 dev e2 nodad
-n H2 addr add fd03::2/64 dev e0 nodad
-n H1 -6 route add default via fd01::2
-n R1 -6 route add fd03::/64 via fd02::2
-n R2 -6 route add fd01::/64 via fd02::1
-n H2 -6 route add default via fd03::1
-n R1 -6 neigh add fd02::2 lladdr 02:00:00:00:00:21 dev e2 nud permanent
-n H1 ioam namespace add 123
-n R1 ioam namespace add 123
-n R2 ioam namespace add 123
-n H2 ioam namespace add 123
`

// ioamSettings are sysctls below net/ipv6 of each namespace.
var ioamSettings = map[string][]string{
	"R1": {"conf/all/forwarding=1", "ioam6_id=11", "conf/e1/ioam6_enabled=1",
		"conf/e1/ioam6_id=101",
		"conf/e2/ioam6_id=102"},
	"R2": {"conf/all/forwarding=1", "ioam6_id=12", "conf/e1/ioam6_enabled=1",
		"conf/e1/ioam6_id=201",
		"conf/e2/ioam6_id=202"},
	"H1": {"ioam6_id=10", "conf/e0/ioam6_id=100"},
	"H2": {"ioam6_id=13", "conf/e0/ioam6_enabled=1", "conf/e0/ioam6_id=301"},
}

type ioamLab struct {
	ns    map[string]*linux.Netns
	names map[string]string
}

func newIOAMLab(t *testing.T) *ioamLab {
	t.Helper()
	l := &ioamLab{ns: map[string]*linux.Netns{}, names: map[string]string{}}
	commands := ioamNetwork
	for _, node := range []string{"H1", "R1", "R2", "H2"} {
		l.ns[node], l.names[node] = linuxtest.Netns(t)
		commands = strings.ReplaceAll(commands, "-n "+node, "-n "+l.names[node])
		commands = strings.ReplaceAll(commands, "netns "+node, "netns "+l.names[node])
	}
	if err := l.ns["R1"].Do(func() error {
		_, err := linux.ReadSysctl("net/ipv6/ioam6_id")
		return err
	}); err != nil {
		t.Skip("this kernel has no IOAM (Linux 5.15 has): ", err)
	}
	if err := linuxtest.IP(commands); err != nil {
		t.Fatal(err)
	}
	for node, settings := range ioamSettings {
		if err := l.ns[node].Do(func() error {
			for _, s := range settings {
				name, value, _ := strings.Cut(s, "=")
				if err := linux.WriteSysctl("net/ipv6/"+name, value); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *ioamLab) tc(t *testing.T, node string, words ...string) []byte {
	t.Helper()
	out, err := exec.Command("tc", append([]string{"-n", l.names[node]},
		words...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("tc %s: %v: %s", strings.Join(words, " "), err, out)
	}
	return out
}

// queue is what the kernel counts about the queue from r1 to r2.
type queue struct{ Bytes, Backlog uint64 }

func (l *ioamLab) queue(t *testing.T) queue {
	t.Helper()
	var all []queue
	if err := json.Unmarshal(l.tc(t, "R1", "-s", "-j", "qdisc", "show", "dev", "e2"),
		&all); err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

const (
	traceType = telemetry.TraceNode | telemetry.TraceInterfaces | telemetry.TraceSeconds |
		telemetry.TraceFraction | telemetry.TraceQueueDepth
	traceWords = 4 * 5 // of four nodes
	payload    = 1000
	// Ethernet, IPv6, hop-by-hop options, UDP
	frameSize = 14 + 40 + 16 + 4*traceWords + 8 + payload
)

// hopOptions is a hop-by-hop header with an empty trace, without its next header.
func hopOptions(t *testing.T) []byte {
	t.Helper()
	b := []byte{0, 0, 1, 0} // PadN
	b, err := telemetry.Trace{Option: telemetry.OptionIOAM, Namespace: 123,
		RemainingWords: traceWords, Type: traceType,
		Data: make([]byte, 4*traceWords)}.AppendBinary(b)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, make([]byte, (8-len(b)%8)%8)...) // Pad1
	b[1] = uint8(len(b)/8 - 1)
	return b
}

// send sends a packet from h1 to h2, from that port, with a hop-by-hop header if there is one.
func (l *ioamLab) send(t *testing.T, port uint16, options []byte) {
	t.Helper()
	if err := l.ns["H1"].Do(func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, &unix.SockaddrInet6{Port: int(port)}); err != nil {
			return err
		}
		if options != nil {
			if err := unix.SetsockoptString(fd, unix.IPPROTO_IPV6, unix.IPV6_HOPOPTS,
				string(options)); err != nil {
				return err
			}
		}
		return unix.Sendto(fd, make([]byte, payload), 0, &unix.SockaddrInet6{Port: 9,
			Addr: netip.MustParseAddr("fd03::2").As16()})
	}); err != nil {
		t.Fatal(err)
	}
}

// read reads with a reader that is opened in a namespace, until that many packets were seen.
func (l *ioamLab) read(t *testing.T, node string,
	open func() (*collector.Reader, error)) (wait func(int) []seen) {
	t.Helper()
	var reader *collector.Reader
	if err := l.ns[node].Do(func() (err error) {
		reader, err = open()
		return err
	}); errors.Is(err, collector.ErrNoEvents) {
		t.Skip("the kernel lacks IOAM events: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	batches, ended := make(chan *collector.Batch), make(chan error, 1)
	go func() { ended <- reader.Run(batches) }()
	t.Cleanup(func() {
		reader.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var all []seen
	table := collector.NewTable(collector.Options{Watch: func(r *collector.Report) {
		all = append(all, seen{r.Source, r.Flow, slices.Clone(r.Samples)})
	}})
	return func(count int) []seen {
		for len(all) < count {
			b := <-batches
			table.Take(b, collector.Now())
			b.Done()
		}
		if table.Dropped != (collector.NewTable(collector.Options{}).Dropped) {
			t.Error("dropped", table.Dropped)
		}
		return all
	}
}

type seen struct {
	source  collector.Source
	flow    flow.Tuple
	samples []telemetry.Sample
}

// Stock Linux routers write traces: what the sink's kernel reports of them, and what is read from
// the packets before it, are the routers' own settings, and the lengths of the queue that tc(8)
// shows, octet by octet.
func TestLinuxWritesIOAM(t *testing.T) {
	l := newIOAMLab(t)
	events := l.read(t, "H2", collector.ListenEvents)
	packets := l.read(t, "H2", func() (*collector.Reader, error) {
		return collector.ListenPackets("e0")
	})
	l.tc(t, "R1", "qdisc", "add", "dev", "e2", "root", "tbf", "rate", "64bit", "burst", "1600",
		"limit", "1mb")
	options := hopOptions(t)
	const count = 6
	start := time.Now()
	depths := map[int]uint64{} // that packets must have met
	for i := range count {
		if i == count-1 { // a packet more makes the queue look at its new rate
			l.tc(t, "R1", "qdisc", "change", "dev", "e2", "root", "tbf", "rate", "1gbit", "burst",
				"1mb", "limit", "1mb")
			l.send(t, uint16(40000+i), options)
			break
		}
		before := l.queue(t)
		l.send(t, uint16(40000+i), options)
		after := l.queue(t)
		for after == before {
			after = l.queue(t)
		}
		// unless another packet of r1 itself came between
		if after.Bytes+after.Backlog-before.Bytes-before.Backlog == frameSize {
			depths[i] = before.Backlog
		}
	}
	if len(depths) == 0 || slices.Max(slices.Collect(maps.Values(depths))) < frameSize {
		t.Fatal("no packet met a queue that is known:", depths)
	}
	byEvent, byPacket := events(count), packets(count)
	for i := range count {
		checkTrace(t, byEvent[i], collector.FromEvent, i, start, [][3]uint32{{11, 101, 102},
			{12, 201, 202}, {13, 301, unknown}}, depths)
		checkTrace(t, byPacket[i], collector.FromPacket, i, start, [][3]uint32{{11, 101, 102},
			{12, 201, 202}}, depths)
		want := flow.Tuple{Src: netip.MustParseAddr("fd01::1"), SrcPort: uint16(40000 + i),
			Dst: netip.MustParseAddr("fd03::2"), DstPort: 9, Protocol: 17}
		if byPacket[i].flow != want {
			t.Errorf("packet %d is of %+v", i, byPacket[i].flow)
		}
	}
}

// With CONFIG_IPV6_IOAM6_LWTUNNEL, Linux is the source of traces, too.
func TestLinuxIsSourceOfIOAM(t *testing.T) {
	l := newIOAMLab(t)
	route := fmt.Sprintf("-n %s -6 route add fd03::/64 encap ioam6 mode inline trace prealloc "+
		"type %#x ns 123 size %d via fd01::2 dev e0", l.names["H1"], uint32(traceType),
		4*traceWords)
	if err := linuxtest.IP(route); err != nil {
		t.Skip("this kernel has no CONFIG_IPV6_IOAM6_LWTUNNEL: ", err)
	}
	events := l.read(t, "H2", collector.ListenEvents)
	l.send(t, 40000, nil)
	var got [][3]uint32
	for _, s := range events(1)[0].samples {
		got = append(got, [3]uint32{uint32(s.Node), s.Ingress, s.Egress})
	}
	want := [][3]uint32{{10, unknown, 100}, {11, 101, 102}, {12, 201, 202}, {13, 301, unknown}}
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

// checkTrace compares a trace with nodes, each a node, its ingress and its egress.
func checkTrace(t *testing.T, got seen, source collector.Source, i int, start time.Time,
	nodes [][3]uint32, depths map[int]uint64) {
	t.Helper()
	if got.source != source || len(got.samples) != len(nodes) {
		t.Fatalf("packet %d, %v: %+v", i, source, got)
	}
	for hop, want := range nodes {
		s := got.samples[hop]
		if s.Node != uint64(want[0]) || s.Ingress != want[1] || s.Egress != want[2] ||
			int(s.Hop) != hop {
			t.Errorf("packet %d, %v, hop %d: %+v, want %v", i, source, hop, s, want)
		}
		if at := time.Unix(0, int64(s.TimeNS)); s.Known&telemetry.FieldTime == 0 ||
			at.Before(start.Add(-time.Microsecond)) || at.After(time.Now()) {
			t.Errorf("packet %d, %v, hop %d at %v", i, source, hop, at)
		}
	}
	depth, known := depths[i]
	if s := got.samples[0]; s.Known&telemetry.FieldQueue == 0 ||
		known && uint64(s.QueueBytes) != depth {
		t.Errorf("packet %d, %v: queue %d, tc shows %d", i, source, s.QueueBytes, depth)
	}
}
