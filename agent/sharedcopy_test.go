package agent

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"sextant/agent/metrics"
)

// All who ask at the same time share one copy, which is gone with the last of them.
func TestSharedCopiesAreBuiltOnce(t *testing.T) {
	var shared metrics.SharedCopies[string]
	built := 0
	build := func(_ http.Header, out io.Writer) error {
		built++ // one at a time
		_, err := out.Write(bytes.Repeat([]byte("chain"), 100_000))
		return err
	}
	first, release, err := shared.Take("a", build)
	if err != nil {
		t.Fatal(err)
	}
	var users sync.WaitGroup
	for range 50 {
		users.Go(func() {
			c, release, err := shared.Take("a", build)
			if err != nil || c != first {
				t.Errorf("another copy, or %v", err)
				return
			}
			plain, err := io.ReadAll(c.Reader())
			if err != nil || len(plain) != 500_000 {
				t.Errorf("read %d bytes, %v", len(plain), err)
			}
			release()
		})
	}
	users.Wait()
	if built != 1 || shared.Bytes != len(first.Packed) {
		t.Errorf("built %d times; %d bytes are held, want %d", built, shared.Bytes,
			len(first.Packed))
	}
	release()
	release() // once more is as once
	if shared.Bytes != 0 || len(shared.Copies) != 0 {
		t.Errorf("%d bytes, %d copies are held by nobody", shared.Bytes, len(shared.Copies))
	}
}

// What can't be built is told to all who wait, and leaves nothing; without room there is no copy.
func TestSharedCopiesThatFail(t *testing.T) {
	var shared metrics.SharedCopies[string]
	broken := errors.New("broken")
	if _, _, err := shared.Take("a",
		func(http.Header, io.Writer) error { return broken }); err != broken {
		t.Errorf("error %v", err)
	}
	if shared.Bytes != 0 || len(shared.Copies) != 0 {
		t.Errorf("%d bytes, %d copies are left", shared.Bytes, len(shared.Copies))
	}
	shared.Bytes = metrics.MaxSharedCopies
	if _, _, err := shared.Take("a", nil); err != metrics.ErrCrowded {
		t.Errorf("without room: %v", err)
	}
	w := httptest.NewRecorder()
	metrics.Unanswered(w, metrics.ErrCrowded)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("answered %d, %v", w.Code, w.Header())
	}
}

// A client gets what it can read: compressed or not, the same text.
func TestSharedCopyIsSentAsClientsReadIt(t *testing.T) {
	var shared metrics.SharedCopies[int]
	c, release, err := shared.Take(1, func(h http.Header, out io.Writer) error {
		h.Set("Content-Type", "text/x")
		_, err := io.WriteString(out, "the text")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for accept, packed := range map[string]bool{"": false, "gzip": true, "br, GZIP;q=0.5": true,
		"gzip;q=0": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		c.Send(w, r)
		var body io.Reader = w.Body
		if packed {
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Errorf("%q: %v", accept, err)
				continue
			}
		}
		text, err := io.ReadAll(body)
		if string(text) != "the text" || err != nil ||
			(w.Header().Get("Content-Encoding") == "gzip") != packed ||
			w.Header().Get("Content-Type") != "text/x" {
			t.Errorf("%q: %q, %v, %v", accept, text, err, w.Header())
		}
	}
}
