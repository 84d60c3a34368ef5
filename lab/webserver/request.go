package webserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// request line and header fields, as Apache's limit of one line
	maxHeaderBytes = 8 << 10
	maxDemand      = time.Hour         // CPU time of one request
	maxBodyBytes   = int64(1) << 30    // of an answer
	defaultBytes   = 16                // of an answer whose size is not asked for
	drawn          = time.Duration(-1) // demand of a request that states none
)

// request is what a client asks for.
type request struct {
	status bool          // GET /status
	head   bool          // HEAD: answer without a body
	http10 bool          // a client that must be told of keep-alive
	close  bool          // the client wants no further answer on this connection
	demand time.Duration // CPU time, or drawn
	bytes  int64         // size of the answer's body
}

// refusal is a request that is answered with an error.
type refusal struct {
	code   int
	reason string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", r.code, http.StatusText(r.code), r.reason)
}

// requestReader reads requests off a connection.
type requestReader struct {
	header limitedHeader
	buffer *bufio.Reader
}

func newRequestReader(conn io.Reader) *requestReader {
	r := &requestReader{header: limitedHeader{source: conn}}
	r.buffer = bufio.NewReader(&r.header)
	return r
}

// next returns the next request. An error is a *refusal if it can be answered,
// else the reason why the connection gave no request.
func (r *requestReader) next() (request, error) {
	r.header.begin()
	parsed, err := http.ReadRequest(r.buffer)
	switch {
	case err == nil:
		return interpret(parsed)
	case r.header.failure != nil:
		return request{}, r.header.failure
	case !r.header.exceeded:
		return request{}, &refusal{http.StatusBadRequest, err.Error()}
	case !r.header.sawLine:
		return request{}, &refusal{http.StatusRequestURITooLong,
			fmt.Sprintf("the request line exceeds %d bytes", maxHeaderBytes)}
	default:
		return request{}, &refusal{http.StatusRequestHeaderFieldsTooLarge,
			fmt.Sprintf("the header exceeds %d bytes", maxHeaderBytes)}
	}
}

// interpret checks what HTTP leaves to the server, and reads the parameters.
func interpret(r *http.Request) (request, error) {
	switch {
	case r.ProtoMajor != 1:
		return request{}, &refusal{http.StatusHTTPVersionNotSupported, "HTTP/1.0 and HTTP/1.1 only"}
	case r.ProtoAtLeast(1, 1) && r.Host == "":
		return request{}, &refusal{http.StatusBadRequest, "the Host header is missing"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return request{}, &refusal{http.StatusMethodNotAllowed, "GET and HEAD only"}
	case r.ContentLength != 0:
		return request{}, &refusal{http.StatusBadRequest, "a request body is not accepted"}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return request{}, &refusal{http.StatusBadRequest, err.Error()}
	}
	req := request{
		status: r.URL.Path == "/status",
		head:   r.Method == http.MethodHead,
		http10: !r.ProtoAtLeast(1, 1),
		close:  r.Close,
	}
	if req.demand, err = parseDemand(query, r.Header); err != nil {
		return request{}, err
	}
	if req.bytes, err = parseBytes(query); err != nil {
		return request{}, err
	}
	return req, nil
}

func parseDemand(query url.Values, header http.Header) (time.Duration, error) {
	text := query.Get("ms")
	if text == "" {
		text = header.Get("X-Service-Time")
	}
	if text == "" {
		return drawn, nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	limit := float64(maxDemand / time.Millisecond)
	if err != nil || !(ms >= 0 && ms <= limit) {
		return 0, &refusal{http.StatusBadRequest,
			fmt.Sprintf("service time %q: it must be a number of milliseconds from 0 to %g", text,
				limit)}
	}
	return time.Duration(math.Round(ms * float64(time.Millisecond))), nil
}

func parseBytes(query url.Values) (int64, error) {
	text := query.Get("bytes")
	if text == "" {
		return defaultBytes, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxBodyBytes {
		return 0, &refusal{http.StatusBadRequest,
			fmt.Sprintf("bytes %q: it must be a whole number from 0 to %d", text, maxBodyBytes)}
	}
	return n, nil
}

var errHeaderTooLong = errors.New("request header too long")

// limitedHeader passes on at most maxHeaderBytes per request. What the buffer
// above it has read ahead counts for the request during which it was read.
type limitedHeader struct {
	source   io.Reader
	left     int
	sawLine  bool  // a line has ended within the limit
	exceeded bool  // more was asked for
	failure  error // of the source
}

func (l *limitedHeader) begin() {
	*l = limitedHeader{source: l.source, left: maxHeaderBytes}
}

func (l *limitedHeader) Read(p []byte) (int, error) {
	if l.left == 0 {
		l.exceeded = true
		return 0, errHeaderTooLong
	}
	n, err := l.source.Read(p[:min(len(p), l.left)])
	l.left -= n
	l.sawLine = l.sawLine || bytes.IndexByte(p[:n], '\n') >= 0
	l.failure = err
	return n, err
}
