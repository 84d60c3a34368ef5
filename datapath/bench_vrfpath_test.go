package datapath

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// benchPath is how many packets a row sends in each pass, at most.
const benchPath = 1 << 14

// vrfPath is a row: a way that is attached, and packets of so many connections.
type vrfPath struct {
	name   string
	attach func(testing.TB) (detach func())
	flows  int
}

// passage is what packets took.
type passage struct {
	// ns of processor time: of the thread that sends, in which the kernel carries them, and of the
	// kernel's own that helps out
	busy    float64
	clock   float64 // ns
	sent    int
	arrived int
}

// paths are the ways that a packet can take to its socket.
func (w *vrfBench) paths() []vrfPath {
	var rows []vrfPath
	add := func(name string, attach func(testing.TB) func()) {
		for _, flows := range []int{1, 1000, benchOpen} {
			rows = append(rows, vrfPath{name: fmt.Sprintf("%s, %d connections", name, flows),
				attach: attach, flows: flows})
		}
	}
	of := func(name string) func(testing.TB) func() {
		return func(t testing.TB) func() { return w.attachWay(t, w.ways.Programs[name]) }
	}
	add("the kernel alone", of("pass_all"))
	add("XDP parses", of("parse_alone"))
	add("XDP asks its own namespace (finds none)", of("ask_here"))
	if w.vrf.Device == "" {
		add("XDP asks by namespace id", of("ask_netns"))
	}
	add("XDP asks the table kept by sockops", of("ask_table"))
	add("chosen", w.attachChosen)
	return rows
}

func (w *vrfBench) attachWay(t testing.TB, program *ebpf.Program) func() {
	t.Helper()
	l, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: w.near,
		Flags: link.XDPDriverMode})
	must(t, err)
	return func() { must(t, l.Close()) }
}

func (w *vrfBench) attachChosen(t testing.TB) func() {
	t.Helper()
	strays := w.open(t)
	_, err := strays.Commit()
	must(t, err)
	return func() {
		traffic, err := strays.Traffic(0)
		must(t, err)
		if traffic.Here == 0 || traffic.Strays != 0 {
			t.Errorf("the chosen way counted %+v, want all packets here", traffic)
		}
		strays.Close()
		must(t, Unload(w.dir))
	}
}

// printPaths prints what a packet takes from a sender on a veth through the router's XDP, the
// kernel's decapsulation or the redirection, and the IP stack, to where TCP drops it for its
// checksum.
func (w *vrfBench) printPaths(t testing.TB, cpu int) {
	t.Helper()
	rows := w.paths()
	sender := w.newSender(t)
	passages := make([][]passage, len(rows))
	kernels := softirqTime(t, cpu)
	for range *benchPasses {
		for i, r := range rows {
			passages[i] = append(passages[i], w.measurePath(t, sender, r, kernels))
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nns per packet\tprocessor\tlowest\thighest\tto the kernel alone\tby "+
		"the clock\tlost\t")
	for i, r := range rows {
		var busy, ratios, clock []float64
		lost := 0
		for pass, p := range passages[i] {
			busy, clock = append(busy, p.busy/float64(p.arrived)),
				append(clock, p.clock/float64(p.arrived))
			ratios = append(ratios,
				busy[pass]*float64(passages[i%3][pass].arrived)/passages[i%3][pass].busy)
			lost += p.sent - p.arrived
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.2f\t%.0f\t%d\t\n",
			r.name, median(busy), slices.Min(busy), slices.Max(busy), median(ratios), median(clock),
			lost)
	}
	table.Flush()
}

// softirqTime reads the processor time of the kernel's thread that carries packets of a processor
// when there are too many; no time, if this machine does not show it.
func softirqTime(t testing.TB, cpu int) func() float64 {
	t.Helper()
	threads, err := filepath.Glob("/proc/[0-9]*/comm")
	must(t, err)
	for _, path := range threads {
		if name, err := os.ReadFile(path); err != nil ||
			string(name) != fmt.Sprintf("ksoftirqd/%d\n", cpu) {
			continue
		}
		return func() (ns float64) {
			spent, err := os.ReadFile(filepath.Join(filepath.Dir(path), "schedstat"))
			must(t, err)
			_, err = fmt.Sscan(string(spent), &ns)
			must(t, err)
			return ns
		}
	}
	return func() float64 { return 0 }
}

// newSender is a driver that sends its frames out of the client's end of the veth.
func (w *vrfBench) newSender(t testing.TB) *benchDriver {
	t.Helper()
	d := newBenchDriver(t, 0)
	must(t, w.client.Do(func() error {
		d.ingress = setUp(t, "nearpeer").Attrs().Index
		return nil
	}))
	must(t, d.Maps[benchMapTarget].Put(uint32(0), d.Programs[benchProgNothing])) // XDP_TX
	return d
}

func (w *vrfBench) measurePath(t testing.TB, sender *benchDriver, r vrfPath,
	kernels func() float64) passage {
	t.Helper()
	defer r.attach(t)()
	frame := w.frame(t, benchClientV6, r.flows)
	w.pushThrough(t, sender, frame, 1024)
	before := kernels()
	p := w.pushThrough(t, sender, frame, min(benchPath, *benchRepeat))
	p.busy += kernels() - before
	return p
}

// pushThrough sends packets and waits until no more arrive.
func (w *vrfBench) pushThrough(t testing.TB, sender *benchDriver, frame benchFrame,
	packets int) passage {
	t.Helper()
	p := passage{sent: packets}
	must(t, sender.Variables[benchVarDriver].Set(frame.settings()))
	before := w.arrived(t)
	must(t, w.client.Do(func() error {
		defer holdPreemption(t)()
		began, busy := time.Now(), threadTime(t)
		_, err := sender.Programs[benchProgDrive].Run(&ebpf.RunOptions{
			Data: frame.octets, Context: runContext(ebpf.XDP, len(frame.octets), sender.ingress),
			Repeat: uint32(packets), Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES,
		})
		p.busy, p.clock = threadTime(t)-busy, float64(time.Since(began).Nanoseconds())
		return err
	}))
	for patience := time.Now().Add(100 * time.Millisecond); p.arrived < packets &&
		time.Now().Before(patience); {
		p.arrived = w.arrived(t) - before
	}
	return p
}

// arrived counts the packets that TCP has dropped for their checksum.
func (w *vrfBench) arrived(t testing.TB) (n int) {
	t.Helper()
	w.inside(t, func() error {
		counters, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		var names []string
		for line := range strings.Lines(string(counters)) {
			switch fields := strings.Fields(line); {
			case fields[0] == "Tcp:" && names == nil:
				names = fields
			case fields[0] == "Tcp:":
				_, err = fmt.Sscan(fields[slices.Index(names, "InCsumErrors")], &n)
			}
		}
		return err
	})
	return n
}
