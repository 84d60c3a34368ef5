package model_test

import (
	"math/rand/v2"
	"testing"

	"sextant/datapath/model"
	"sextant/packet/flow"
)

// A plain TCP client (RFC 9293) with numbers that never wrap: only what is on the wire has 32
// bits.

// wireSegment is what a client sends.
type wireSegment struct {
	flags    string
	seq, ack uint64
}

// offerTo offers a segment to a host that has the socket, with another candidate behind it.
func offerTo(t *testing.T, socket model.Socket, s wireSegment) model.Offer {
	t.Helper()
	host := newHost(internal)
	host.Sockets = func(flow.Tuple) model.Socket { return socket }
	host.Busy = func(model.ServiceKey) uint32 { return 0 }
	packet := web4(s.flags).Numbered(uint32(s.seq), uint32(s.ack))
	return processHost(t, host, to(addr("fcbb:bb00:1:2::")).Around(t, packet.Bytes(t))).Offer
}

// closedBy is a connection that the server has closed; the client knows.
type closedBy struct {
	random *rand.Rand
	next   uint64 // what the server expects next
	window uint64 // that it advertised behind it
	acked  uint64 // behind the server's FIN
	sent   uint64 // what the client would send next: some of it is lost
	fin    bool   // and its last number is that of a FIN
}

// newClosed draws one; its numbers are near a wrap often.
func newClosed(random *rand.Rand) *closedBy {
	near := func() uint64 {
		if random.IntN(2) == 0 {
			return 1<<40 + uint64(random.Uint32())
		}
		return 1<<40 - 1500 + random.Uint64N(3000)
	}
	c := &closedBy{random: random, next: near(), acked: near()}
	c.window = []uint64{0, 1, 1000, 65535, 1 << 20, 1 << 30}[random.IntN(6)]
	c.sent = c.next
	return c
}

// more is the next segment that the client sends, whatever the server has got of those before.
func (c *closedBy) more() wireSegment {
	s := wireSegment{flags: "A", seq: c.sent, ack: c.acked}
	switch c.random.IntN(7) {
	case 0: // new data, as far as the window goes
		if room := c.next + c.window - c.sent; !c.fin && room > 0 {
			s.flags = "PA"
			c.sent += 1 + c.random.Uint64N(min(room, 1400))
		}
	case 1: // what is not acknowledged, again
		s.flags, s.seq = "PA", c.next+c.random.Uint64N(max(c.sent-c.next, 1))
	case 2:
		if !c.fin { // which may be the first beyond the window
			c.fin = true
			c.sent++
		}
		s.flags, s.seq = "FA", c.sent-1
	case 3: // keep-alive, or probe of a window of 0
		s.seq = c.next - 1
	case 4: // data that the server has, and whose acknowledgement is lost
		s.flags, s.seq = "PA", c.next-1-c.random.Uint64N(c.window+1)
	case 5:
		s.flags = "RA" // the process is gone
	case 6:
		// the machine knows nothing: the answer to an ACK of the server's
		s.flags, s.seq, s.ack = "R", c.next, 0
	}
	return s
}

func (c *closedBy) socket() model.Socket {
	return model.Socket{
		State: model.SocketTimeWait, RcvNxt: uint32(c.next), RcvWnd: uint32(c.window),
		SndNxt: uint32(c.acked),
	}
}

// TestTimeWaitTakesItsOwn: whatever a client sends to a server that has closed is here, in
// FIN-WAIT-2 and in TIME-WAIT.
func TestTimeWaitTakesItsOwn(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	for range 2000 {
		c := newClosed(random)
		for range 10 {
			if s := c.more(); offerTo(t, c.socket(), s) != model.OfferHere {
				t.Fatalf("%+v is not here: %+v", s, c)
			}
			if c.fin && random.IntN(3) == 0 { // all that was lost has arrived by now, and the FIN
				c.next = c.sent
			}
		}
	}
}

// TestTimeWaitLeavesOthers: whatever is sent from the same port on a later connection, which is
// on any other host, is not here.
func TestTimeWaitLeavesOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 4))
	for range 5000 {
		c := newClosed(random)
		client := c.sent // RFC 9293 section 3.4.1, RFC 6528: a clock of 4 microseconds, or faster
		switch random.IntN(3) {
		case 0:
			client += random.Uint64N(100)
		case 1:
			client += random.Uint64N(1 << 30)
		default:
			client = uint64(random.Uint32())
		}
		server := uint64(random.Uint32())
		for range 10 {
			s := wireSegment{seq: client + 1 + random.Uint64N(1<<20),
				ack: server + 1 + random.Uint64N(1<<20)}
			s.flags = []string{"A", "PA", "FA", "FPA", "RA", "R", "SA", "F", ""}[random.IntN(9)]
			if got := offerTo(t, c.socket(), s); got != model.OfferNotHere {
				t.Fatalf("%+v: %v, beside %+v", s, got, c)
			}
		}
		if got := offerTo(t, c.socket(),
			wireSegment{flags: "S", seq: client}); got != model.OfferAccepted {
			t.Fatalf("SYN from %d: %v, beside %+v", client, got, c)
		}
	}
}
