package webserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/lab/webserver"
)

// start runs a server on a free loopback port for the time of a test.
func start(t testing.TB, config webserver.Config) (address string, stop func()) {
	t.Helper()
	config.Name = "web1"
	config.Addresses = []string{"127.0.0.1:0"}
	server, err := webserver.Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	return server.Addresses()[0].String(), stop
}

func connect(t testing.TB, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t testing.TB, conn net.Conn, request string) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
}

// page is an answer with its body read.
type page struct {
	*http.Response
	body string
}

func receive(t testing.TB, reader *bufio.Reader) page {
	t.Helper()
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return page{response, string(body)}
}

// exchange sends a request on a new connection and reads the answer.
func exchange(t testing.TB, address, request string) page {
	t.Helper()
	conn := connect(t, address)
	send(t, conn, request)
	return receive(t, bufio.NewReader(conn))
}

func get(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n"
}

func statusOf(t testing.TB, p page) (status webserver.Status) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.body), &status); err != nil {
		t.Fatalf("status %q: %v", p.body, err)
	}
	return status
}

func TestAnswers(t *testing.T) {
	address, _ := start(t, webserver.Config{})
	long := strings.Repeat("a", 9000)
	tests := []struct {
		name    string
		request string
		code    int
	}{
		{"plain", get("/"), 200},
		{"service time", get("/?ms=1.5"), 200},
		{"exponent", get("/?ms=1e-1"), 200},
		{"service time by header", "GET / HTTP/1.1\r\nHost: a\r\nX-Service-Time: 0.5\r\n\r\n", 200},
		{"any path", get("/wiki/index.php?title=Load&ms=0"), 200},
		{"absolute form", "GET http://test/?ms=0 HTTP/1.1\r\nHost: test\r\n\r\n", 200},
		{"HTTP/1.0 without host", "GET / HTTP/1.0\r\n\r\n", 200},
		{"negative service time", get("/?ms=-1"), 400},
		{"service time is not a number", get("/?ms=NaN"), 400},
		{"infinite service time", get("/?ms=Inf"), 400},
		{"service time beyond an hour", get("/?ms=3600000.1"), 400},
		{"service time by header, no number",
			"GET / HTTP/1.1\r\nHost: a\r\nX-Service-Time: soon\r\n\r\n", 400},
		{"negative size", get("/?bytes=-1"), 400},
		{"size beyond a gibibyte", get("/?bytes=1073741825"), 400},
		{"broken query", get("/?ms=%zz"), 400},
		{"no HTTP", "hello\r\n\r\n", 400},
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400},
		{"broken header field", "GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400},
		{"space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
		{"request body", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400},
		{"chunked request body",
			"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"two lengths", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: " +
			"1\r\n\r\n", 400},
		{"method", "POST / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
		{"long request line", "GET /" + long + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
		{"endless request line", "GET /" + long, 414},
		{"long header", "GET / HTTP/1.1\r\nHost: a\r\nCookie: " + long + "\r\n\r\n", 431},
		{"many header fields", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("A: b\r\n",
			2000) + "\r\n", 431},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := exchange(t, address, test.request)
			if got.StatusCode != test.code {
				t.Errorf("status %s, want %d; body %q", got.Status, test.code, got.body)
			}
			if name := got.Header.Get("X-Server"); name != "web1" {
				t.Errorf("X-Server %q, want web1", name)
			}
			if !got.Close {
				t.Error("the answer does not announce the close")
			}
			if test.code == 405 && got.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow %q, want GET, HEAD", got.Header.Get("Allow"))
			}
		})
	}
}

// A client that sends nothing whole gets no answer, and does no harm.
func TestBrokenOffRequests(t *testing.T) {
	address, _ := start(t, webserver.Config{Workers: 1})
	for _, request := range []string{"", "G", "GET / HTTP/1.1\r\nHost: a\r\n"} {
		conn := connect(t, address)
		send(t, conn, request)
		conn.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
			t.Errorf("after %q and the end: read %q, %v, want nothing", request, got, err)
		}
	}
	if got := exchange(t, address, get("/?ms=0")); got.StatusCode != 200 {
		t.Errorf("afterwards: status %s, want 200", got.Status)
	}
}

func TestServerClosesFirst(t *testing.T) {
	address, _ := start(t, webserver.Config{})
	conn := connect(t, address)
	send(t, conn, get("/?ms=0"))
	if _, err := io.ReadAll(conn); err != nil { // ends: the server has closed
		t.Error(err)
	}
}

