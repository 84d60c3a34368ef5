package workload_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"sextant/sim/workload"
)

const accessLog = `192.0.2.7 - - [19/Sep/2007:08:00:00 +0000] "GET /wiki/index.php?title=Main HTTP/1.1" 200 5120
192.0.2.8 - a user [x] [19/Sep/2007:08:00:10 +0000] "GET /skins/main.css?303 HTTP/1.0" 200 17 "http://a/ \"b\"" "Mozilla [en]"
2001:db8::1 - - [19/Sep/2007:10:00:05 +0200] "GET /later/but/sorted HTTP/1.1" 304 -
192.0.2.9 - - [19/Sep/2007:08:00:03 +0000] "POST /submit HTTP/1.1" 200 1
192.0.2.9 - - [19/Sep/2007:08:00:03 +0000] "\x16\x03" 400 0
192.0.2.9 - - [99/Sep/2007:08:00:03 +0000] "GET / HTTP/1.1" 200 0
192.0.2.9 - - [19/Sep/2007:08:00:03 +0000] "GET http://elsewhere/ HTTP/1.1" 200 0
192.0.2.9 - - [19/Sep/2007:08:00:03 +0000] "GET /half

`

func TestReadLog(t *testing.T) {
	l, err := workload.ReadLog(strings.NewReader(accessLog), 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	if l.Requests() != 3 || l.Skipped != 6 {
		t.Fatalf("%d requests and %d other lines, want 3 and 6", l.Requests(), l.Skipped)
	}
	want := []struct {
		path  string
		class workload.Class
		at    float64 // seconds in the log
	}{{"/wiki/index.php?title=Main", workload.Page, 0}, {"/later/but/sorted", workload.Page, 5},
		{"/skins/main.css?303", workload.Static, 10}}
	for i, w := range want {
		r, ok := l.Next()
		if !ok || r.Path != w.path || r.Class != w.class || math.Abs(r.At.Seconds()*10-w.at) > 1 {
			t.Errorf("request %d is %+v, want %+v", i, r, w)
		}
	}
	if _, ok := l.Next(); ok {
		t.Error("there is a fourth request")
	}
	if l.Length() > 1100*time.Millisecond {
		t.Errorf("11 s at ten times the speed last %v", l.Length())
	}
}

func TestReadLogErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "no GET request",
		"hello":                    "no GET request",
		strings.Repeat("x", 2<<20): "too long",
	} {
		if _, err := workload.ReadLog(strings.NewReader(text), 1, 1); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q in it", text, err, want)
		}
	}
	if _, err := workload.ReadLog(strings.NewReader(accessLog), 0, 1); err == nil {
		t.Error("no error for the speed 0")
	}
}

// Whatever the log holds: times go up from 0, and paths fit into a request line.
func FuzzReadLog(f *testing.F) {
	f.Add(accessLog)
	f.Add(`a b [c] "d" [01/Jan/2000:00:00:00 +0000] "GET /e HTTP/1.1"`)
	f.Add(`[01/Jan/0000:00:00:00 +0000] "GET / HTTP/"` + "\n" +
		`[31/Dec/9999:23:59:59 -2359] "GET / HTTP/"`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := workload.ReadLog(strings.NewReader(text), 2, 1)
		if err != nil {
			return
		}
		last := time.Duration(0)
		for r, ok := l.Next(); ok; r, ok = l.Next() {
			if r.At < last || !strings.HasPrefix(r.Path, "/") || strings.ContainsAny(r.Path,
				" \r\n\x00") {
				t.Fatalf("request %+v after %v", r, last)
			}
			last = r.At
		}
	})
}
