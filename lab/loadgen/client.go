package loadgen

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sextant/sim/workload"
)

const lingerTimeout = time.Second // for the server to close a connection that has served

// client sends HTTP/1.1 requests, each on a connection of its own. It does
// without http.Transport, whose goroutines and channels per connection cost
// half as much again as all the rest.
type client struct {
	target  netip.AddrPort
	host    string // value of the Host header
	path    string // with its query, if any
	query   string // what begins a further query parameter: "?" or "&"
	readers sync.Pool
}

// newSender makes what sends the requests of a load: a client of the target, and addresses to send
// from.
func newSender(ctx context.Context, target string,
	prefixes []netip.Prefix) (*client, *sources, error) {
	c, err := newClient(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	s, err := newSources(prefixes, c.target.Addr())
	return c, s, err
}

// newClient resolves the host of an http URL, once.
func newClient(ctx context.Context, target string) (*client, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("loadgen: %w", err)
	}
	if u.Scheme != "http" || u.Hostname() == "" {
		return nil, fmt.Errorf("loadgen: URL %q must begin with http:// and a host", target)
	}
	address, err := resolve(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("loadgen: URL %q: %w", target, err)
	}
	c := &client{target: address, host: u.Host, path: u.RequestURI(), query: "?"}
	if u.RawQuery != "" {
		c.query = "&"
	}
	c.readers.New = func() any { return bufio.NewReader(nil) }
	return c, nil
}

func resolve(ctx context.Context, u *url.URL) (netip.AddrPort, error) {
	service := cmp.Or(u.Port(), "80")
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("port %q: %w", service, err)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(addresses[0].Unmap(), uint16(port)), nil
}

// pathOf returns the path of a request: its own, or that of the URL, with the CPU time that it asks
// for in the notation of package emulate.
func (c *client) pathOf(r workload.Request) string {
	if r.Path != "" {
		return r.Path
	}
	if r.Service == 0 {
		return c.path
	}
	return c.pathWith(r.Service)
}

func (c *client) pathWith(service time.Duration) string {
	ms := strconv.FormatFloat(float64(service)/float64(time.Millisecond), 'f', -1, 64)
	return c.path + c.query + "ms=" + ms
}

// answer is what became of a request.
type answer struct {
	server string    // value of X-Server, if any
	at     time.Time // when its last byte had come
	err    error
}

// get fetches path from the source address (any if zero) until the deadline and
// writes the body to sink. The end of ctx ends it too.
func (c *client) get(ctx context.Context, source netip.Addr, path string, deadline time.Time,
	sink io.Writer) answer {
	conn, err := c.dial(ctx, source, deadline)
	if err != nil {
		return answer{err: err}
	}
	defer conn.Close()
	conn.SetDeadline(deadline)
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	request := "GET " + path + " HTTP/1.1\r\nHost: " + c.host +
		"\r\nUser-Agent: sextant\r\nAccept: */*\r\nConnection: close\r\n\r\n"
	if _, err = io.WriteString(conn, request); err != nil {
		return answer{err: from(conn, err)}
	}
	got := c.receive(conn, sink)
	if got.err != nil {
		got.err = from(conn, got.err)
	}
	return got
}

// from says which connection an error is of, so that it can be found in captured packets.
func from(conn net.Conn, err error) error {
	return fmt.Errorf("from %s: %w", conn.LocalAddr(), err)
}

func (c *client) receive(conn net.Conn, sink io.Writer) answer {
	reader := c.readers.Get().(*bufio.Reader)
	defer c.readers.Put(reader)
	reader.Reset(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return answer{err: fmt.Errorf("read the answer: %w", err)}
	}
	if response.StatusCode != http.StatusOK {
		return answer{err: statusError(response.StatusCode)}
	}
	if _, err := io.Copy(sink, response.Body); err != nil {
		return answer{err: fmt.Errorf("read the body: %w", err)}
	}
	at := time.Now()
	// Leave the first close to the server, as it was asked for, so that it is
	// the server who keeps the connection in time-wait. Whatever comes of that,
	// the answer is complete.
	conn.SetReadDeadline(at.Add(lingerTimeout))
	reader.ReadByte()
	return answer{server: response.Header.Get("X-Server"), at: at}
}

func (c *client) dial(ctx context.Context, source netip.Addr,
	deadline time.Time) (net.Conn, error) {
	dialer := net.Dialer{Deadline: deadline, KeepAlive: -1}
	if source.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
		dialer.Control = bindWithoutPort
	}
	return dialer.DialContext(ctx, "tcp", c.target.String())
}

// bindWithoutPort leaves the choice of the port to connect, which may use the
// same port towards other addresses; bind would take it for this socket alone.
func bindWithoutPort(_, _ string, conn syscall.RawConn) error {
	var failure error
	err := conn.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	})
	if err != nil {
		return err
	}
	return failure
}
