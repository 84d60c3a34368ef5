package metrics

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
)

// MaxSharedCopies bounds the memory of all answers under way that are shared, compressed, in
// bytes.
const MaxSharedCopies = 64 << 20

// ErrCrowded is for the caller whose answer would take too much memory beside others.
var ErrCrowded = errors.New("too many large answers are under way; ask again in some seconds")

// SharedCopies holds large answers while they are sent: one compressed copy for all clients that
// ask for the same, and none when the last of them is served. Clients that do not read share one
// copy too.
type SharedCopies[K comparable] struct {
	building sync.Mutex // one at a time: what building takes is taken once

	mu     sync.Mutex
	Copies map[K]*sharedCopy
	Bytes  int
}

// sharedCopy is an answer, compressed with gzip. Nobody changes it once it is ready.
type sharedCopy struct {
	ready  chan struct{}
	Header http.Header
	Packed []byte
	err    error
	users  int
}

// Take returns the copy of key, which build writes if nobody has it, and what gives it back.
func (s *SharedCopies[K]) Take(key K,
	build func(http.Header, io.Writer) error) (*sharedCopy, func(), error) {
	s.mu.Lock()
	c := s.Copies[key]
	if c == nil && s.Bytes >= MaxSharedCopies {
		s.mu.Unlock()
		return nil, nil, ErrCrowded
	}
	first := c == nil
	if first {
		c = &sharedCopy{ready: make(chan struct{}), Header: http.Header{}}
		if s.Copies == nil {
			s.Copies = map[K]*sharedCopy{}
		}
		s.Copies[key] = c
	}
	c.users++
	s.mu.Unlock()
	if first {
		s.build(c, build)
	}
	<-c.ready
	release := sync.OnceFunc(func() { s.release(key, c) })
	if c.err != nil {
		release()
		return nil, nil, c.err
	}
	return c, release, nil
}

func (s *SharedCopies[K]) build(c *sharedCopy, build func(http.Header, io.Writer) error) {
	s.building.Lock()
	defer s.building.Unlock()
	defer close(c.ready)
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err == nil {
		err = build(c.Header, w)
	}
	if err == nil {
		err = w.Close()
	}
	c.Packed, c.err = bytes.Clone(packed.Bytes()), err
	s.mu.Lock()
	s.Bytes += len(c.Packed)
	s.mu.Unlock()
}

func (s *SharedCopies[K]) release(key K, c *sharedCopy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.users--; c.users == 0 {
		delete(s.Copies, key)
		s.Bytes -= len(c.Packed)
	}
}

// Reader reads what was written into the copy.
func (c *sharedCopy) Reader() io.Reader {
	plain, err := gzip.NewReader(bytes.NewReader(c.Packed))
	if err != nil {
		return errorReader{err}
	}
	return plain
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// Send answers with the copy: as it is to a client that can decompress it, else decompressed
// piece by piece.
func (c *sharedCopy) Send(w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), c.Header)
	w.Header().Set("Vary", "Accept-Encoding")
	if acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(c.Packed) // the client has gone
		return
	}
	_, _ = io.Copy(w, c.Reader())
}

func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(coding), ";")
		if strings.EqualFold(name, "gzip") && strings.TrimSpace(quality) != "q=0" {
			return true
		}
	}
	return false
}

// Unanswered tells why there is no answer.
func Unanswered(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, ErrCrowded) {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "5")
	}
	http.Error(w, err.Error(), status)
}

// recordAnswer writes what a handler answers. An answer that is no success is an error.
func recordAnswer(h http.Handler, r *http.Request, header http.Header, out io.Writer) error {
	answer := &recorder{header: header, out: out, status: http.StatusOK}
	h.ServeHTTP(answer, r)
	if answer.status != http.StatusOK {
		return errors.New(strings.TrimSpace(answer.fault.String()))
	}
	return nil
}

// recorder is an http.ResponseWriter without a connection.
type recorder struct {
	header http.Header
	out    io.Writer
	status int
	fault  bytes.Buffer // what an answer says that is no success
}

func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) {
	if r.status != http.StatusOK {
		return r.fault.Write(b)
	}
	return r.out.Write(b)
}
