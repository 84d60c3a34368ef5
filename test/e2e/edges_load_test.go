package e2e_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lab/webserver"
)

// Load of each service.
const (
	longConnections = 24 // that last as long as the test
	shortWorkers    = 2  // each has one short connection after the other
	downloadWorkers = 8  // each fetches one document after the other
	downloadBytes   = 250_000
	pause           = 40 * time.Millisecond // of a connection, between two words
	edgesPatience   = 30 * time.Second      // after which a connection that says nothing is lost
)

// load is what a client does with one service, and what became of that.
type load struct {
	edges                  *edges
	service                string
	long, short, downloads atomic.Int64 // connections that have begun
	longLost, shortLost    atomic.Int64
	downloadsLost          atomic.Int64
	words                  atomic.Int64 // of long connections
	slowest                atomic.Int64 // answer to a word, in nanoseconds
	document               []byte       // that is downloaded
	mu                     sync.Mutex
	reasons                []string        // of the first losses
	ctx                    context.Context // over: the load ends
	end                    context.CancelFunc
	workers                sync.WaitGroup
}

// startLoad begins to use a service. Its long connections have had an answer each when startLoad
// returns.
func (e *edges) startLoad(service string) *load {
	e.t.Helper()
	document, err := io.ReadAll(webserver.Body(downloadBytes))
	if err != nil {
		e.t.Fatal(err)
	}
	l := &load{edges: e, service: service, document: document}
	l.ctx, l.end = context.WithCancel(e.t.Context())
	for range longConnections {
		conn, err := l.dial("7")
		if err == nil {
			err = l.say(conn, 0)
		}
		if err != nil {
			e.t.Fatalf("%s: %v", service, err)
		}
		l.workers.Go(func() { l.talk(conn) })
	}
	for range shortWorkers {
		l.workers.Go(l.knock)
	}
	for range downloadWorkers {
		l.workers.Go(l.download)
	}
	return l
}

func (l *load) running() bool { return l.ctx.Err() == nil }

func (l *load) dial(port string) (conn net.Conn, err error) {
	err = l.edges.inClient(func() error {
		conn, err = net.DialTimeout("tcp", net.JoinHostPort(vip(l.service), port), edgesPatience)
		return err
	})
	return conn, err
}

// say sends a number and wants it back.
func (l *load) say(conn net.Conn, n int64) error {
	var out, in [100]byte
	binary.BigEndian.PutUint64(out[:], uint64(n))
	began := time.Now()
	conn.SetDeadline(began.Add(edgesPatience))
	_, err := conn.Write(out[:])
	if err == nil {
		_, err = io.ReadFull(conn, in[:])
	}
	if err == nil && in != out {
		err = errors.New("the answer is another one")
	}
	for took := int64(time.Since(began)); ; {
		if slowest := l.slowest.Load(); took <= slowest || l.slowest.CompareAndSwap(slowest, took) {
			return err
		}
	}
}

// talk goes on for as long as the test; a connection that is lost is replaced.
func (l *load) talk(conn net.Conn) {
	for l.long.Add(1); ; l.long.Add(1) {
		err := l.talkOn(conn)
		if err == nil {
			return
		}
		l.longLost.Add(1)
		l.note("long connection", err)
		if conn, err = l.dial("7"); err != nil {
			l.longLost.Add(1)
			l.note("long connection", err)
			return
		}
	}
}

func (l *load) talkOn(conn net.Conn) error {
	defer conn.Close()
	for n := int64(1); l.running(); n++ {
		if err := l.say(conn, n); err != nil {
			return fmt.Errorf("word %d: %w", n, err)
		}
		l.words.Add(1)
		time.Sleep(pause)
	}
	return nil
}

// knock has connections of one word.
func (l *load) knock() {
	for ; l.running(); time.Sleep(pause) {
		l.short.Add(1)
		conn, err := l.dial("7")
		if err != nil {
			l.shortLost.Add(1)
			l.note("short connection", err)
			continue
		}
		if err := l.say(conn, 0); err != nil {
			l.shortLost.Add(1)
			l.note("short connection", err)
		}
		conn.Close()
	}
}

// download fetches documents, each on a connection of its own.
func (l *load) download() {
	dial := func(context.Context, string, string) (net.Conn, error) { return l.dial("80") }
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		Timeout: edgesPatience}
	for l.running() {
		l.downloads.Add(1)
		if err := l.fetch(client); err != nil {
			l.downloadsLost.Add(1)
			l.note("download", err)
		}
	}
}

func (l *load) fetch(client *http.Client) error {
	response, err := client.Get(fmt.Sprintf("http://[%s]/?ms=0&bytes=%d", vip(l.service),
		len(l.document)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err == nil && !bytes.Equal(got, l.document) {
		err = fmt.Errorf("%s, and %d bytes that are not the document", response.Status, len(got))
	}
	return err
}

// note remembers why a connection was lost, and where the edges would send its packets.
func (l *load) note(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.reasons) < 5 {
		l.reasons = append(l.reasons, fmt.Sprintf("%s: %v%s", what, err, l.edges.trace(err)))
	}
}

// stop ends the load when what is under way has come to its end, and returns how many connections
// were lost.
func (l *load) stop() (lost int64) {
	l.end()
	l.workers.Wait()
	return l.longLost.Load() + l.shortLost.Load() + l.downloadsLost.Load()
}

// String tells the numbers.
func (l *load) String() string {
	return fmt.Sprintf("%-10s  lost %3d of %3d long connections (%d words, slowest %4d ms), %3d "+
		"of %4d short ones, %3d of %3d downloads",
		l.service, l.longLost.Load(), l.long.Load(), l.words.Load(),
		time.Duration(l.slowest.Load()).Milliseconds(),
		l.shortLost.Load(), l.short.Load(), l.downloadsLost.Load(), l.downloads.Load())
}

func (l *load) why() string { return strings.Join(l.reasons, "\n") }

// ends finds those of a connection in an error.
var ends = regexp.MustCompile(`(\[\S+\]:\d+)->(\[\S+\]:\d+)`)

// trace asks each edge for the chain of the flow that an error names, if it does.
func (e *edges) trace(err error) string {
	match := ends.FindStringSubmatch(err.Error())
	if match == nil {
		return ""
	}
	flow := api.Flow{Source: netip.MustParseAddrPort(match[1]),
		Destination: netip.MustParseAddrPort(match[2]), Protocol: config.TCP}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var text strings.Builder
	for _, edge := range edgeNames {
		trace, err := e.client(edge).Trace(ctx, flow)
		fmt.Fprintf(&text, "\n    %s:", edge)
		for _, p := range trace.Chain {
			fmt.Fprintf(&text, " %s (%s, %s)", p.Backend, p.Role, p.State)
		}
		if err != nil {
			fmt.Fprintf(&text, " %v", err)
		}
	}
	return text.String()
}
