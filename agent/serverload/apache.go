package serverload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// apache is the status page of an Apache HTTP server for programs (mod_status, "?auto"), which
// shows its scoreboard.
type apache struct {
	url    string
	client *http.Client
}

func newApache(url string) *apache {
	return &apache{url: url, client: &http.Client{Transport: &http.Transport{
		DialContext:       (&net.Dialer{KeepAlive: -1}).DialContext,
		DisableKeepAlives: true, // a connection that is kept would occupy a worker
		Proxy:             nil,
	}}}
}

// statusBytes is how much of the page is read.
const statusBytes = 64 << 10

// busy returns how many workers serve other requests.
func (a *apache) busy(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
	if err != nil {
		return 0, fmt.Errorf("ask %s how busy Apache is: %w", a.url, err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("ask how busy Apache is: %w; is mod_status loaded and its page "+
			"allowed from this machine?", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("ask %s how busy Apache is: %s; is mod_status loaded and its page "+
			"allowed from this machine?", a.url,
			response.Status)
	}
	workers, err := parseStatus(io.LimitReader(response.Body, statusBytes))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", a.url, err)
	}
	return max(workers-1, 0), nil // one of them wrote this page
}

// parseStatus finds the line "BusyWorkers: 3".
func parseStatus(r io.Reader) (int, error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		text, found := strings.CutPrefix(lines.Text(), "BusyWorkers: ")
		if !found {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
		if err != nil {
			return 0, fmt.Errorf("busy workers %q are no number", text)
		}
		return int(n), nil
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, fmt.Errorf(`it has no line "BusyWorkers:"; the URL must end with ?auto`)
}

// askTimeout is for one answer: a server with all workers busy does not answer soon.
const askTimeout = 2 * time.Second
