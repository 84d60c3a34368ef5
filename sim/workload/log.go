package workload

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Log is the stream of requests that an access log has recorded.
type Log struct {
	Skipped  int // lines that are no GET request in the common or combined format
	requests []Request
	next     int
}

// maxLine is how long a line of a log may be.
const maxLine = 1 << 20

// maxSeconds is about a century: a longer log is a broken one, and must not overflow.
const maxSeconds = 3e9

// staticSuffixes tell static files from pages.
var staticSuffixes = []string{".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico",
	".webp", ".woff", ".woff2", ".txt", ".map"}

// ReadLog reads an access log in the common or combined log format of Apache and nginx:
//
//	192.0.2.7 - - [19/Sep/2007:08:00:01 +0000] "GET /wiki/index.php HTTP/1.1" 200 5120 "referer" "agent"
//
// It takes the GET requests, by time, speed times as fast as they came. The log knows seconds only:
// within its second a request comes at a time drawn by seed. An error is one of the reader, or of a
// log without a request.
func ReadLog(r io.Reader, speed float64, seed uint64) (*Log, error) {
	if !(speed > 0) {
		return nil, fmt.Errorf("replay at %g times the speed: it must be above 0", speed)
	}
	l, random := &Log{}, rand.New(rand.NewPCG(seed, 5))
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	var first time.Time
	for lines.Scan() {
		at, path, ok := parseLine(lines.Text())
		if !ok {
			l.Skipped++
			continue
		}
		if len(l.requests) == 0 {
			first = at
		}
		offset := (at.Sub(first).Seconds() + random.Float64()) / speed
		offset = max(-maxSeconds, min(offset, maxSeconds))
		l.requests = append(l.requests, Request{At: time.Duration(offset * float64(time.Second)),
			Class: classOf(path), Path: path})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the log behind %d requests: %w", len(l.requests), err)
	}
	if len(l.requests) == 0 {
		return nil, errors.New("the log has no GET request; it must be in the common or combined " +
			"log format")
	}
	l.begin()
	return l, nil
}

// begin sorts the requests, and lets the first second begin at 0.
func (l *Log) begin() {
	slices.SortStableFunc(l.requests, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
	first := l.requests[0].At
	for i := range l.requests {
		l.requests[i].At -= first
	}
}

// Length is when the last request comes.
func (l *Log) Length() time.Duration { return l.requests[len(l.requests)-1].At }

// Requests is how many there are.
func (l *Log) Requests() int { return len(l.requests) }

// Next returns the next request, false after the last.
func (l *Log) Next() (Request, bool) {
	if l.next == len(l.requests) {
		return Request{}, false
	}
	l.next++
	return l.requests[l.next-1], true
}

// logTime is how the formats write the time.
const logTime = "02/Jan/2006:15:04:05 -0700"

// parseLine takes the time and the path of a GET request. User names may contain spaces and
// brackets, so the time is the first text in brackets that is one and is followed by the request in
// quotes.
func parseLine(line string) (at time.Time, path string, ok bool) {
	for rest := line; ; {
		_, after, found := strings.Cut(rest, "[")
		if !found {
			return at, "", false
		}
		text, request, found := strings.Cut(after, `] "`)
		if found {
			if parsed, err := time.Parse(logTime, text); err == nil {
				path, ok = requestPath(request)
				return parsed, path, ok
			}
		}
		rest = after
	}
}

// requestPath takes the path from `GET /path HTTP/1.1" 200 ...`.
func requestPath(text string) (string, bool) {
	request, _, found := strings.Cut(text, `"`)
	fields := strings.Split(request, " ")
	if !found || len(fields) != 3 || fields[0] != "GET" || !strings.HasPrefix(fields[2], "HTTP/") ||
		!isPath(fields[1]) {
		return "", false
	}
	return fields[1], true
}

// isPath reports whether a text can be sent as the path of a request: no escapes of the log's own,
// and nothing that would end the request line.
func isPath(text string) bool {
	if !strings.HasPrefix(text, "/") {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

func classOf(path string) Class {
	path, _, _ = strings.Cut(path, "?")
	for _, suffix := range staticSuffixes {
		if strings.HasSuffix(path, suffix) {
			return Static
		}
	}
	return Page
}
