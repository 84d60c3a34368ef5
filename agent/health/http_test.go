package health

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// Whatever a server answers is an answer of its own or an error, and never one that announces
// another.
func FuzzReadResponse(f *testing.F) {
	for _, seed := range []string{"HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n" +
		"HTTP/1.1 503 no\r\nContent-Length: 2\r\n\r\nno", "HTTP/1.1 101 Switching\r\n\r\n",
		strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 6), "HTTP/1.0 200 OK\r\nX\r\n\r\n", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		response, err := readResponse(bufio.NewReader(strings.NewReader(text)))
		announces := err == nil && response.StatusCode < http.StatusOK && response.StatusCode != 101
		if announces || (err == nil) != (response != nil) {
			t.Fatalf("%q: %+v, %v", text, response, err)
		}
	})
}

func TestReadResponse(t *testing.T) {
	const early = "HTTP/1.1 103 Early Hints\r\n\r\n"
	for text, want := range map[string]int{
		"HTTP/1.1 204 No Content\r\n\r\n":                   204,
		early + early + "HTTP/1.1 500 no\r\n\r\n":           500,
		strings.Repeat(early, 5) + "HTTP/1.1 200 k\r\n\r\n": 0, // too many
		early: 0,
	} {
		response, err := readResponse(bufio.NewReader(strings.NewReader(text)))
		if got := response; (err != nil) != (want == 0) || err == nil && got.StatusCode != want {
			t.Errorf("%q: %+v, %v; want %d", text, response, err, want)
		}
	}
}
