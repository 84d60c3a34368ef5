package httpserver

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/monitoring"
)

// Bounds of what the clients of a listener can take from the daemon. The metrics port and the API
// socket have budgets of their own: a full metrics port takes no descriptor from the socket.
const (
	maxSocketConnections  = 128 // of the API socket
	maxMetricsConnections = 128 // of the metrics port
	maxRemoteConnections  = 128 // of the API over TLS
	maxSourceConnections  = 16  // of these from one IPv4 address or one IPv6 /64
	headerTimeout         = 5 * time.Second
	readTimeout           = 30 * time.Second // of a whole request
	answerTimeout         = 30 * time.Second // for a whole answer of the metrics port
	// of one write to the API socket, whose answers may be streams without end
	stallTimeout       = time.Minute
	idleTimeout        = time.Minute // between requests
	maxHeaderBytes     = 16 << 10
	maxStreams         = 32 // of one connection that speaks HTTP/2
	refusalLogInterval = time.Minute
)

// bounds are how much of the daemon the clients of a listener can take.
type bounds struct {
	name      string // of the listener, in metrics and the log
	total     int    // connections
	perSource int    // 0: as many as there are in all
	// After stall a write that does not progress ends its connection; 0: never.
	stall time.Duration
}

// boundedListener bounds connections: in all, and per source. What is too much is closed at once.
type boundedListener struct {
	net.Listener
	bounds
	log *slog.Logger

	mu        sync.Mutex
	open      int
	bySource  map[netip.Prefix]int
	refusals  listenerRefusals
	nextEntry time.Time // of refusals in the log
}

// listenerRefusals counts connections that were closed as soon as they were there.
type listenerRefusals struct{ total, source uint64 }

func newListener(l net.Listener, b bounds, log *slog.Logger) *boundedListener {
	return &boundedListener{Listener: l, bounds: b, log: log, bySource: map[netip.Prefix]int{}}
}

// Accept is net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := sourceOf(c.RemoteAddr())
		if l.admit(source, time.Now()) {
			return &boundedConn{Conn: c, listener: l, source: source}, nil
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			// the kernel keeps nothing of it; without it, it would keep a little
			_ = tcp.SetLinger(0)
		}
		c.Close()
	}
}

// admit takes a place for a connection, if there is one.
func (l *boundedListener) admit(source netip.Prefix, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.perSource > 0 && l.bySource[source] >= l.perSource:
		l.refusals.source++
	case l.open >= l.total:
		l.refusals.total++
	default:
		l.open++
		l.bySource[source]++
		return true
	}
	if now.After(l.nextEntry) {
		l.nextEntry = now.Add(refusalLogInterval)
		l.log.Warn("connections are refused: there are too many", "listener", l.name, "open",
			l.open, "most", l.total,
			"mostPerSource", l.perSource, "source", source, "refusedForSource", l.refusals.source,
			"refusedInAll", l.refusals.total)
	}
	return false
}

func (l *boundedListener) release(source netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.bySource[source]--; l.bySource[source] == 0 {
		delete(l.bySource, source)
	}
}

// use returns how many connections are open, and how many were refused.
func (l *boundedListener) use() (open int, refused listenerRefusals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open, l.refusals
}

// sourceOf is what counts as one source: an IPv4 address or an IPv6 /64; the zero value for a
// Unix socket.
func sourceOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	address := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if address.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(address, bits).Masked()
}

// boundedConn gives its place back when it is closed.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	source   netip.Prefix
	closed   sync.Once
}

// Write is net.Conn. A peer that does not read ends the connection.
func (c *boundedConn) Write(b []byte) (int, error) {
	if c.listener.stall > 0 {
		if err := c.SetWriteDeadline(time.Now().Add(c.listener.stall)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// Close is net.Conn.
func (c *boundedConn) Close() error {
	defer c.closed.Do(func() { c.listener.release(c.source) })
	return c.Conn.Close()
}

// The metrics of listeners.
var (
	listenerOpen = monitoring.New("listener_connections",
		"Open connections to a listener of the agent.", "listener")
	listenerMost = monitoring.New("listener_connections_limit",
		"Connections that a listener of the agent can have.", "listener")
	refusedTotal = monitoring.New("listener_refused_connections_total",
		"Connections that were closed at once because there were too many, in all or from one "+
			"source.", "listener", "limit")
	deniedTotal = monitoring.New("api_denied_requests_total",
		"Requests to the API over TLS that were refused for want of a token that allows them.",
		"reason")
)

// Collect sends the metrics of the listeners: how full they are. It is for any number of
// goroutines, and sends none if s is nil.
func (s *Servers) Collect(out chan<- prometheus.Metric) {
	if s == nil {
		return
	}
	if s.gate != nil {
		for reason, n := range s.gate.Refusals() {
			out <- prometheus.MustNewConstMetric(deniedTotal, prometheus.CounterValue, float64(n),
				string(reason))
		}
	}
	for _, l := range []*boundedListener{s.socket, s.metrics, s.remote} {
		if l == nil {
			continue
		}
		open, refused := l.use()
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v uint64, more ...string) {
			out <- prometheus.MustNewConstMetric(d, kind, float64(v),
				append([]string{l.name}, more...)...)
		}
		send(listenerOpen, prometheus.GaugeValue, uint64(open))
		send(listenerMost, prometheus.GaugeValue, uint64(l.total))
		send(refusedTotal, prometheus.CounterValue, refused.total, "total")
		send(refusedTotal, prometheus.CounterValue, refused.source, "source")
	}
}
