package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/lab"
)

// restless is how many connections come and go beside those that stay.
const restless = 4

// comeAndGo adds connections from some ports of a node, which burst, pause, end with a reset, and
// come again from the same port. It returns how often all of them have come since the last call,
// when each has once more at least.
func (tr *traffic) comeAndGo(l *lab.Lab, node, address string) (again func(when string)) {
	tr.t.Helper()
	ns := namespaceOf(tr.t, l, node)
	tr.t.Cleanup(func() { ns.Close() })
	for i := range restless {
		dialer := net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{Port: talkerPort + i}}
		dial := func() (conn net.Conn, err error) {
			err = ns.Do(func() (err error) {
				conn, err = dialer.Dial("tcp", address)
				return err
			})
			return conn, err
		}
		tr.workers.Go(func() {
			for tr.running() {
				tr.comings[i].Add(1)
				if err := visit(dial); err != nil {
					err = fmt.Errorf("from port %d, for the %dth time: %w", talkerPort+i,
						tr.comings[i].Load(), err)
					tr.failure.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	return func(when string) {
		tr.t.Helper()
		tr.flows(when)
		for i := range tr.comings { // the next but one has begun and ended in between
			want := tr.comings[i].Load() + 2
			for deadline := time.Now().Add(patience); tr.comings[i].Load() < want; {
				if err := tr.failure.Load(); err != nil {
					tr.t.Fatalf("%s: %v", when, *err)
				}
				if time.Now().After(deadline) {
					tr.t.Fatalf("%s: port %d stands still", when, talkerPort+i)
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// visit has a connection burst and pause.
func visit(dial func() (net.Conn, error)) error {
	conn, err := dial()
	// A process that is about to begin has the sockets of this one until it does.
	for began := time.Now(); errors.Is(err, unix.EADDRINUSE) && time.Since(began) < patience; {
		time.Sleep(time.Millisecond)
		conn, err = dial()
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	out, in := make([]byte, 20_000), make([]byte, 20_000)
	for burst := range 3 {
		for i := range out {
			out[i] = byte(i + burst)
		}
		conn.SetDeadline(time.Now().Add(patience))
		if _, err = conn.Write(out); err == nil {
			_, err = io.ReadFull(conn, in)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(in, out) {
			return fmt.Errorf("the answer to burst %d is another one", burst)
		}
		time.Sleep(10 * time.Millisecond << burst)
	}
	return conn.(*net.TCPConn).SetLinger(0)
}

// restart kills all agents, changes the file of a node, and starts them again.
func (a *agents) restart(node string, change func(*config.Node)) {
	a.t.Helper()
	a.kill()
	a.rewrite(node, change)
	a.start()
	a.ready()
}

func same(*config.Node) {}

// dying kills agents that take over, at several times between their first instruction and their
// last one.
func (a *agents) dying(times int) {
	a.t.Helper()
	a.kill()
	began := time.Now()
	a.start()
	a.ready()
	took := time.Since(began)
	a.kill()
	for i := range times {
		a.start()
		time.Sleep(took * time.Duration(i) / time.Duration(times))
		a.kill()
	}
	a.start()
	a.ready()
}
