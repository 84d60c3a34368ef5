package churn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Ports of the servers for figures 13 and 14.
const (
	echoPort = 7
	bulkPort = 9
)

// serve lets all servers answer on a port until the end.
func (a *arena) serve(port int, answer func(net.Conn)) (end func(), err error) {
	var names []string
	for i := range servers {
		names = append(names, server(i))
	}
	return a.Serve(fmt.Sprintf("[::]:%d", port), func(_ string, conn net.Conn) { answer(conn) },
		names...)
}

// dial connects the client to a policy's VIP.
func (a *arena) dial(ctx context.Context, p policy, port int) (conn net.Conn, err error) {
	err = a.Spaces["client"].Do(func() (err error) {
		dialer := net.Dialer{Timeout: patience, KeepAlive: -1}
		conn, err = dialer.DialContext(ctx, "tcp", fmt.Sprintf("[%s]:%d", p.vip, port))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", p.name, err)
	}
	return conn, nil
}

// line is a connection to a server that sends back what comes.
type line struct {
	conn    net.Conn
	chained bool // a server sends its packets on
}

// roundTrip sends a message and waits for its return.
func (l *line) roundTrip(message, answer []byte) (time.Duration, error) {
	if err := l.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	begun := time.Now()
	if _, err := l.conn.Write(message); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(l.conn, answer); err != nil {
		return 0, err
	}
	return time.Since(begun), nil
}

// manyLines are enough that each of eight servers has one of them but for once in millions of
// times.
const manyLines = 128

// lines opens connections to a policy, lets a server leave, and returns one connection whose
// packets are sent on since, and one whose packets are not. Policies without memory have none of
// the first kind.
func (a *arena) lines(ctx context.Context, p policy,
	port int) (straight, chained *line, err error) {
	m, err := a.members(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	var all []*line
	defer func() {
		for _, l := range all {
			if err != nil || l != straight && l != chained {
				l.conn.Close()
			}
		}
	}()
	for range manyLines {
		conn, err := a.dial(ctx, p, port)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, &line{conn: conn})
	}
	if p != shadow && p != offer {
		return all[0], nil, nil
	}
	if err := m.set(ctx, allBut(0)); err != nil {
		return nil, nil, err
	}
	for _, l := range all {
		if chained != nil && straight != nil {
			break
		}
		if l.chained, err = a.isChained(ctx, l); err != nil {
			return nil, nil, err
		}
		if l.chained {
			chained = l
		} else {
			straight = l
		}
	}
	if chained == nil || straight == nil {
		return nil, nil, errors.New("no connection changed its server, or all did; try again")
	}
	return straight, chained, nil
}

// allBut has one server drain.
func allBut(gone int) []bool {
	up := all(servers)
	up[gone] = false
	return up
}

// isChained tells whether servers send packets of a connection on. Nothing else must be going on.
func (a *arena) isChained(ctx context.Context, l *line) (bool, error) {
	before, err := a.traffic(ctx)
	if err != nil {
		return false, err
	}
	for range 3 {
		if _, err := l.roundTrip(make([]byte, 1), make([]byte, 1)); err != nil {
			return false, err
		}
	}
	after, err := a.traffic(ctx)
	return after.minus(before).redirected >= 3, err
}
