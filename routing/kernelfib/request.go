package kernelfib

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"sextant/linux/rtnetlink"
)

// chunk bounds the bytes of requests that are sent at once. The kernel works through them in their
// order, and its answers must fit its receive buffer.
const chunk = 64 << 10

// batch is requests that are sent together. fit says of an error that it is none.
type batch struct {
	socket *socket
	bytes  []byte
	first  uint32 // number of the first request in bytes
	count  int
	failed map[int]error // by number of the request in the batch
	begun  int           // requests before first
}

func (s *socket) batch() *batch {
	return &batch{socket: s, first: s.seq + 1, failed: map[int]error{}}
}

// add appends a request that write writes with a number of its own.
func (b *batch) add(write func(b []byte, seq uint32) ([]byte, error)) error {
	b.socket.seq++
	bytes, err := write(b.bytes, b.socket.seq)
	if err != nil {
		b.socket.seq--
		return err
	}
	b.bytes = bytes
	if b.count++; len(b.bytes) >= chunk {
		return b.flush()
	}
	return nil
}

func (b *batch) message(m rtnetlink.Message, flags uint16) error {
	return b.add(func(bytes []byte, seq uint32) ([]byte, error) {
		return m.Append(bytes, seq,
			flags)
	})
}

// flush sends what waits, and reads what the kernel says of it. The last request is answered in any
// case, others if they fail.
func (b *batch) flush() error {
	if len(b.bytes) == 0 {
		return nil
	}
	last := b.socket.seq
	b.bytes = rtnetlink.AppendNothing(b.bytes, last+1)
	b.socket.seq++
	if err := b.socket.send(b.bytes); err != nil {
		return fmt.Errorf("send %d requests to the kernel: %w", b.count-b.begun, err)
	}
	if err := b.socket.file.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for done := false; !done; {
		answer, err := b.socket.receive()
		if err != nil {
			return fmt.Errorf("read what the kernel says of requests: %w", err)
		}
		for len(answer) > 0 {
			var h rtnetlink.Header
			var body []byte
			if h, body, answer, err = rtnetlink.Next(answer); err != nil {
				return err
			}
			switch ok, refused := refusal(h, body); {
			case !ok:
			case h.Seq == last+1:
				done = true
			case refused != nil && h.Seq >= b.first && h.Seq <= last:
				b.failed[b.begun+int(h.Seq-b.first)] = refused
			}
		}
	}
	b.bytes, b.begun, b.first = b.bytes[:0], b.count, b.socket.seq+1
	return nil
}

// dump asks for all that a request is for, and calls f with each message.
func (s *socket) dump(request []byte, f func(h rtnetlink.Header, body []byte) error) error {
	if err := s.send(request); err != nil {
		return err
	}
	if err := s.file.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	for {
		answer, err := s.receive()
		if err != nil {
			return err
		}
		for len(answer) > 0 {
			var h rtnetlink.Header
			var body []byte
			if h, body, answer, err = rtnetlink.Next(answer); err != nil {
				return err
			}
			if h.Seq != s.seq {
				continue
			}
			if ok, refused := refusal(h, body); ok {
				return noTable(refused)
			}
			if err := f(h, body); err != nil {
				return err
			}
		}
	}
}

// noTable takes a table that is not there for an empty one.
func noTable(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// routesOf asks for the routes of a table.
func (s *socket) routesOf(family uint8, table uint32) []byte {
	s.seq++
	return rtnetlink.AppendRouteDump(nil, s.seq, family, table)
}

// nextHops asks for all next hop objects.
func (s *socket) nextHops() []byte {
	s.seq++
	return rtnetlink.AppendNextHopDump(nil, s.seq)
}
