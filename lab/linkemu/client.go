package linkemu

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"sextant/lab/netem"
)

// Client talks to a process of [Run].
type Client struct {
	socket string
	http   http.Client
}

// NewClient talks to the process that listens at a Unix socket.
func NewClient(socket string) *Client {
	c := &Client{socket: socket}
	c.http.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}
	return c
}

// Links tells of all links, in the order of the configuration.
func (c *Client) Links(ctx context.Context) ([]LinkStatus, error) {
	answer, err := c.ask(ctx, http.MethodGet, "/links", nil)
	if err != nil {
		return nil, err
	}
	var links []LinkStatus
	if err := json.Unmarshal(answer, &links); err != nil {
		return nil, fmt.Errorf("read what the wire says: %w", err)
	}
	return links, nil
}

// Set changes what happens to packets that come from now on from one side, 0 or 1, of a link. If
// carrier is not nil, it takes the carrier of that side's node away, or gives it back.
func (c *Client) Set(ctx context.Context, link, side int, profile netem.Profile,
	carrier *bool) error {
	body, err := json.Marshal(change{profile, carrier})
	if err != nil {
		return fmt.Errorf("encode a change: %w", err)
	}
	_, err = c.ask(ctx, http.MethodPut, fmt.Sprintf("/links/%d/%d", link, side), body)
	return err
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://wire"+path,
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the wire at %s: %w; its process must run: \"sextant lab list\"",
			c.socket, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the wire at %s: %w", c.socket, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("the wire at %s says: %s", c.socket,
			strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
