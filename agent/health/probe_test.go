package health_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/config"
)

// probe checks once, with the check's time limit, and returns "ok" or what is wrong.
func probe(t *testing.T, c *config.Check, address string) string {
	t.Helper()
	return probeKept(t.Context(), c, address, nil)
}

// probeKept does so with what is kept.
func probeKept(ctx context.Context, c *config.Check, address string, keep *health.Kept) string {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := health.Probe(ctx, c, target(address), keep); err != nil {
		return strings.ReplaceAll(err.Error(), address, "ADDRESS")
	}
	return "ok"
}

func TestProbeTCP(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := listener.Addr().String()
	if got := probe(t, check(config.CheckTCP), address); got != "ok" {
		t.Error(got)
	}
	conn, err := listener.Accept()
	must(t, err)
	if n, err := conn.Read(make([]byte, 1)); err == nil || n != 0 {
		t.Errorf("the check sent %d bytes, error %v; want that it is reset or ended", n, err)
	}
	conn.Close()
	listener.Close()
	if got := probe(t, check(config.CheckTCP),
		address); got != "connect to ADDRESS at fcbb:bb00:1::: connection refused" {
		t.Error(got)
	}
}

// pages is a web server with a page per behaviour.
func pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "all is well on "+r.Host)
	})
	mux.HandleFunc("/ill", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/ill")
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/stuck", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "all is")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return mux
}

func TestProbeHTTP(t *testing.T) {
	t.Parallel()
	plain, secure := httptest.NewServer(pages()), httptest.NewTLSServer(pages())
	defer plain.Close()
	defer secure.Close()
	for _, c := range []struct {
		name string
		kind config.CheckKind
		edit func(*config.Check)
		want string
	}{
		{"page", config.CheckHTTP, func(*config.Check) {}, "ok"},
		{"host and body", config.CheckHTTP, func(c *config.Check) {
			c.Host, c.Body = "web.example",
				"well on web.example"
		}, "ok"},
		{"wrong body", config.CheckHTTP, func(c *config.Check) { c.Body = "fine" },
			`get /health: "fine" is not in the answer's first 30 bytes`},
		{"ill", config.CheckHTTP, func(c *config.Check) { c.Path = "/ill" },
			"get /ill: status 503, not 200-399"},
		{"ill is wanted", config.CheckHTTP, func(c *config.Check) {
			c.Path, c.Status = "/ill", config.StatusRange{First: 503, Last: 503}
		}, "ok"},
		{"redirections are answers", config.CheckHTTP, func(c *config.Check) { c.Path = "/moved" },
			"ok"},
		{"too slow", config.CheckHTTP, func(c *config.Check) {
			c.Path, c.Timeout = "/slow",
				50*time.Millisecond
		}, "get /slow: no answer in time"},
		{"stuck in the body", config.CheckHTTP,
			func(c *config.Check) { c.Path, c.Body, c.Timeout = "/stuck", "well", 3*time.Second },
			"read /stuck: no answer in time"},
		{"TLS", config.CheckHTTPS, func(c *config.Check) { c.Insecure = true }, "ok"},
		{"TLS that nobody vouches for", config.CheckHTTPS,
			func(c *config.Check) { c.Host = "example.com" },
			"get /health: tls: failed to verify certificate: x509: certificate signed by unknown " +
				"authority"},
	} {
		address := plain.Listener.Addr().String()
		if c.kind == config.CheckHTTPS {
			address = secure.Listener.Addr().String()
		}
		k := check(c.kind)
		c.edit(k)
		got := probe(t, k, address)
		if c.want == "ok" && got != "ok" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// grpcServer answers health checks with a status; 0xff is a server that knows no such method.
func grpcServer(status byte) *httptest.Server {
	server := httptest.NewUnstartedServer(grpcAnswers(status))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	return server
}

func grpcAnswers(status byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		wellFormed := r.URL.Path == "/grpc.health.v1.Health/Check" &&
			r.Header.Get("TE") == "trailers" &&
			string(body) == "\x00\x00\x00\x00\x05\x0a\x03api"
		if !wellFormed || status == 0xff {
			w.Header().Set("Grpc-Status", "12")
			w.Header().Set("Grpc-Message", "unknown method")
			return
		}
		w.Header().Set("Trailer", "Grpc-Status")
		w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, 2), 8, status))
		w.Header().Set("Grpc-Status", "0")
	}
}

