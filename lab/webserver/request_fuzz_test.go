package webserver

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzRequest reads requests from arbitrary bytes: each is sound or refused
// with a status that HTTP has for it, and the reader comes to an end.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /?ms=12.5&bytes=1000 HTTP/1.1\r\nHost: a\r\n\r\nGET /status HTTP/1.1\r\nHost: " +
			"a\r\n\r\n",
		"HEAD / HTTP/1.0\r\nConnection: keep-alive\r\nX-Service-Time: 3\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	answerable := map[int]bool{400: true, 405: true, 414: true, 431: true, 505: true}
	f.Fuzz(func(t *testing.T, stream []byte) {
		reader := newRequestReader(bytes.NewReader(stream))
		for requests := 0; ; requests++ {
			if requests > len(stream) {
				t.Fatalf("%d requests out of %d bytes", requests, len(stream))
			}
			req, err := reader.next()
			var refused *refusal
			switch {
			case err == nil:
				if req.bytes < 0 || req.bytes > maxBodyBytes || req.demand < drawn ||
					req.demand > maxDemand {
					t.Fatalf("request out of bounds: %+v", req)
				}
				continue
			case errors.As(err, &refused):
				if !answerable[refused.code] || refused.reason == "" {
					t.Fatalf("refused with %v", refused)
				}
			case !errors.Is(err, io.EOF):
				t.Fatalf("neither refused nor at the end: %v", err)
			}
			return
		}
	})
}
