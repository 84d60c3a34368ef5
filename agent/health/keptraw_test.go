package health_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sextant/agent/health"
	"sextant/config"
)

// rawServer answers as it is told to, one connection after the other, whether HTTP allows it or
// not.
type rawServer struct {
	t        *rapid.T
	secure   *tls.Config // nil: without TLS
	listener net.Listener
	address  string

	mutex        sync.Mutex
	form         string // of its answers
	ill          bool
	drops        string   // what becomes of a connection that is asked again: "": it is answered
	opened, open int      // connections
	latest       *rawConn // of them
}

// rawConn gathers what is written until it is flushed, so that it goes in one piece.
type rawConn struct {
	*net.TCPConn
	gathers bool
	gather  bytes.Buffer
	over    net.Conn
}

func (c *rawConn) Write(p []byte) (int, error) {
	if c.gathers {
		return c.gather.Write(p)
	}
	return c.TCPConn.Write(p)
}

// flush writes what is gathered, and waits until it is received: by the kernel, not by the check.
func (c *rawConn) flush() {
	_, _ = c.TCPConn.Write(c.gather.Bytes())
	c.gather.Reset()
	c.settle()
}

func (c *rawConn) settle() {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	const closed = 7 // TCP_CLOSE
	for left, end := 1, time.Now().Add(10*time.Second); left > 0 && time.Now().Before(end); {
		if raw.Control(func(fd uintptr) {
			left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
			info, err := unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO)
			if err != nil || info.State == closed {
				left = 0 // it was reset, and nothing is received any more
			}
		}) != nil {
			return
		}
	}
}

const statusWell, statusIll = "200 fine", "503 ill"

// forms are answers, and whether the next question can follow on their connection.
var forms = map[string]struct {
	text  func(status string) string
	keeps bool
}{
	"length": {func(s string) string {
		return "HTTP/1.1 " + s + "\r\nContent-Length: 3\r\n\r\nok\n"
	}, true},
	"empty": {func(s string) string {
		return "HTTP/1.1 " + s + "\r\nContent-Length: 0\r\n\r\n"
	}, true},
	"chunks and a trailer": {func(s string) string {
		return "HTTP/1.1 " + s + "\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" +
			"3\r\nok\n\r\n0\r\nX-Sum: 7\r\n\r\n"
	}, true},
	"announced": {func(s string) string {
		return "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 " + s +
			"\r\nContent-Length: 3\r\n\r\nok\n"
	}, true},
	"1.0 that stays": {func(s string) string {
		return "HTTP/1.0 " + s + "\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nok\n"
	}, true},
	"1.0": {func(s string) string {
		return "HTTP/1.0 " + s + "\r\nContent-Length: 3\r\n\r\nok\n"
	}, false},
	"close": {func(s string) string {
		return "HTTP/1.1 " + s + "\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n"
	}, false},
	"long": {func(s string) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", s, 300<<10,
			strings.Repeat("x", 300<<10))
	}, false},
	"more than its length": {func(s string) string {
		return "HTTP/1.1 " + s + "\r\nContent-Length: 3\r\n\r\nok\n\n"
	}, false},
	"another answer": {func(s string) string { // which says the opposite
		return plainAnswer(s) + plainAnswer(opposite(s))
	}, false},
}

func plainAnswer(status string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Length: 3\r\n\r\nok\n"
}

func opposite(status string) string {
	if status == statusWell {
		return statusIll
	}
	return statusWell
}

// listen begins, or begins again at the same address.
func (s *rawServer) listen() {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		listener, err := net.Listen("tcp", s.address)
		if err == nil {
			s.listener, s.address = listener, listener.Addr().String()
			break
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
	go func(listener net.Listener) {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn.(*net.TCPConn))
		}
	}(s.listener)
}

