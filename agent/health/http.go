package health

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		string(c.Kind)+"://"+t.Address.String()+c.Path, nil)
	if err != nil {
		return err
	}
	request.Host, request.Close = c.Host, true
	request.Header.Set("User-Agent", "sextant-check")
	if c.Kind == config.CheckHTTP {
		return probePlain(ctx, c, t, request)
	}
	transport := t.transport()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: c.Insecure, ServerName: c.Host}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return explain(ctx, "get "+c.Path, err)
	}
	defer response.Body.Close()
	return judgeAnswer(ctx, c, response)
}

// probePlain asks without TLS, and so without what a transport keeps beside the connection.
func probePlain(ctx context.Context, c *config.Check, t Target, request *http.Request) error {
	conn, err := t.connect(ctx)
	if err != nil {
		return explain(ctx, "get "+c.Path, err)
	}
	defer conn.Close()
	var question bytes.Buffer
	if err := request.Write(&question); err != nil {
		return err
	}
	if _, err := conn.Write(question.Bytes()); err != nil {
		return explain(ctx, "get "+c.Path, cause(err))
	}
	answer := &io.LimitedReader{R: conn, N: maxAnswer}
	response, err := readResponse(bufio.NewReaderSize(answer, answerBuffer), request)
	switch {
	case err != nil && answer.N <= 0:
		return fmt.Errorf("get %s: the header of the answer has more than %d bytes", c.Path,
			maxAnswer)
	case err != nil:
		return explain(ctx, "get "+c.Path, cause(err))
	}
	answer.N = 2 * maxAnswer // the body's own limit comes first
	return judgeAnswer(ctx, c, response)
}

const (
	answerBuffer  = 1 << 10
	informational = 5 // answers of which another one follows, as many as a transport takes
)

// readResponse reads the answer that is none of those that announce another one.
func readResponse(from *bufio.Reader, request *http.Request) (*http.Response, error) {
	for range informational {
		response, err := http.ReadResponse(from, request)
		if err != nil || response.StatusCode >= http.StatusOK ||
			response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
	}
	return nil, errors.New("too many informational answers")
}

func judgeAnswer(ctx context.Context, c *config.Check, response *http.Response) error {
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
