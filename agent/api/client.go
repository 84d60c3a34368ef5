package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"
)

// Client talks to an agent. A call ends with its context; the client itself has no time limit.
type Client struct {
	daemon string // agent, or another one whose API is served alike
	start  string // command that starts it
	socket string // or the address of one elsewhere
	base   string // before all paths
	token  string // "": none is needed
	http   *http.Client
	breaks bool          // writes may end connections
	within time.Duration // that a call takes; 0: as its context says
	broken error         // why no call can be made
}

// NewClient makes a client for the agent behind a Unix socket. It connects when it is used.
func NewClient(socket string) *Client {
	return NewClientOf("agent", "sextant agent -f FILE", socket)
}

// NewClientOf makes a client for another daemon whose API is served as the agent's, and the command
// that starts it.
func NewClientOf(daemon, start, socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	transport := &http.Transport{DialContext: dial}
	return &Client{daemon: daemon, start: start, socket: socket, base: "http://agent",
		http: &http.Client{Transport: transport}}
}

// Forward answers requests by those of an agent: a proxy. A role other than "" is all that they may
// do.
func (c *Client) Forward(role Permission) http.Handler {
	if c.broken != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeError(w, c.broken)
		})
	}
	return &httputil.ReverseProxy{
		Transport: c.http.Transport, FlushInterval: -1, // streams are sent on at once
		Rewrite: func(r *httputil.ProxyRequest) {
			if target, err := url.Parse(c.base); err == nil {
				r.SetURL(target)
			}
			if c.token != "" {
				r.Out.Header.Set("Authorization", "Bearer "+c.token)
			}
			if role != "" {
				r.Out.Header.Set(RoleHeader, string(role))
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			writeError(w, c.explain(r.Context(), err))
		},
	}
}

// Put says which service or backend a PUT may meet.
type Put int

// The kinds of PUT.
const (
	Create Put = iota // refused with Conflict if it is there
	Update            // refused with NotFound if it is not
)

func (p Put) header() string { return [...]string{"If-None-Match", "If-Match"}[p] }

// Status returns what runs.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, request{path: "/v1/status"})
}

// Connections returns the open connections that a backend still has, as its host's agent tells.
func (c *Client) Connections(ctx context.Context, service,
	backend string) (BackendConnections, error) {
	return ask[BackendConnections](ctx, c,
		request{path: backendPath(service, backend) + "/connections"})
}

// SIDs returns the local SIDs.
func (c *Client) SIDs(ctx context.Context) ([]SID, error) {
	return items[SID](ctx, c, request{path: "/v1/sids"})
}

// Maps returns the tables that the kernel holds.
func (c *Client) Maps(ctx context.Context) ([]Map, error) {
	return items[Map](ctx, c, request{path: "/v1/maps"})
}

// Counters returns what became of the packets, by role.
func (c *Client) Counters(ctx context.Context) ([]Counters, error) {
	return items[Counters](ctx, c, request{path: "/v1/counters"})
}

// Config returns the running configuration as a node file in YAML.
func (c *Client) Config(ctx context.Context, secrets bool) ([]byte, error) {
	return c.text(ctx, request{path: "/v1/config", query: flag("secrets", secrets)})
}

// text returns the answer to a request as it is.
func (c *Client) text(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	response, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return text, c.explain(ctx, err)
}

// MetricsText returns the metrics as Prometheus reads them.
func (c *Client) MetricsText(ctx context.Context) ([]byte, error) {
	return c.text(ctx, request{path: "/metrics"})
}

// PutService creates or changes a service. The role may be "" on a node that has only one.
func (c *Client) PutService(ctx context.Context, put Put, name string, role Role,
	spec ServiceSpec) (Changes, error) {
	r := request{method: http.MethodPut, path: servicePath(name),
		query: url.Values{"role": {string(role)}},
		put:   put.header()}
	return c.write(ctx, r, spec)
}

// DeleteService deletes a service and its backends.
func (c *Client) DeleteService(ctx context.Context, name string, role Role) (Changes, error) {
	r := request{method: http.MethodDelete, path: servicePath(name),
		query: url.Values{"role": {string(role)}}}
	return ask[Changes](ctx, c, r)
}

// PutBackend creates or changes a backend of a service.
func (c *Client) PutBackend(ctx context.Context, put Put, service, name string,
	spec BackendSpec) (Changes, error) {
	return c.write(ctx, request{method: http.MethodPut, path: backendPath(service, name),
		put: put.header()}, spec)
}

// DeleteBackend deletes a backend of a service.
func (c *Client) DeleteBackend(ctx context.Context, service, name string) (Changes, error) {
	return ask[Changes](ctx, c, request{method: http.MethodDelete,
		path: backendPath(service, name)})
}

// Diff returns what applying a node file would change. The file's name is used in errors.
func (c *Client) Diff(ctx context.Context, file string, text []byte) (Changes, error) {
	return ask[Changes](ctx, c, request{method: http.MethodPost, path: "/v1/diff",
		query: url.Values{"file": {file}},
		body:  text})
}

// BreakingConnections returns a client of the same agent whose writes may end connections.
func (c *Client) BreakingConnections() *Client {
	breaking := *c
	breaking.breaks = true
	return &breaking
}