func (s *rawServer) serve(conn *net.TCPConn) {
	c := &rawConn{TCPConn: conn}
	c.over = c
	if s.secure != nil {
		c.over = tls.Server(c, s.secure)
	}
	defer conn.Close()
	s.mutex.Lock()
	s.opened++
	s.open++
	s.latest = c
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		s.open--
		s.mutex.Unlock()
	}()
	from := bufio.NewReader(c.over)
	for n := 0; ; n++ {
		if _, err := http.ReadRequest(from); err != nil {
			return
		}
		time.Sleep(time.Millisecond) // so that the check waits
		s.mutex.Lock()
		status := statusWell
		if s.ill {
			status = statusIll
		}
		text, drops := forms[s.form].text(status), s.drops
		s.mutex.Unlock()
		switch {
		case n > 0 && drops == "408":
			text = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
		case n > 0 && drops != "":
			return
		}
		if len(text) > 1<<16 {
			_, _ = io.WriteString(c.over, text) // it may not be read to its end
			continue
		}
		c.gathers = true
		head, tail, _ := strings.Cut(text, "ok\n")
		_, _ = io.WriteString(c.over, head+"ok\n") // with TLS, records of their own
		_, _ = io.WriteString(c.over, tail)
		c.gathers = false
		c.flush()
	}
}

// happens does something to the connection that waits for the next question.
func (s *rawServer) happens(what string) {
	s.mutex.Lock()
	c, status := s.latest, statusWell
	if s.ill {
		status = statusIll
	}
	s.mutex.Unlock()
	if c == nil {
		return
	}
	switch what {
	case "fin":
		_ = c.CloseWrite()
	case "rst":
		_ = c.SetLinger(0)
		_ = c.TCPConn.Close()
		return
	case "answer", "half an answer":
		text := plainAnswer(opposite(status))
		if what != "answer" {
			text = text[:9]
		}
		_, _ = io.WriteString(c.over, text)
	case "408":
		_, _ = io.WriteString(c.over, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
		_ = c.CloseWrite()
	case "restart":
		s.listener.Close()
		_ = c.TCPConn.Close()
		s.listen()
		return
	}
	c.settle()
}

// TestKeptAmongChanges: whatever a server does with connections, before a question or after it,
// checks say what its answers to their own questions say, each connection is left that cannot be
// trusted, and a check has one at most.
func TestKeptAmongChanges(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	opened, needed, asked := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := keptCheck(config.CheckHTTP)
		s := &rawServer{t: t, address: "127.0.0.1:0", form: "length"}
		if rapid.Bool().Draw(t, "tls") {
			c, s.secure = keptCheck(config.CheckHTTPS), certified.TLS
		}
		if rapid.Bool().Draw(t, "body") {
			c.Status.Last = 599
			c.Body = "ok\n"
		}
		s.listen()
		defer func() { s.listener.Close() }()
		keep := &health.Kept{}
		defer keep.Close()
		kept := false // as far as the server allows it
		some := func(of ...string) *rapid.Generator[string] { return rapid.SampledFrom(of) }
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			s.mutex.Lock()
			s.ill = rapid.Bool().Draw(t, "ill")
			s.form = some("length", "empty", "chunks and a trailer", "announced", "1.0 that stays",
				"1.0", "close", "long", "more than its length", "another answer").Draw(t, "form")
			s.drops = some("", "", "", "closed", "408").Draw(t, "asked again")
			ill, form, drops, before := s.ill, s.form, s.drops, s.opened
			s.mutex.Unlock()
			fresh := !kept || drops != ""
			if kept && rapid.Bool().Draw(t, "idle") {
				s.happens(some("fin", "rst", "answer", "half an answer", "408",
					"restart").Draw(t, "happens"))
				fresh = true
			}
			got := probeKept(t.Context(), c, s.address, keep)
			want := !ill
			if c.Body != "" {
				want = strings.Contains(forms[form].text(""), "\r\n\r\nok\n") ||
					form == "chunks and a trailer"
			}
			if (got == "ok") != want {
				t.Fatalf("%s of form %q, ill %v: %s", c, form, ill, got)
			}
			kept = want && forms[form].keeps
			s.mutex.Lock()
			if fresh {
				needed++
				if s.opened == before {
					t.Errorf("the connection before was used again")
				}
			}
			opened, asked = opened+s.opened-before, asked+1
			s.mutex.Unlock()
			for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Microsecond) {
				s.mutex.Lock()
				open := s.open
				s.mutex.Unlock()
				if open <= 1 && (kept || open == 0) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%d connections are open; kept: %v", open, kept)
				}
			}
		}
	})
	t.Logf("%d checks, %d connections, %d of them needed", asked, opened, needed)
	if opened > needed+(asked-needed)/2 || needed == asked {
		t.Errorf("%d checks needed %d connections and opened %d", asked, needed, opened)
	}
}
