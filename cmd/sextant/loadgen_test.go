package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/lab/loadgen"
	"sextant/lab/webserver"
)

// serve runs an emulated server for one test and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	server, err := webserver.Listen(webserver.Config{Name: "web1",
		Addresses: []string{"127.0.0.1:0"},
		Service:   time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server.Addresses()[0].String()
}

func TestOpenLoad(t *testing.T) {
	w := newWorld(t, fakeNode)
	out := w.run("loadgen", "http://"+serve(t)+"/", "--rate", "200", "--duration", "100ms", "-o",
		"json")
	var result loadgen.Result
	if err := json.Unmarshal(w.stdout.Bytes(), &result); err != nil || !strings.HasSuffix(out,
		"[exit 0]\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if result.Done == 0 || result.Done+result.Failed != result.Sent || len(result.Servers) != 1 ||
		result.Servers[0].Name != "web1" {
		t.Errorf("result %+v", result)
	}
}

func TestClosedLoad(t *testing.T) {
	w := newWorld(t, fakeNode)
	address := serve(t)
	want := filepath.Join(t.TempDir(), "want")
	if err := os.WriteFile(want, []byte("000000000000000\n0000"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := w.run("loadgen", "http://"+address+"/?bytes=20", "--workers", "2", "--duration", "1ms",
		"--want", want)
	for _, part := range []string{" by 2 workers, ", " 0 failed\n", "\nTIME   COUNT", "\nfetch ",
		"\nSERVER  ANSWERS  SHARE", "web1 ", "100.0%", "[exit 0]"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	out = w.run("loadgen", "http://"+address+"/?bytes=21", "--workers", "1", "--duration", "1ms",
		"--want", want)
	if !strings.Contains(out, "0 right, ") || !strings.Contains(out,
		"there was no right answer; see the failures above\n[exit 1]") {
		t.Errorf("wrong answers:\n%s", out)
	}
}

// An interrupted load tells how long it went, as text and as JSON, and not for how long it was
// meant to.
func TestInterruptedLoad(t *testing.T) {
	for _, output := range []string{"table", "json"} {
		ctx, interrupt := context.WithCancel(t.Context())
		var answered atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if answered.Add(1) == 3 {
				interrupt()
			}
		}))
		server.Config.SetKeepAlivesEnabled(false)
		w := newWorld(t, fakeNode)
		begin := time.Now()
		code := run(ctx, w.env("loadgen", server.URL, "--rate", "50", "--duration", "1h", "-o",
			output))
		passed := time.Since(begin)
		server.Close()
		out := w.stdout.String()
		want := exitOK
		if strings.Contains(out, ": 0 right,") || strings.Contains(out, `"done":0,`) {
			want = exitFailed
		}
		if code != want {
			t.Errorf("exit %d:\n%s%s", code, out, w.stderr.String())
		}
		if output == "json" {
			var result loadgen.Result
			if err := json.Unmarshal([]byte(out), &result); err != nil || result.DurationMs <= 0 ||
				result.DurationMs > passed.Seconds()*1000 {
				t.Errorf("%v after %v:\n%s", err, passed, out)
			}
			continue
		}
		var sent int
		var length string
		var rate float64
		if _, err := fmt.Sscanf(out, "%d requests in %s %f per second:", &sent, &length,
			&rate); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		took, err := time.ParseDuration(strings.TrimSuffix(length, ","))
		if err != nil || sent < 2 || took > passed+10*time.Millisecond ||
			took < 10*time.Millisecond {
			t.Errorf("%v after %v:\n%s", err, passed, out)
		}
	}
}

func TestEmulate(t *testing.T) {
	w := newWorld(t, fakeNode)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code := run(ctx, w.env("emulate", "--name", "web1", "--listen", "127.0.0.1:0"))
	if code != exitOK || !strings.HasPrefix(w.stderr.String(),
		"web1: 2 cores, 32 workers, on 127.0.0.1:") {
		t.Errorf("exit %d, %s", code, w.stderr.String())
	}
	if code := run(ctx, w.env("emulate", "--listen", "nowhere")); code != exitFailed {
		t.Errorf("exit %d for a wrong address, want %d", code, exitFailed)
	}
}

func TestReplayedLoad(t *testing.T) {
	w := newWorld(t, fakeNode)
	log := filepath.Join(t.TempDir(), "access.log")
	line := `192.0.2.7 - - [19/Sep/2007:08:00:0%d +0000] "GET /page?ms=0 HTTP/1.1" 200 12` + "\n"
	text := fmt.Sprintf(line, 0) + fmt.Sprintf(line, 1) + "not a request\n" + fmt.Sprintf(line, 9)
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := w.run("loadgen", "http://"+serve(t)+"/", "--replay", log, "--speed", "100", "--each")
	lines := strings.Split(strings.TrimSpace(w.stdout.String()), "\n")
	var last loadgen.Line
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Open == nil ||
		!strings.HasSuffix(out, "[exit 0]\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(lines) != 4 || last.Open.Done != 3 {
		t.Errorf("want three responses and their result:\n%s", out)
	}
}

func TestDayOfLoad(t *testing.T) {
	w := newWorld(t, fakeNode)
	out := w.run("loadgen", "http://"+serve(t)+"/", "--day", "--rate", "200", "--service", "100us",
		"--duration", "200ms", "-o", "json")
	var result loadgen.Result
	if err := json.Unmarshal(w.stdout.Bytes(), &result); err != nil || result.Done == 0 ||
		result.Failed != 0 {
		t.Fatalf("%v\n%s", err, out)
	}
}
