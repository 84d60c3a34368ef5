package health_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/config"
	"sextant/linux"
	"sextant/test/cputime"
)

// load is how many checks there are, and what meets them.
type load struct {
	Services, Backends, SIDs int // SIDs are shared by services
	Kind                     config.CheckKind
	Interval, Timeout        time.Duration
	Meets                    string        // see ports and blocks
	Lasts                    time.Duration // after one interval in which they begin
	Keep                     bool
}

const (
	answers     = "answers"
	silent      = "silent"      // connections are accepted, and nothing more
	refuses     = "refuses"     // by RST
	dead        = "dead"        // packets vanish
	unreachable = "unreachable" // routers answer by ICMP
)

var (
	ports  = map[string]uint16{answers: 80, silent: 81, refuses: 82, dead: 80, unreachable: 80}
	blocks = map[string]string{answers: "fcbb:bb00", silent: "fcbb:bb00", refuses: "fcbb:bb00",
		dead: "fcbb:dead", unreachable: "fcbb:bad"}
)

func (l load) String() string {
	kind := string(l.Kind)
	if l.Keep {
		kind += "-kept"
	}
	return fmt.Sprintf("%s-%s-%d-per-second-of-%dx%d", kind, l.Meets,
		int(float64(l.Services*l.Backends)/l.Interval.Seconds()+0.5), l.Services, l.Backends)
}

func (l load) jobs() (jobs []health.Job, ways []health.Path) {
	c := &config.Check{Kind: l.Kind, Interval: l.Interval, Timeout: l.Timeout, JitterPermille: 100,
		Path: "/health", Status: config.StatusRange{First: 200, Last: 399}, Rise: 2, Fall: 3}
	for s := range l.Services {
		vip := netip.MustParseAddr(fmt.Sprintf("2001:db8:80::%x:%x", s>>16, s&0xffff))
		for b := range l.Backends {
			n := (s*l.Backends + b) % l.SIDs
			sid := netip.MustParseAddr(fmt.Sprintf("%s:%x::", blocks[l.Meets], n+0x10))
			jobs = append(jobs, health.Job{Check: c, Seed: uint64(len(jobs)),
				Keep: l.Keep, Target: health.Target{
					Service: fmt.Sprint("s", s), Backend: fmt.Sprint("b", b),
					Address: netip.AddrPortFrom(vip, ports[l.Meets]),
					SID:     sid, Source: netip.MustParseAddr(edge6),
				}})
			ways = append(ways, health.Path{VIP: vip, SID: sid})
		}
	}
	return jobs, ways
}

// measured is what a helper process found, in units of its own.
type measured map[string]float64

