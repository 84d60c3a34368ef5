package e2e_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sextant/experiment"
	"sextant/lab"
)

const echoAddress = "[2001:db8:80::80]:7"

// serveEcho answers on a node until the end of the test.
func serveEcho(t *testing.T, l *lab.Lab, node string) {
	t.Helper()
	serveEchoAt(t, l, node, echoAddress)
}

func serveEchoAt(t *testing.T, l *lab.Lab, node, address string) {
	t.Helper()
	serveWords(t, l, node, address, nil)
	echoDatagrams(t, l, node, address)
}

func echoDatagrams(t *testing.T, l *lab.Lab, node, address string) {
	t.Helper()
	var datagrams net.PacketConn
	inside(t, l, node, func() (err error) {
		datagrams, err = net.ListenPacket("udp", address)
		return err
	})
	t.Cleanup(func() { datagrams.Close() })
	go func() {
		for buffer := make([]byte, 2000); ; {
			n, from, err := datagrams.ReadFrom(buffer)
			if err != nil {
				return
			}
			datagrams.WriteTo(buffer[:n], from)
		}
	}()
}

// serveWords sends back what connections to an address of a node say, until the end of the test.
func serveWords(t *testing.T, l *lab.Lab, node, address string, accepted func(net.Conn)) {
	t.Helper()
	var listener net.Listener
	inside(t, l, node, func() (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	t.Cleanup(func() { listener.Close() })
	go experiment.Accept(listener, func(conn net.Conn) {
		if accepted != nil {
			accepted(conn)
		}
		experiment.Echo(conn)
	})
}

// Traffic of the client: connections that talk all the time, and datagrams of which each is
// counted.
const (
	connections = 30
	inFlight    = 32               // datagrams that have no answer yet; more wait
	patience    = 30 * time.Second // on a machine that others use too
)

// traffic is what a client sends and gets back, until stop.
type traffic struct {
	t        *testing.T
	stopped  chan struct{}
	workers  sync.WaitGroup
	sent     atomic.Uint64 // datagrams
	answered atomic.Uint64
	rounds   [connections]atomic.Uint64
	comings  [restless]atomic.Uint64
	failure  atomic.Pointer[error] // of the first connection that broke
}

func startTraffic(t *testing.T, l *lab.Lab) *traffic {
	t.Helper()
	return startTrafficTo(t, l, "client", echoAddress)
}

// startTrafficTo has a node talk to an address that answers.
func startTrafficTo(t *testing.T, l *lab.Lab, node, address string) *traffic {
	t.Helper()
	tr := &traffic{t: t, stopped: make(chan struct{})}
	for i := range connections {
		var conn net.Conn
		inside(t, l, node, func() (err error) {
			conn, err = net.DialTimeout("tcp", address, patience)
			return err
		})
		tr.workers.Go(func() { tr.talk(i, conn) })
	}
	var socket net.Conn
	inside(t, l, node, func() (err error) {
		socket, err = net.Dial("udp", address)
		return err
	})
	go tr.receive(socket)
	tr.workers.Go(func() { tr.send(socket) })
	t.Cleanup(func() { socket.Close() })
	return tr
}

func (tr *traffic) running() bool {
	select {
	case <-tr.stopped:
		return false
	default:
		return true
	}
}

// talk sends numbers and wants each back.
func (tr *traffic) talk(i int, conn net.Conn) {
	defer conn.Close()
	var out, in [100]byte
	for tr.running() {
		n := tr.rounds[i].Add(1)
		binary.BigEndian.PutUint64(out[:], n)
		conn.SetDeadline(time.Now().Add(patience))
		_, err := conn.Write(out[:])
		if err == nil {
			_, err = io.ReadFull(conn, in[:])
		}
		if err == nil && in != out {
			err = errors.New("the answer is another one")
		}
		if err != nil {
			err = fmt.Errorf("connection %d, round %d: %w", i, n, err)
			tr.failure.CompareAndSwap(nil, &err)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// send keeps datagrams under way. Where some may be lost, as in a flood, those that nobody has
// answered for long are not waited for.
func (tr *traffic) send(socket net.Conn) {
	answered, since, missing := uint64(0), time.Now(), uint64(0)
	for tr.running() {
		if now := tr.answered.Load(); now != answered {
			answered, since = now, time.Now()
		}
		if sent := tr.sent.Load(); sent-answered >= missing+inFlight {
			if time.Since(since) > patience/10 {
				missing, since = sent-answered, time.Now()
			}
			time.Sleep(100 * time.Microsecond)
			continue
		}
		datagram := binary.BigEndian.AppendUint64(make([]byte, 0, 100), tr.sent.Load())
		if _, err := socket.Write(datagram[:cap(datagram)]); err != nil {
			tr.failure.CompareAndSwap(nil, &err)
			return
		}
		if tr.sent.Add(1)%4 == 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// receive counts each datagram once: the other copy of a protected one may come late.
func (tr *traffic) receive(socket net.Conn) {
	came := map[uint64]bool{}
	for buffer := make([]byte, 2000); ; {
		if _, err := socket.Read(buffer); err != nil {
			return
		}
		if number := binary.BigEndian.Uint64(buffer); !came[number] {
			came[number] = true
			tr.answered.Add(1)
		}
	}
}

// flows waits until some hundred more datagrams and some more rounds of each connection have been
// answered.
func (tr *traffic) flows(when string) {
	tr.t.Helper()
	datagrams := tr.answered.Load() + 500
	var rounds [connections]uint64
	for i := range rounds {
		rounds[i] = tr.rounds[i].Load() + 5
	}
	deadline := time.Now().Add(patience)
	for i := 0; i < connections || tr.answered.Load() < datagrams; {
		switch {
		case tr.failure.Load() != nil:
			tr.t.Fatalf("%s: %v", when, *tr.failure.Load())
		case time.Now().After(deadline):
			tr.t.Fatalf("%s: nothing moves; %d of %d datagrams are answered", when,
				tr.answered.Load(), tr.sent.Load())
		case i < connections && tr.rounds[i].Load() >= rounds[i]:
			i++
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// stop ends the traffic when all that is under way has had time to come back, and says what was
// lost.
func (tr *traffic) stop() (lost uint64) {
	close(tr.stopped)
	tr.workers.Wait()
	if err := tr.failure.Load(); err != nil {
		tr.t.Error(*err)
	}
	for deadline := time.Now().Add(patience); tr.answered.Load() < tr.sent.Load() &&
		time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	return tr.sent.Load() - tr.answered.Load()
}
