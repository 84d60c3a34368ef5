package loadgen_test

import (
	cmp2 "cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sextant/lab/loadgen"
	"sextant/sim/workload"
)

// load is a short one, for tests that count.
func load(url string) loadgen.Config {
	return loadgen.Config{URL: url, Rate: 500, Duration: 200 * time.Millisecond, Seed: 1,
		Timeout: 20 * time.Second}
}

func run(t *testing.T, config loadgen.Config) *loadgen.Result {
	t.Helper()
	result, err := loadgen.Run(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	if result.Done+result.Failed != result.Sent {
		t.Errorf("%d done and %d failed of %d sent", result.Done, result.Failed, result.Sent)
	}
	if result.Done != result.Latency.Count || result.Failed != result.Failures.Total() {
		t.Errorf("counts disagree: %+v", result)
	}
	if want := float64(result.Sent) / config.Duration.Seconds(); result.DurationMs != float64(
		config.Duration)/1e6 || result.SentPerSecond != want {
		t.Errorf("%v ms and %v per second, want %v of a run that was not cut short",
			result.DurationMs, result.SentPerSecond, want)
	}
	return result
}

// serve runs an HTTP server that a test defines.
func serve(t *testing.T, handler http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// serveRaw hands each connection to a function, in a goroutine of its own.
func serveRaw(t *testing.T, connection func(*net.TCPConn)) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				connection(conn.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return "http://" + listener.Addr().String() + "/"
}

func readRequest(conn net.Conn) {
	buffer := make([]byte, 4096)
	conn.Read(buffer)
}

func TestRunSendsTheSchedule(t *testing.T) {
	var mu sync.Mutex
	var got []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.String())
		fmt.Fprint(w, "hello")
	})
	config := load(url + "/page?bytes=10")
	config.Service = 3 * time.Millisecond
	config.WarmUp = 100 * time.Millisecond
	result := run(t, config)

	var want []string
	var measured uint64
	schedule := workload.NewPoisson(config.Rate, config.Service, config.Seed)
	for a, _ := schedule.Next(); a.At < config.WarmUp+config.Duration; a, _ = schedule.Next() {
		ms := strconv.FormatFloat(float64(a.Service)/1e6, 'f', -1, 64)
		want = append(want, "/page?bytes=10&ms="+ms)
		if a.At >= config.WarmUp {
			measured++
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-schedule +received):\n%s", diff)
	}
	if result.Sent != measured || result.Done != measured {
		t.Errorf("sent %d, done %d, want %d: those after the warm-up", result.Sent, result.Done,
			measured)
	}
}

func TestRunMeasuresByServer(t *testing.T) {
	var mu sync.Mutex
	counts := map[string]uint64{}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		name := fmt.Sprintf("web%d", (counts["web0"]+counts["web1"]+counts["web2"])%3)
		counts[name]++
		w.Header().Set("X-Server", name)
	})
	result := run(t, load(url))
	var sum float64
	for i, server := range result.Servers {
		if want := fmt.Sprintf("web%d", i); server.Name != want || server.Count != counts[want] {
			t.Errorf("server %d: %+v, want %s with %d", i, server, want, counts[want])
		}
		sum += server.MeanMs * float64(server.Count)
	}
	if len(result.Servers) != 3 {
		t.Errorf("%d servers, want 3", len(result.Servers))
	}
	if mean := sum / float64(result.Done); math.Abs(mean-result.Latency.MeanMs) > 1e-6 {
		t.Errorf("means by server make %g ms, the mean is %g ms", mean, result.Latency.MeanMs)
	}
}

// The clock of a request starts when it is due: one that a slow server delays
// has waited at least its service time, and the generator's own delay counts.
func TestRunLatencyCoversTheServiceTime(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ms, err := strconv.ParseFloat(r.URL.Query().Get("ms"), 64)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		time.Sleep(time.Duration(ms * float64(time.Millisecond)))
	})
	config := load(url)
	config.Service = 5 * time.Millisecond
	result := run(t, config)
	var demand time.Duration
	schedule := workload.NewPoisson(config.Rate, config.Service, config.Seed)
	for range result.Done {
		next, _ := schedule.Next()
		demand += next.Service
	}
	if least := demand.Seconds() * 1000 / float64(result.Done); result.Latency.MeanMs < least {
		t.Errorf("mean %g ms is below the mean service time %g ms", result.Latency.MeanMs, least)
	}
	d := result.Latency
	if !slices.IsSorted([]float64{d.P50Ms, d.P90Ms, d.P99Ms, d.P999Ms}) || d.MinMs > d.MeanMs ||
		d.MeanMs > d.MaxMs {
		t.Errorf("distribution is out of order: %+v", d)
	}
}

// list is a stream of some requests.
type list []workload.Request

func (l *list) Next() (workload.Request, bool) {
	if len(*l) == 0 {
		return workload.Request{}, false
	}
	next := (*l)[0]
	*l = (*l)[1:]
	return next, true
}