// EachWithin returns a client of the same agent whose requests, other than for streams, end after a
// time. A long list takes many requests.
func (c *Client) EachWithin(limit time.Duration) *Client {
	bounded := *c
	bounded.within = limit
	return &bounded
}

func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.within == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.within)
}

// Apply makes a node file the running configuration. With dryRun it only checks.
func (c *Client) Apply(ctx context.Context, file string, text []byte,
	dryRun bool) (Changes, error) {
	query := flag("dryRun", dryRun)
	query.Set("file", file)
	return ask[Changes](ctx, c, request{method: http.MethodPost, path: "/v1/apply", query: query,
		body: text})
}

// Monitor calls each with one sample now and one per interval, until it returns an error or the
// context ends.
func (c *Client) Monitor(ctx context.Context, interval time.Duration,
	each func(Sample) error) error {
	query := url.Values{"intervalMs": {strconv.FormatInt(interval.Milliseconds(), 10)}}
	response, err := c.send(ctx, request{path: "/v1/monitor", query: query})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w any more: it ended the stream; see its log", ErrUnreachable)
		}
		if err != nil {
			return c.explain(ctx, err)
		}
		var sample struct {
			Sample
			errorBody
		}
		if err := json.Unmarshal(line, &sample); err != nil {
			return fmt.Errorf("read a sample: %w; use the sextant of the agent's version", err)
		}
		if sample.Error != nil {
			return sample.Error
		}
		if err := each(sample.Sample); err != nil {
			return err
		}
	}
}

// items asks for a list.
func items[T any](ctx context.Context, c *Client, r request) ([]T, error) {
	list, err := ask[List[T]](ctx, c, r)
	return list.Items, err
}

// request is a call before it is sent.
type request struct {
	method string // "": GET
	path   string // escaped
	query  url.Values
	put    string // header that restricts a PUT
	body   []byte
}

func servicePath(name string) string { return "/v1/services/" + url.PathEscape(name) }

func backendPath(service, name string) string {
	return servicePath(service) + "/backends/" + url.PathEscape(name)
}

func flag(name string, on bool) url.Values {
	if on {
		return url.Values{name: {"1"}}
	}
	return url.Values{}
}

func (c *Client) write(ctx context.Context, r request, spec any) (Changes, error) {
	body, err := json.Marshal(spec)
	if err != nil {
		return Changes{}, err
	}
	r.body = body
	return ask[Changes](ctx, c, r)
}

// Ask calls a path of a daemon's API, and reads the JSON that answers it. A body that is not nil is
// sent as JSON.
func Ask[T any](ctx context.Context, c *Client, method, path string, query url.Values,
	body any) (T, error) {
	r := request{method: method, path: path, query: query}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			var none T
			return none, err
		}
		r.body = text
	}
	return ask[T](ctx, c, r)
}

// ask sends a request and reads the JSON that answers it.
func ask[T any](ctx context.Context, c *Client, r request) (T, error) {
	var value T
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	response, err := c.send(ctx, r)
	if err != nil {
		return value, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&value); err != nil {
		return value, c.explain(ctx, err)
	}
	return value, nil
}

// send returns the response to a request that was not refused.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	if c.breaks && r.method != "" {
		query := url.Values{breakFlag: {"1"}}
		maps.Copy(query, r.query)
		r.query = query
	}
	target := c.base + r.path + "?" + r.query.Encode()
	out, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.put != "" {
		out.Header.Set(r.put, "*")
	}
	if c.token != "" {
		out.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(out)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	var body errorBody
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil || body.Error == nil {
		return nil, fmt.Errorf("the %s answered %s; use the sextant of the %s's version", c.daemon,
			response.Status, c.daemon)
	}
	return nil, body.Error
}

// explain says why there is no answer and what would bring one.
func (c *Client) explain(ctx context.Context, err error) error {
	var operation *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer at %s in time; raise --timeout, or see the %s's log",
			c.unreachable(), c.socket, c.daemon)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s may not be opened by this user; run sextant as root",
			c.unreachable(), c.socket)
	case c.untrusted(err) != nil:
		return c.untrusted(err)
	case errors.As(err, &operation) && c.token != "":
		return fmt.Errorf("%w at %s (%w); see that it runs, with %s", c.unreachable(), c.socket,
			operation.Err, c.start)
	case errors.As(err, &operation):
		return fmt.Errorf("%w at %s (%w); start it with: %s", c.unreachable(), c.socket,
			operation.Err, c.start)
	}
	return fmt.Errorf("%w at %s: %w; see its log", c.unreachable(), c.socket, err)
}

// unreachable is ErrUnreachable, which names the daemon.
func (c *Client) unreachable() error {
	if c.daemon == "agent" {
		return ErrUnreachable
	}
	return unreachable(c.daemon)
}

// unreachable is ErrUnreachable of a daemon that is no agent.
type unreachable string

// Error names the daemon.
func (u unreachable) Error() string { return "the " + string(u) + " is not reachable" }

// Is tells that it is ErrUnreachable.
func (u unreachable) Is(target error) bool { return target == ErrUnreachable }
