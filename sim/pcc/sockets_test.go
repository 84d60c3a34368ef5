package pcc

import (
	"fmt"
	"strings"
	"testing"

	"sextant/lb/pool"
)

// What hosts keep of connections that are over, or not open yet: TIME-WAIT, orphans in
// FIN-WAIT-2, half-open connections, SYN cookies. The client uses its port again; the sequence
// numbers of the connections differ.

// ongoing tells whether the client has the connection.
func (w *world) ongoing() bool { return w.flow == established || w.flow == closing }

// begun tells whether packets of the ports have gone through an edge, or a host has answered one.
func (w *world) begun() bool {
	return w.ongoing() || w.through != nobody || w.halfOpen != [hostsMax]bool{}
}

// lose lets a host forget all its sockets.
func (c *checker) lose(w *world, h int) {
	w.timeWait[h], w.halfOpen[h] = false, false
	if w.ongoing() && int(w.owner) == h {
		w.flow = over
	}
}

// synAnsweredSteps let a host answer a SYN in a way that opens no connection now; the client
// sends it again. The SYN-ACK may be lost. Or the kernel has found a socket in TIME-WAIT, and
// answered for that (RFC 6191); the client's RST then ends this one, unless it is lost.
func (c *checker) synAnsweredSteps(w world, h int8, do func(step, world, bool)) {
	if c.reuses == 0 {
		return
	}
	next := w
	next.packet, next.flow = path{}, unopened
	if w.timeWait[h] {
		do(step{what: synAnsweredOld, host: h}, next, false)
		next.timeWait[h] = false
		do(step{what: synAnsweredOld, host: h}, next, false)
	}
	next.timeWait[h], next.halfOpen[h] = false, true
	do(step{what: synAckLost, host: h}, next, false)
}

// synAckSteps let a SYN-ACK arrive, of a host that has a half-open connection and sends it again.
func (c *checker) synAckSteps(w world, do func(step, world, bool)) {
	for h := range c.hosts {
		if !w.halfOpen[h] {
			continue
		}
		next := w
		next.flow, next.owner = established, uint8(h)
		next.halfOpen[h] = false
		do(step{what: synAckArrives, host: int8(h)}, next, false)
	}
}

// closeSteps let the server close.
func (c *checker) closeSteps(w world, do func(step, world, bool)) {
	if w.flow != established || int(w.reuses) == c.reuses {
		return
	}
	next := w
	next.flow = closing
	next.timeWait[w.owner] = true
	next.reuses++
	do(step{what: serverCloses, host: int8(w.owner)}, next, false)
}

// reuse lets the client use its port for another connection. Its SYN meets half-open ones of
// before as it meets TIME-WAIT, and nothing else of it does.
func (c *checker) reuse(w *world) {
	w.flow = unopened
	for h := range w.halfOpen {
		w.timeWait[h] = w.timeWait[h] || w.halfOpen[h] && c.matching == byNumbers
		w.halfOpen[h] = false
	}
}

// breaks says how the step breaks the connection.
func (s step) breaks() string {
	if s.what == dataSwallowed {
		return "it answers for the connection before, and the data goes nowhere: the connection " +
			"hangs"
	}
	return "it does not know the connection and answers with a RST: broken"
}

// withSockets are set-ups in which the ports are used again, so that hosts have sockets of other
// connections of them.
func withSockets(rows []setup) (all []setup) {
	for _, s := range rows {
		s.reuses, s.changes = 2, min(s.changes, 3) // more takes minutes
		if s.edges > 1 {
			s.reuses, s.changes = 1, min(s.changes, 2)
		}
		all = append(all, s)
	}
	return all
}

// What hosts keep of other connections of the same ports breaks no connection, where the table
// says that it holds.
func TestSocketsOfOtherConnections(t *testing.T) {
	for _, s := range withSockets(readTable(t, readDocument(t))) {
		if !s.holds {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.breaksNothing(t)
		})
	}
}

// If a socket in TIME-WAIT took each packet of its ports, connections would hang in each set-up
// with a chain. The document shows how.
func TestSocketsByPorts(t *testing.T) {
	document := readDocument(t)
	shown := false
	for _, s := range withSockets(readTable(t, document)) {
		if !s.holds || s.policy != pool.Offer {
			continue
		}
		s.matching = byPorts
		found := s.explore()
		if len(found.trace) == 0 || !strings.Contains(found.trace[len(found.trace)-1], "hangs") {
			t.Errorf("%s: no connection hangs", s.name)
			continue
		}
		var trace strings.Builder
		for i, line := range found.trace {
			fmt.Fprintf(&trace, "%2d. %s\n", i+1, line)
		}
		t.Logf("%s:\n%s", s.name, trace.String())
		shown = shown || strings.Contains(document, trace.String())
	}
	if !shown {
		t.Error("docs/explanation/pcc.md shows none of these traces")
	}
}