// A stream of one's own is sent as it is, and Each is told of every response behind the warm-up.
func TestRunSendsAnyStream(t *testing.T) {
	var mu sync.Mutex
	var got []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, r.URL.String())
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
		}
	})
	requests := list{
		{At: 0, Path: "/early"}, {At: 30 * time.Millisecond, Path: "/page?x=1"},
		{At: 60 * time.Millisecond, Service: 2 * time.Millisecond, Class: workload.Static},
		{At: 90 * time.Millisecond, Path: "/missing"},
	}
	var told []loadgen.Response
	result := run(t, loadgen.Config{
		URL: url + "/base", Requests: &requests, WarmUp: 20 * time.Millisecond, Duration: time.Hour,
		Each: func(r loadgen.Response) { told = append(told, r) },
	})
	slices.Sort(got)
	if diff := cmp.Diff([]string{"/base?ms=2", "/early", "/missing", "/page?x=1"},
		got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	slices.SortFunc(told, func(a, b loadgen.Response) int { return cmp2.Compare(a.AtMs, b.AtMs) })
	if len(told) != 3 || result.Done != 2 || result.Failed != 1 {
		t.Fatalf("told %+v; %d right and %d failed, want 2 and 1", told, result.Done, result.Failed)
	}
	if told[0].AtMs != 30 || told[1].Class != workload.Static || told[2].Failure != "status" ||
		told[0].Ms <= 0 {
		t.Errorf("told %+v", told)
	}
}

func TestRunCountsFailures(t *testing.T) {
	answer := func(text string) func(*net.TCPConn) {
		return func(conn *net.TCPConn) {
			readRequest(conn)
			io.WriteString(conn, text)
		}
	}
	tests := []struct {
		name  string
		url   string
		count func(loadgen.Failures) uint64
	}{
		{"refused", "http://" + closedPort(t),
			func(f loadgen.Failures) uint64 { return f.Refused }},
		{"reset", serveRaw(t, func(conn *net.TCPConn) {
			readRequest(conn)
			conn.SetLinger(0)
		}), func(f loadgen.Failures) uint64 { return f.Reset }},
		{"status", serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}), func(f loadgen.Failures) uint64 { return f.Status }},
		{"shortBody", serveRaw(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")),
			func(f loadgen.Failures) uint64 { return f.ShortBody }},
		{"shortBody", serveRaw(t, answer("HTTP/1.1 200 OK\r\nServer: a\r\n")),
			func(f loadgen.Failures) uint64 { return f.ShortBody }},
		{"other", serveRaw(t, answer("220 mail.example.org ESMTP\r\n\r\n")),
			func(f loadgen.Failures) uint64 { return f.Other }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result := run(t, load(test.url))
			if result.Sent == 0 || test.count(result.Failures) != result.Sent {
				t.Errorf("failures %+v (%v), want all %d of this kind", result.Failures,
					result.FirstErrors, result.Sent)
			}
			if result.FirstErrors[test.name] == "" {
				t.Errorf("no example under %q in %v", test.name, result.FirstErrors)
			}
		})
	}
}

// closedPort is one at which nobody listens until the end of the test: it is taken.
func closedPort(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", address.(*unix.SockaddrInet4).Port)
}

func TestRunTimeout(t *testing.T) {
	end := make(chan struct{})
	url := serveRaw(t, func(conn *net.TCPConn) { <-end })
	defer close(end)
	config := load(url)
	config.Timeout = 50 * time.Millisecond
	result := run(t, config)
	if result.Failures.Timeout != result.Sent {
		t.Errorf("failures %+v (%v), want all %d timeouts", result.Failures, result.FirstErrors,
			result.Sent)
	}
}

// A server that never answers does not slow the generator down; what it may
// not send any more is counted.
func TestRunBoundsRequestsInFlight(t *testing.T) {
	end := make(chan struct{})
	url := serveRaw(t, func(conn *net.TCPConn) { <-end })
	config := load(url)
	config.MaxInFlight = 7
	requests := 0
	for s := workload.NewPoisson(config.Rate, config.Service, config.Seed); ; requests++ {
		if next, _ := s.Next(); next.At >= config.Duration {
			break
		}
	}
	told := 0
	config.Each = func(loadgen.Response) { // one at a time
		if told++; told == requests-7 {
			close(end) // those that were sent end when all others have overflowed
		}
	}
	result := run(t, config)
	if overflow := result.Failures.Overflow; overflow != result.Sent-7 ||
		result.Failed != result.Sent || result.Sent != uint64(requests) {
		t.Errorf("failures %+v of %d sent, want that all but 7 of %d are overflow", result.Failures,
			result.Sent, requests)
	}
}

func TestRunTakesSourcesInTurn(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		source := netip.MustParseAddrPort(r.RemoteAddr).Addr()
		seen[source.String()]++
	})
	config := load(url)
	var err error
	if config.Sources, err = loadgen.ParseSources("127.3.0.2/30,127.4.0.9"); err != nil {
		t.Fatal(err)
	}
	result := run(t, config)
	want := map[string]int{}
	for i := range int(result.Sent) {
		if i%2 == 1 {
			want["127.4.0.9"]++
		} else { // from .2 on, around at the end of the prefix
			want[fmt.Sprintf("127.3.0.%d", (2+i/2)%4)]++
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("requests by source (-want +got):\n%s", diff)
	}
}