func TestHead(t *testing.T) {
	address, _ := start(t, webserver.Config{})
	conn := connect(t, address)
	send(t, conn, "HEAD /?bytes=1000 HTTP/1.1\r\nHost: a\r\n\r\n")
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(got, []byte("\r\nContent-Length: 1000\r\n")) || !bytes.HasSuffix(got,
		[]byte("\r\n\r\n")) {
		t.Errorf("answer to HEAD: %q, want a header with the length, and no body", got)
	}
}

func TestBody(t *testing.T) {
	var want strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&want, "%015x\n", i)
	}
	address, _ := start(t, webserver.Config{})
	for _, size := range []int{0, 1, 15, 16, 17, 65535, 65536, 300_000} {
		got := exchange(t, address, get(fmt.Sprintf("/?ms=0&bytes=%d", size)))
		if got.body != want.String()[:size] {
			t.Errorf("body of %d bytes differs (%d received)", size, len(got.body))
		}
	}
}

func TestBodyInOddPieces(t *testing.T) {
	whole, err := io.ReadAll(webserver.Body(1000))
	if err != nil {
		t.Fatal(err)
	}
	source := webserver.Body(1000)
	var pieces []byte
	for size := 1; ; size++ {
		piece := make([]byte, size)
		n, err := source.Read(piece)
		pieces = append(pieces, piece[:n]...)
		if err == io.EOF {
			break
		}
	}
	if diff := cmp.Diff(string(whole), string(pieces)); diff != "" {
		t.Errorf("read in pieces (-whole +pieces):\n%s", diff)
	}
}

