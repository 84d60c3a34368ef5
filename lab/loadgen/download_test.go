package loadgen_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/lab/loadgen"
)

func download(t *testing.T, config loadgen.DownloadConfig) *loadgen.DownloadResult {
	t.Helper()
	result, err := loadgen.Download(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestDownload(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Server", "files")
		w.Write(content)
	})
	for name, want := range map[string][]byte{"known content": content, "any content": nil} {
		t.Run(name, func(t *testing.T) {
			result := download(t, loadgen.DownloadConfig{URL: url, Workers: 3,
				Duration: 50 * time.Millisecond, Want: want})
			if result.Done < 3 || result.Failed != 0 ||
				result.Bytes != result.Done*uint64(len(content)) {
				t.Errorf("result %+v, want whole bodies only, and 3 at least", result)
			}
			if len(result.Servers) != 1 || result.Servers[0].Name != "files" ||
				result.Servers[0].Count != result.Done {
				t.Errorf("servers %+v, want files with all %d", result.Servers, result.Done)
			}
		})
	}
}

func TestDownloadFindsFaults(t *testing.T) {
	want := strings.Repeat("x", 100_000)
	at := func(i int) string { return want[:i] + "y" + want[i+1:] }
	body := func(text string) string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text) })
	}
	tests := []struct {
		name  string
		url   string
		count func(loadgen.Failures) uint64
		error string
	}{
		{"first byte", body(at(0)), wrongBody, "body differs at byte 0"},
		{"a byte within", body(at(77_777)), wrongBody, "body differs at byte 77777"},
		{"last byte", body(at(99_999)), wrongBody, "body differs at byte 99999"},
		{"one byte too many", body(want + "x"), wrongBody, "body goes on at byte 100000"},
		{"one byte too few", body(want[1:]), wrongBody, "body ends at byte 99999"},
		{"nothing", body(""), wrongBody, "body ends at byte 0"},
		{"connection ends within", serveRaw(t, func(conn *net.TCPConn) {
			readRequest(conn)
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n%s", want[1:])
		}), func(f loadgen.Failures) uint64 { return f.ShortBody }, "unexpected EOF"},
		{"an error page", serve(t, func(w http.ResponseWriter,
			r *http.Request) {
			http.NotFound(w, r)
		}),
			func(f loadgen.Failures) uint64 { return f.Status }, "404 Not Found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			result := download(t, loadgen.DownloadConfig{URL: test.url, Want: []byte(want)})
			if result.Done != 0 || result.Failed != 1 || test.count(result.Failures) != 1 {
				t.Errorf("result %+v, want one failure of the kind", result)
			}
			for _, message := range result.FirstErrors {
				if !strings.Contains(message, test.error) {
					t.Errorf("error %q, want %q in it", message, test.error)
				}
			}
		})
	}
}

func wrongBody(f loadgen.Failures) uint64 { return f.WrongBody }

func TestDownloadEndsWithItsContext(t *testing.T) {
	end := make(chan struct{})
	asked := make(chan struct{}, 2)
	url := serveRaw(t, func(conn *net.TCPConn) {
		asked <- struct{}{}
		<-end
	})
	defer close(end)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	result, err := loadgen.Download(ctx, loadgen.DownloadConfig{URL: url, Workers: 2,
		Duration: time.Hour})
	if err != context.Canceled || result == nil || result.Failed != 0 {
		t.Errorf("result %+v, error %v, want no failure and the cause", result, err)
	}
}

// Each is told of every fetch.
func TestDownloadTellsEach(t *testing.T) {
	answers := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if answers++; answers == 2 {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, "right")
	})
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	_, err := loadgen.Download(ctx, loadgen.DownloadConfig{
		URL: url, Duration: time.Hour,
		Each: func(f loadgen.Fetch) {
			if f.Ms <= 0 {
				t.Errorf("fetch %+v took no time", f)
			}
			if told = append(told, f.Failure); len(told) == 3 {
				cancel()
			}
		},
	})
	if err != context.Canceled || !slices.Equal(told, []string{"", "status", ""}) {
		t.Errorf("told of %q, error %v; want a failure of kind status as the second of three", told,
			err)
	}
}

func TestDownloadRefuses(t *testing.T) {
	for name, config := range map[string]loadgen.DownloadConfig{
		"no URL":            {},
		"negative workers":  {URL: "http://127.0.0.1:9/", Workers: -1},
		"negative duration": {URL: "http://127.0.0.1:9/", Duration: -1},
		"negative timeout":  {URL: "http://127.0.0.1:9/", Timeout: -1},
		"source of the other family": {URL: "http://[::1]:9/",
			Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadgen.Download(context.Background(), config); err == nil {
				t.Error("Download gives no error")
			}
		})
	}
}