func TestRunReportsProgress(t *testing.T) {
	told := make(chan struct{})
	// the run does not end before
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { <-told })
	config := load(url)
	config.WarmUp = 500 * time.Millisecond
	config.Duration = 500 * time.Millisecond
	var reports []loadgen.Progress
	config.Progress = func(p loadgen.Progress) {
		if reports = append(reports, p); len(reports) == 1 {
			close(told)
		}
	}
	run(t, config)
	last := loadgen.Progress{}
	for _, p := range reports {
		if p.Total != time.Second || p.Sent < last.Sent || p.Done < last.Done ||
			p.Elapsed <= last.Elapsed || p.Done > p.Sent {
			t.Errorf("progress %+v after %+v", p, last)
		}
		if p.WarmingUp != (p.Elapsed < config.WarmUp) {
			t.Errorf("progress %+v: warm-up ends after %v", p, config.WarmUp)
		}
		last = p
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	end := make(chan struct{})
	url := serveRaw(t, func(conn *net.TCPConn) { <-end })
	defer close(end)
	config := load(url)
	config.Duration = time.Hour
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	config.Progress = func(p loadgen.Progress) {
		if p.Sent > 0 {
			cancel(stop)
		}
	}
	begin := time.Now()
	result, err := loadgen.Run(ctx, config)
	passed := time.Since(begin).Seconds()
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want the cause %q", err, stop)
	}
	if result == nil || result.Sent == 0 || result.Failed != 0 {
		t.Fatalf("result %+v, want requests sent and none failed", result)
	}
	if seconds := result.DurationMs / 1000; seconds <= 0 || seconds > passed ||
		math.Abs(result.SentPerSecond*seconds-float64(result.Sent)) > 1e-6 {
		t.Errorf("%d requests in %v s are %v per second, after %v s", result.Sent, seconds,
			result.SentPerSecond, passed)
	}
}

// A run that ends in its warm-up has measured for no time at all.
func TestRunEndsInItsWarmUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	url := serve(t, func(http.ResponseWriter, *http.Request) { cancel() })
	config := load(url)
	config.WarmUp = time.Hour
	begin := time.Now()
	result, err := loadgen.Run(ctx, config)
	if !errors.Is(err, context.Canceled) || result == nil {
		t.Fatalf("result %+v, error %v", result, err)
	}
	if result.DurationMs != 0 || result.SentPerSecond != 0 || result.WarmUpMs <= 0 ||
		result.WarmUpMs > time.Since(begin).Seconds()*1000 {
		t.Errorf("result %+v", result)
	}
}

// A loop that is late, and so waits for nothing, ends with its context as well.
func TestLateRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	config := load(serve(t, func(http.ResponseWriter, *http.Request) {}))
	config.Requests = endless{}
	if result, err := loadgen.Run(ctx, config); !errors.Is(err, context.Canceled) ||
		result == nil || result.Sent != 0 {
		t.Errorf("result %+v, error %v", result, err)
	}
}

// endless has requests that are all due at once.
type endless struct{}

func (endless) Next() (workload.Request, bool) { return workload.Request{}, true }

func TestRunRefuses(t *testing.T) {
	good := load("http://127.0.0.1:9/")
	tests := []struct {
		name   string
		change func(*loadgen.Config)
	}{
		{"no scheme", func(c *loadgen.Config) { c.URL = "127.0.0.1:9" }},
		{"https", func(c *loadgen.Config) { c.URL = "https://127.0.0.1:9/" }},
		{"no host", func(c *loadgen.Config) { c.URL = "http:///" }},
		{"port beyond 65535", func(c *loadgen.Config) { c.URL = "http://127.0.0.1:65536/" }},
		{"no rate", func(c *loadgen.Config) { c.Rate = 0 }},
		{"rate is not a number", func(c *loadgen.Config) { c.Rate = math.NaN() }},
		{"no duration", func(c *loadgen.Config) { c.Duration = 0 }},
		{"negative warm-up", func(c *loadgen.Config) { c.WarmUp = -1 }},
		{"negative service time", func(c *loadgen.Config) { c.Service = -1 }},
		{"negative timeout", func(c *loadgen.Config) { c.Timeout = -1 }},
		{"negative bound", func(c *loadgen.Config) { c.MaxInFlight = -1 }},
		{"source of the other family", func(c *loadgen.Config) {
			c.Sources = []netip.Prefix{netip.MustParsePrefix("2001:db8::/64")}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := good
			test.change(&config)
			if _, err := loadgen.Run(context.Background(), config); err == nil {
				t.Error("Run gives no error")
			}
		})
	}
}

func TestResultJSON(t *testing.T) {
	result := run(t, load(serve(t, func(w http.ResponseWriter, r *http.Request) {})))
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	want := []string{"done", "durationMs", "failed", "failures", "latency", "lateness",
		"ratePerSecond",
		"seed", "sent", "sentPerSecond", "servers", "serviceMs", "url", "warmUpMs"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if string(object["servers"]) != "[]" {
		t.Errorf("servers without X-Server: %s, want []", object["servers"])
	}
}
