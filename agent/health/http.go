package health

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"sextant/config"
)

// maxAnswer bounds the bytes of an answer in which its text is looked for.
const maxAnswer = 256 << 10

func probeHTTP(ctx context.Context, c *config.Check, t Target) error {
	transport := t.transport()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: c.Insecure, ServerName: c.Host}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		string(c.Kind)+"://"+t.Address.String()+c.Path, nil)
	if err != nil {
		return err
	}
	request.Host = c.Host
	request.Header.Set("User-Agent", "sextant-check")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return explain(ctx, "get "+c.Path, err)
	}
	defer response.Body.Close()
	if response.StatusCode < c.Status.First || response.StatusCode > c.Status.Last {
		return fmt.Errorf("get %s: status %d, not %s", c.Path, response.StatusCode, c.Status)
	}
	if c.Body == "" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return explain(ctx, "read "+c.Path, err)
	}
	if !strings.Contains(string(text), c.Body) {
		return fmt.Errorf("get %s: %q is not in the answer's first %d bytes", c.Path, c.Body,
			len(text))
	}
	return nil
}

// transport makes one for a single request; redirections are answers like others.
func (t Target) transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context,
			_, _ string) (net.Conn, error) {
			return t.connect(ctx)
		},
		DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: maxAnswer,
	}
}

// explain tells a time limit from other reasons.
func explain(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, errTimeout)
	}
	return fmt.Errorf("%s: %w", what, err)
}