func TestProbeGRPC(t *testing.T) {
	for status, want := range map[byte]string{
		1:    "ok",
		2:    `call /grpc.health.v1.Health/Check for service "api": the server says NOT_SERVING`,
		9:    `call /grpc.health.v1.Health/Check for service "api": the server says 9`,
		0xff: `call /grpc.health.v1.Health/Check: gRPC status "12" unknown method`,
	} {
		server := grpcServer(status)
		k := check(config.CheckGRPC)
		k.Service = "api"
		if got := probe(t, k, server.Listener.Addr().String()); got != want {
			t.Errorf("status %d: %s, want %s", status, got, want)
		}
		server.Close()
	}
}

func TestProbeExec(t *testing.T) {
	t.Parallel()
	shell := func(script string) *config.Check {
		k := check(config.CheckExec)
		k.Command = []string{"/bin/sh", "-c", script}
		return k
	}
	for script, want := range map[string]string{
		`test "$SEXTANT_VIP:$SEXTANT_PORT $SEXTANT_BACKEND $SEXTANT_SID $SEXTANT_MARK" = "127.0.0.1:80 web1 fcbb:bb00:1:: 0"`: "ok",
		"echo first; echo it broke >&2; exit 3": "run /bin/sh: exit status 3: it broke",
		"kill -9 $$":                            "run /bin/sh: signal: killed: ",
	} {
		if got := probe(t, shell(script), "127.0.0.1:80"); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	k := check(config.CheckExec)
	k.Command = []string{"/nowhere/check"}
	if got := probe(t, k, "127.0.0.1:80"); !strings.Contains(got, "no such file") {
		t.Error(got)
	}
	// A child that would go on for ever ends with the check.
	pid := t.TempDir() + "/pid"
	k = shell("sleep 1000 & echo $! >" + pid + "; wait")
	k.Timeout = 5 * time.Second // in which the child begins
	if got := probe(t, k, "127.0.0.1:80"); got != "run /bin/sh: no answer in time" {
		t.Error(got)
	}
	text, err := os.ReadFile(pid)
	must(t, err)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the command's child goes on")
		}
	}
}

// What a command leaves in the background ends with the check, however the command ends.
func TestProbeExecLeavesNobody(t *testing.T) {
	for _, status := range []int{0, 3} {
		// as long as somebody has it open for writing, there is no end to read
		name := t.TempDir() + "/open"
		must(t, unix.Mkfifo(name, 0o600))
		open, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
		must(t, err)
		defer open.Close()
		k := check(config.CheckExec)
		k.Timeout = time.Minute
		k.Command = []string{"/bin/sh", "-c",
			fmt.Sprintf("exec 3>%s; sleep 300 & echo it broke; exit %d", name, status)}
		want := "ok"
		if status != 0 {
			want = fmt.Sprintf("run /bin/sh: exit status %d: it broke", status)
		}
		if got := probe(t, k, "127.0.0.1:80"); got != want {
			t.Errorf("status %d: %s, want %s", status, got, want)
		}
		must(t, open.SetReadDeadline(time.Now().Add(time.Minute)))
		if _, err := open.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("status %d: a child goes on: %v", status, err)
		}
	}
}

// A monitor follows what its jobs are.
func TestMonitor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	of := func(backend, address string) health.Job {
		j := health.Job{Check: check(config.CheckTCP), Target: target(address)}
		j.Check.Interval, j.Target.Backend = time.Millisecond, backend
		return j
	}
	monitor := health.NewMonitor(t.Context())
	monitor.Set([]health.Job{of("good", listener.Addr().String()), of("bad", "127.0.0.1:1")})
	seen := map[string]int{}
	for seen["good"] < 3 || seen["bad"] < 3 {
		r := <-monitor.Results()
		seen[r.Backend]++
		if (r.Err == nil) != (r.Backend == "good") || r.At.IsZero() || r.Took <= 0 {
			t.Fatalf("result %+v", r)
		}
	}
	// The bad one gets another address, the good one goes.
	monitor.Set([]health.Job{of("bad", listener.Addr().String())})
	for current := 0; current < 3; {
		r := <-monitor.Results()
		if !monitor.Current(r) {
			continue // of a job that is over
		}
		if current++; r.Backend != "bad" || r.Err != nil {
			t.Fatalf("result %+v", r)
		}
	}
	monitor.Stop()
	select {
	case r := <-monitor.Results():
		t.Errorf("result %+v after the end", r)
	default:
	}
}
