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
	"os"
	"strings"
	"time"

	"sextant/config"
)

// maxAnswer bounds the bytes of an answer in which its text is looked for.
const maxAnswer = 256 << 10

// page is a connection over which a page is asked for, without what a transport keeps beside it.
type page struct {
	*connection
	secure   *tls.Conn // over the connection; nil: without TLS
	question []byte
	asked    bool // before
}

// openPage connects. Redirections are answers like others.
func (t Target) openPage(ctx context.Context, c *config.Check, keep bool) (line, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		string(c.Kind)+"://"+t.Address.String()+c.Path, nil)
	if err != nil {
		return nil, err
	}
	request.Host, request.Close = c.Host, !keep
	request.Header.Set("User-Agent", "sextant-check")
	var question bytes.Buffer
	if err := request.Write(&question); err != nil {
		return nil, err
	}
	conn, err := t.connect(ctx)
	if err != nil {
		return nil, explain(ctx, "get "+c.Path, err)
	}
	p := &page{connection: conn, question: question.Bytes()}
	if c.Kind == config.CheckHTTPS {
		name := c.Host
		if name == "" {
			name = t.Address.Addr().String()
		}
		p.secure = tls.Client(conn, &tls.Config{InsecureSkipVerify: c.Insecure, ServerName: name})
		if err := p.secure.HandshakeContext(ctx); err != nil {
			p.Close()
			return nil, explain(ctx, "get "+c.Path, cause(err))
		}
	}
	return p, nil
}

// stream is what the question goes into.
func (p *page) stream() net.Conn {
	if p.secure != nil {
		return p.secure
	}
	return p.connection
}

// ask is that of [line].
func (p *page) ask(ctx context.Context, c *config.Check, keep bool) (kept bool, err error) {
	again := p.asked
	if p.asked = true; again {
		if !p.quiet() {
			return false, errStale
		}
		p.again = true
		p.watch(ctx)
	}
	_, err = p.stream().Write(p.question)
	if err != nil {
		return false, p.broken(ctx, c, again, err)
	}
	answer := &io.LimitedReader{R: p.stream(), N: maxAnswer}
	from := bufio.NewReaderSize(answer, answerBuffer)
	response, err := readResponse(from)
	switch {
	case err != nil && answer.N <= 0:
		return false, fmt.Errorf("get %s: the header of the answer has more than %d bytes", c.Path,
			maxAnswer)
	case err != nil:
		return false, p.broken(ctx, c, again && answer.N == maxAnswer, err)
	case again && response.StatusCode == http.StatusRequestTimeout:
		return false, errStale // what servers say when they close a connection that was idle
	}
	answer.N = 2 * maxAnswer // the body's own limit comes first
	if err := judgeAnswer(ctx, c, response); err != nil || !keep {
		return false, err
	}
	return ends(response) && from.Buffered() == 0 && p.unwatch() && p.silent(), nil
}

// broken is why there is no answer. That a connection is closed on which others were asked is
// none, unless time was over.
func (p *page) broken(ctx context.Context, c *config.Check, again bool, err error) error {
	if again && ctx.Err() == nil {
		return errStale
	}
	return explain(ctx, "get "+c.Path, cause(err))
}

// ends reads an answer to its end, if it has one before that of the connection.
func ends(r *http.Response) bool {
	if r.Close || r.ProtoMajor != 1 || r.StatusCode == http.StatusSwitchingProtocols {
		return false
	}
	_, err := io.CopyN(io.Discard, r.Body, maxAnswer)
	return err == io.EOF
}

// silent says whether nothing that was received with the answer is left. The socket's own bytes are
// for quiet.
func (p *page) silent() bool {
	if p.secure == nil {
		return true
	}
	_ = p.SetReadDeadline(past) // for TLS, which so decrypts what it has
	_, err := p.secure.Read(make([]byte, 1))
	return errors.Is(err, os.ErrDeadlineExceeded) && p.SetReadDeadline(time.Time{}) == nil
}

const (
	answerBuffer  = 1 << 10
	informational = 5 // answers of which another one follows, as many as a transport takes
)

// readResponse reads the answer to a GET that is none of those that announce another one.
func readResponse(from *bufio.Reader) (*http.Response, error) {
	for range informational {
		response, err := http.ReadResponse(from, nil)
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

// explain tells a time limit from other reasons.
func explain(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, errTimeout)
	}
	return fmt.Errorf("%s: %w", what, err)
}