// BenchmarkChecks checks many backends through the SRv6 path. What checks is a process of its own
// on the edge, as is what answers on the host. Processor time is that of the process that checks,
// with what the kernel does for it, which for a connection over a veth pair is most of both ends'.
func BenchmarkChecks(b *testing.B) {
	const second = time.Second
	for _, l := range []load{
		{1000, 10, 10000, config.CheckTCP, 10 * second, second, answers, 10 * second, false},
		{10000, 10, 10000, config.CheckTCP, 10 * second, second, answers, 10 * second, false},
		{10, 10000, 10000, config.CheckTCP, 10 * second, second, answers, 10 * second, false},
		{1000, 10, 10000, config.CheckHTTP, 10 * second, second, answers, 10 * second, false},
		{10000, 10, 10000, config.CheckHTTP, 10 * second, second, answers, 10 * second, false},
		{1000, 10, 10000, config.CheckHTTP, second, second, answers, 10 * second, false},
		{1000, 10, 10000, config.CheckHTTP, second, second, answers, 10 * second, true},
		{10000, 10, 10000, config.CheckHTTP, 10 * second, second, answers, 10 * second, true},
		{10000, 10, 10000, config.CheckTCP, 10 * second, second, dead, 10 * second, false},
		{10000, 10, 10000, config.CheckTCP, 10 * second, second, unreachable, 10 * second, false},
		{10000, 10, 10000, config.CheckTCP, 10 * second, second, refuses, 10 * second, false},
		{10000, 10, 10000, config.CheckHTTP, 10 * second, second, silent, 10 * second, false},
	} {
		b.Run(l.String(), func(b *testing.B) {
			w := newWorld(b)
			must(b, w.hosts[0].Do(setUpManyHosts))
			must(b, w.edge.Do(func() error {
				var err error
				for _, block := range blocks {
					err = errors.Join(err, present(route(block+"::/32", "fd00:1::1")))
				}
				return err
			}))
			w.serve(b)
			for unit, value := range w.measure(b, "load", l) {
				b.ReportMetric(value, unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// measure has a helper process measure a load on the edge.
func (w *world) measure(b *testing.B, helper string, l load) (found measured) {
	argument, err := json.Marshal(l)
	must(b, err)
	command := exec.Command(os.Args[0], helper, string(argument))
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(b, err)
	must(b, w.edge.Do(command.Start))
	text, err := io.ReadAll(output)
	must(b, errors.Join(err, command.Wait()))
	must(b, json.Unmarshal(text, &found))
	return found
}

func present(err error) error {
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// setUpManyHosts makes one host all hosts of a block, with all VIPs.
func setUpManyHosts() error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	takes := &netlink.SEG6LocalEncap{Action: nl.SEG6_LOCAL_ACTION_END_DT6,
		Table: unix.RT_TABLE_LOCAL}
	takes.Flags[nl.SEG6_LOCAL_ACTION], takes.Flags[nl.SEG6_LOCAL_TABLE] = true, true
	prefix := func(s string) *net.IPNet { return ipNet(netip.MustParsePrefix(s)) }
	for _, r := range []*netlink.Route{
		{LinkIndex: link.Attrs().Index, Dst: prefix("fcbb:bb00::/32"), Encap: takes},
		{LinkIndex: lo.Attrs().Index, Dst: prefix("fcbb:dead::/32"), Type: unix.RTN_BLACKHOLE},
		{LinkIndex: lo.Attrs().Index, Dst: prefix("fcbb:bad::/32"), Type: unix.RTN_UNREACHABLE},
		{LinkIndex: lo.Attrs().Index, Dst: prefix("2001:db8:80::/48"), Type: unix.RTN_LOCAL,
			Table: unix.RT_TABLE_LOCAL},
	} {
		err = errors.Join(err, netlink.RouteAdd(r))
	}
	return errors.Join(err, linux.WriteSysctl("net.ipv6.icmp.ratelimit", "0"),
		linux.WriteSysctl("net.core.somaxconn", "65535"),
		linux.WriteSysctl("net.ipv6.conf.all.forwarding", "1"))
}

// serve answers on the first host, in a process of its own.
func (w *world) serve(b *testing.B) {
	command := exec.Command(os.Args[0], "serve", "")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(b, err)
	must(b, w.hosts[0].Do(command.Start))
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	_, err = output.Read(make([]byte, 1)) // it listens
	must(b, err)
}

// serve answers HTTP at port 80 by a page, and at port 81 accepts and says nothing.
func serve(string) error {
	var listeners []net.Listener
	for _, port := range []string{"[::]:80", "[::]:81"} {
		listener, err := net.Listen("tcp", port)
		if err != nil {
			return err
		}
		listeners = append(listeners, listener)
	}
	go func() {
		for {
			if conn, err := listeners[1].Accept(); err == nil {
				go func() { _, _ = io.Copy(io.Discard, conn); conn.Close() }()
			}
		}
	}()
	fmt.Println("listening")
	for {
		conn, err := listeners[0].Accept()
		if err != nil {
			continue // it was reset before
		}
		go func() {
			defer conn.Close()
			question, last := make([]byte, 1024), "Connection: close\r\n"
			for {
				n, _ := conn.Read(question)
				if n == 0 {
					return
				}
				if !bytes.Contains(question[:n], []byte(last)) {
					last = ""
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"+last+
					"\r\nok\n")
				if last != "" {
					return
				}
			}
		}()
	}
}

// tally is what comes of checks.
type tally struct {
	places map[health.Key]int
	jobs   []health.Job
	counts []int
	next   []time.Time // when each is due
	late   []float64   // ms
	failed map[string]int
}

func (t *tally) add(r health.Result) {
	i := t.places[r.Key]
	t.late = append(t.late, float64(r.At.Sub(t.next[i]).Microseconds())/1000)
	n, c := t.counts[i], t.jobs[i].Check
	t.counts[i]++
	t.next[i] = r.At.Add(health.Wait(c.Interval, c.JitterPermille, t.jobs[i].Seed, n))
	if end := r.At.Add(r.Took); end.After(t.next[i]) {
		t.next[i] = end
	}
	if r.Err != nil {
		text := r.Err.Error()
		t.failed[text[strings.LastIndex(text, ": ")+2:]]++
	}
}

// checkLoad runs the checks of a load, and prints what it found.
func checkLoad(argument string) error {
	var l load
	if err := json.Unmarshal([]byte(argument), &l); err != nil {
		return err
	}
	jobs, ways := l.jobs()
	found := measured{}
	paths, err := health.OpenPaths()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := paths.Set("eth0", outer, ways); err != nil {
		return err
	}
	found["paths-s"] = time.Since(begun).Seconds()
	t := &tally{places: map[health.Key]int{}, jobs: jobs, counts: make([]int, len(jobs)),
		next: make([]time.Time, len(jobs)), failed: map[string]int{}}
	for i := range jobs {
		jobs[i].Target.Mark = paths.Mark(ways[i])
		t.places[health.Key{Service: jobs[i].Target.Service, Backend: jobs[i].Target.Backend}] = i
	}
	heap := inUse()
	monitor := health.NewMonitor(context.Background())
	begun = time.Now()
	monitor.Set(jobs)
	found["set-s"] = time.Since(begun).Seconds()
	for i, j := range jobs {
		t.next[i] = begun.Add(health.Wait(l.Interval, j.Check.JitterPermille, j.Seed, -1))
	}
	t.run(monitor, begun.Add(max(l.Interval, l.Lasts)), found)
	found["start-late-max-ms"] = slices.Max(append(t.late, 0))
	found["start-results"] = float64(len(t.late))
	t.late = t.late[:0]
	clear(t.failed)
	used, at := cputime.Used(), time.Now()
	t.run(monitor, time.Now().Add(l.Lasts), found)
	checks := float64(len(t.late))
	found["checks/s"] = checks / time.Since(at).Seconds()
	found["cpu-us/check"] = float64(cputime.Since(used).Microseconds()) / checks
	slices.Sort(t.late)
	for name, q := range map[string]float64{"late-p50-ms": 0.5, "late-p99-ms": 0.99,
		"late-max-ms": 1} {
		found[name] = t.late[max(int(math.Ceil(q*checks))-1, 0)]
	}
	failed := 0
	for text, n := range t.failed {
		failed += n
		fmt.Fprintf(os.Stderr, "%d: %s\n", n, text)
	}
	found["failed-%"] = 100 * float64(failed) / checks
	found["heap-MiB"] = float64(inUse()-heap) / (1 << 20)
	begun = time.Now()
	monitor.Set(jobs)
	found["set-again-s"] = time.Since(begun).Seconds()
	monitor.Stop()
	begun = time.Now()
	err = paths.Set("eth0", outer, nil)
	found["unpath-s"] = time.Since(begun).Seconds()
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(found))
}

// run takes results until a time, and looks at what the process has.
func (t *tally) run(m *health.Monitor, until time.Time, found measured) {
	end, look := time.After(time.Until(until)), time.NewTicker(500*time.Millisecond)
	defer look.Stop()
	for {
		select {
		case r := <-m.Results():
			t.add(r)
		case <-look.C:
			most := func(name string, value float64) { found[name] = max(found[name], value) }
			most("goroutines", float64(runtime.NumGoroutine()))
			files, _ := os.ReadDir("/proc/self/fd")
			most("files", float64(len(files)))
			most("time-wait", timeWait())
			most("rss-MiB", resident())
		case <-end:
			return
		}
	}
}

// timeWait counts sockets in TIME_WAIT.
func timeWait() (n float64) {
	text, _ := os.ReadFile("/proc/net/sockstat")
	_, after, _ := strings.Cut(string(text), " tw ")
	_, _ = fmt.Sscan(after, &n)
	return n
}

// resident is VmRSS, in MiB.
func resident() (n float64) {
	text, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	_, _ = fmt.Sscan(after, &n)
	return n / 1024
}

// inUse is what the heap and the stacks hold.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