func TestKeepAlive(t *testing.T) {
	address, _ := start(t, webserver.Config{KeepAlive: true})
	conn := connect(t, address)
	reader := bufio.NewReader(conn)
	send(t, conn, get("/?ms=0")+get("/?ms=0&bytes=3")) // pipelined
	for _, want := range []string{"000000000000000\n", "000"} {
		if got := receive(t, reader); got.body != want || got.Close {
			t.Errorf("body %q, close %v, want %q on a kept connection", got.body, got.Close, want)
		}
	}
	send(t, conn, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
	if got := receive(t, reader); got.Header.Get("Connection") != "keep-alive" {
		t.Errorf("HTTP/1.0: Connection %q, want keep-alive", got.Header.Get("Connection"))
	}
	send(t, conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if got := receive(t, reader); !got.Close {
		t.Error("the client asked for a close, the answer does not announce it")
	}
	if _, err := reader.ReadByte(); err != io.EOF {
		t.Errorf("then %v, want the end of the connection", err)
	}
}

// On one core a short job that comes later overtakes a long one.
func TestProcessorSharing(t *testing.T) {
	t.Parallel()
	address, _ := start(t, webserver.Config{Cores: 1})
	long := connect(t, address)
	send(t, long, get("/?ms=3600000"))
	exchange(t, address, get("/?ms=1"))
	if got := statusOf(t, exchange(t, address, get("/status"))); got.Busy == 0 || got.Served != 1 {
		t.Errorf("after the short job: %+v, want the long one busy and 1 served", got)
	}
}

// A slow core takes longer for a request, a fast one would else need an hour.
func TestSpeed(t *testing.T) {
	t.Parallel()
	slow, _ := start(t, webserver.Config{Speed: 0.1})
	begun := time.Now()
	exchange(t, slow, get("/?ms=20"))
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("20 ms of CPU time at a tenth of the speed took %s", took)
	}
	fast, _ := start(t, webserver.Config{Speed: 1000})
	if got := exchange(t, fast, get("/?ms=3600000")); got.StatusCode != 200 {
		t.Errorf("an hour at a thousand times the speed: %d", got.StatusCode)
	}
}

// While the only worker has a connection, others wait in the kernel's queue.
func TestWorkersLimitConnections(t *testing.T) {
	address, _ := start(t, webserver.Config{Workers: 1})
	holder := connect(t, address)
	send(t, holder, "GET /") // holds the worker
	second := connect(t, address)
	send(t, second, get("/status"))
	third := connect(t, address)
	send(t, third, get("/?ms=0"))
	send(t, holder, "?ms=0 HTTP/1.1\r\nHost: a\r\n\r\n")
	receive(t, bufio.NewReader(holder))
	got := statusOf(t, receive(t, bufio.NewReader(second)))
	if want := (webserver.Status{Busy: 0, Queued: 1, Served: 1}); got != want {
		t.Errorf("status %+v, want %+v", got, want)
	}
	receive(t, bufio.NewReader(third))
}

func TestSeveralAddresses(t *testing.T) {
	server, err := webserver.Listen(webserver.Config{Name: "both",
		Addresses: []string{"127.0.0.1:0", "[::1]:0"}, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	for range 2 {
		for _, address := range server.Addresses() {
			if got := exchange(t, address.String(), get("/")); got.StatusCode != 200 {
				t.Errorf("%v: status %s", address, got.Status)
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestStopFinishesAnswers(t *testing.T) {
	address, stop := start(t, webserver.Config{})
	idle := connect(t, address)
	busy := connect(t, address)
	send(t, busy, get("/?ms=300"))
	exchange(t, address, get("/status")) // accepted in turn, so the others are too
	answered := make(chan page, 1)
	go func() { answered <- receive(t, bufio.NewReader(busy)) }()
	stop()
	if got := <-answered; got.StatusCode != 200 {
		t.Errorf("answer under way: status %s, want 200", got.Status)
	}
	if got, err := io.ReadAll(idle); err != nil || len(got) > 0 {
		t.Errorf("idle connection: read %q, %v, want its end", got, err)
	}
	if _, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		t.Error("the address accepts connections after the stop")
	}
}

// An answer that is hours away does not keep the server from stopping.
func TestStopAbandonsLongAnswers(t *testing.T) {
	t.Parallel()
	address, stop := start(t, webserver.Config{})
	conn := connect(t, address)
	send(t, conn, get("/?ms=3600000"))
	exchange(t, address, get("/status")) // accepted in turn, so the other is too
	stop()
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("read %q, %v, want the end of the connection", got, err)
	}
}

func TestDrawnServiceTimes(t *testing.T) {
	address, _ := start(t, webserver.Config{Service: time.Millisecond, Seed: 7})
	for range 5 {
		exchange(t, address, get("/"))
	}
	if got := statusOf(t, exchange(t, address, get("/status"))); got.Served != 5 {
		t.Errorf("%d served, want 5", got.Served)
	}
}

func TestListenRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	ok := []string{"127.0.0.1:0"}
	tests := []struct {
		name   string
		config webserver.Config
	}{
		{"no name", webserver.Config{Addresses: ok}},
		{"name with a line break", webserver.Config{Name: "a\r\nb", Addresses: ok}},
		{"no address", webserver.Config{Name: "a"}},
		{"address without port", webserver.Config{Name: "a", Addresses: []string{"127.0.0.1"}}},
		{"address in use", webserver.Config{Name: "a",
			Addresses: append(ok, taken.Addr().String())}},
		{"negative cores", webserver.Config{Name: "a", Addresses: ok, Cores: -1}},
		{"negative workers", webserver.Config{Name: "a", Addresses: ok, Workers: -1}},
		{"negative backlog", webserver.Config{Name: "a", Addresses: ok, Backlog: -1}},
		{"negative service time", webserver.Config{Name: "a", Addresses: ok, Service: -1}},
		{"negative speed", webserver.Config{Name: "a", Addresses: ok, Speed: -1}},
		{"speed that is no number", webserver.Config{Name: "a", Addresses: ok, Speed: math.NaN()}},
		{"endless speed", webserver.Config{Name: "a", Addresses: ok, Speed: math.Inf(1)}},
		{"service time beyond an hour", webserver.Config{Name: "a", Addresses: ok,
			Service: 2 * time.Hour}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := webserver.Listen(test.config); err == nil {
				t.Error("Run gives no error")
			}
		})
	}
}

// BenchmarkResponse measures how much longer than its service time a request
// takes: the bias of timer and connection.
func BenchmarkResponse(b *testing.B) {
	const service = 2 * time.Millisecond
	address, _ := start(b, webserver.Config{})
	var extra time.Duration
	for range b.N {
		begin := time.Now()
		exchange(b, address, get("/?ms=2"))
		extra += time.Since(begin) - service
	}
	b.ReportMetric(float64(extra.Microseconds())/float64(b.N), "µs-extra/op")
}

// TestTell: who wants to know hears of each worker that gets a connection, and of each that loses
// one.
func TestTell(t *testing.T) {
	told := make(chan int, 10)
	address, stop := start(t, webserver.Config{Workers: 2, KeepAlive: true,
		Tell: func(busy int) { told <- busy }})
	first := connect(t, address)
	if busy := <-told; busy != 1 {
		t.Errorf("with one connection %d workers are busy", busy)
	}
	connect(t, address)
	if busy := <-told; busy != 2 {
		t.Errorf("with two connections %d workers are busy", busy)
	}
	first.Close()
	if busy := <-told; busy != 1 {
		t.Errorf("after one was closed %d workers are busy", busy)
	}
	stop()
	if busy := <-told; busy != 0 {
		t.Errorf("after the end %d workers are busy", busy)
	}
}
