package webserver

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	chunkBytes   = 64 << 10         // an answer is made and written in pieces of this size
	writeTimeout = 60 * time.Second // for one piece
)

// Body returns the content of an answer of size bytes: lines of 16 bytes, each
// the number of the line as 15 hexadecimal digits, the last one cut short. No
// two lines are alike, so a client notices a missing, doubled or moved segment.
func Body(size int64) io.Reader {
	return &body{size: size}
}

const lineBytes = 16

type body struct {
	offset, size int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.offset >= b.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), b.size-b.offset)]
	for n := 0; n < len(p); {
		line := bodyLine(b.offset / lineBytes)
		copied := copy(p[n:], line[b.offset%lineBytes:])
		n += copied
		b.offset += int64(copied)
	}
	return len(p), nil
}

func bodyLine(number int64) (line [lineBytes]byte) {
	const digits = "0123456789abcdef"
	line[lineBytes-1] = '\n'
	for i := lineBytes - 2; i >= 0; i-- {
		line[i] = digits[number&15]
		number >>= 4
	}
	return line
}

// response is an answer to be written.
type response struct {
	code   int
	server string // X-Server
	mime   string
	size   int64
	body   io.Reader // nil: the header alone
	close  bool      // the connection ends after this answer
	http10 bool
}

// writeTo writes the answer. An error means that the client is gone or reads too slowly.
func (r response) writeTo(conn net.Conn) error {
	buffer := r.appendHeader(make([]byte, 0, 512+min(r.size, chunkBytes)))
	for {
		var end error = io.EOF
		if r.body != nil {
			var n int
			n, end = io.ReadFull(r.body, buffer[len(buffer):cap(buffer)])
			buffer = buffer[:len(buffer)+n]
		}
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(buffer); err != nil {
			return err
		}
		if end != nil {
			return nil
		}
		buffer = buffer[:0]
	}
}

func (r response) appendHeader(b []byte) []byte {
	b = fmt.Appendf(b, "HTTP/1.1 %d %s\r\n", r.code, http.StatusText(r.code))
	b = append(b, "Date: "...)
	b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
	b = fmt.Appendf(b, "\r\nX-Server: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n", r.server,
		r.mime, r.size)
	if r.code == http.StatusMethodNotAllowed {
		b = append(b, "Allow: GET, HEAD\r\n"...)
	}
	switch {
	case r.close:
		b = append(b, "Connection: close\r\n"...)
	case r.http10:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	return append(b, "\r\n"...)
}
