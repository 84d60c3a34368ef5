package datapath

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/model"
	"sextant/packet/flow"
)

// Sockets in TIME-WAIT, and orphans in FIN-WAIT-2. The client's side is played frame by frame, so
// that all numbers are known.

// rawClient is a client beyond the interface, with the next numbers of both sides.
type rawClient struct {
	line        wire
	tuple       flow.Tuple
	next, acked uint32
	window      uint32 // that the server advertised last, in bytes
	stamp       uint32 // of its clock; 0: without timestamps
}

// options are a timestamp, if the client sends them.
func (c *rawClient) options(stamp uint32) []layers.TCPOption {
	if c.stamp == 0 {
		return nil
	}
	pad := layers.TCPOption{OptionType: layers.TCPOptionKindNop}
	data := binary.BigEndian.AppendUint64(nil, uint64(stamp)<<32)
	option := layers.TCPOption{OptionType: layers.TCPOptionKindTimestamps, OptionLength: 10,
		OptionData: data}
	return []layers.TCPOption{pad, pad, option}
}

// segment is a frame of the client's.
func (c *rawClient) segment(t testing.TB, s segment) {
	t.Helper()
	tcp := s.header()
	tcp.Options = c.options(c.stamp + s.stamp)
	c.line.send(t, tcpFrame(t, c.tuple, tcp, s.data...))
}

// segment is what a test sends: relative numbers would hide a wrap, so they are absolute.
type segment struct {
	flags    string
	seq, ack uint32
	data     []byte
	stamp    uint32 // later than the client's clock by so much
}

func (s segment) header() *layers.TCP {
	tcp := &layers.TCP{Seq: s.seq, Ack: s.ack, Window: 1000}
	for _, flag := range s.flags {
		switch flag {
		case 'S':
			tcp.SYN = true
		case 'A':
			tcp.ACK = true
		case 'F':
			tcp.FIN = true
		case 'R':
			tcp.RST = true
		case 'P':
			tcp.PSH = true
		}
	}
	return tcp
}

// hear waits for a segment to the client.
func (c *rawClient) hear(t testing.TB, what func(*layers.TCP) bool) *layers.TCP {
	t.Helper()
	return c.line.hear(t, func(tcp *layers.TCP) bool {
		return uint16(tcp.DstPort) == c.tuple.SrcPort && what(tcp)
	})
}

// openRaw opens a connection from a first number on.
func openRaw(t testing.TB, line wire, l *net.TCPListener, c rawClient) (*rawClient, *net.TCPConn) {
	t.Helper()
	c.line = line
	c.segment(t, segment{flags: "S", seq: c.next})
	synAck := c.hear(t, func(tcp *layers.TCP) bool {
		return tcp.SYN && tcp.ACK &&
			tcp.Ack == c.next+1
	})
	c.next, c.acked = c.next+1, synAck.Seq+1
	c.segment(t, segment{flags: "A", seq: c.next, ack: c.acked, stamp: 1})
	server, err := l.AcceptTCP()
	must(t, err)
	return &c, server
}

// finWait2 opens a connection, on which the server sends data and closes; the client acknowledges
// all.
func finWait2(t testing.TB, line wire, l *net.TCPListener, c rawClient) *rawClient {
	t.Helper()
	client, server := openRaw(t, line, l, c)
	_, err := server.Write([]byte("bye"))
	must(t, err)
	must(t, server.Close())
	fin := client.hear(t, func(tcp *layers.TCP) bool { return tcp.FIN })
	client.acked = fin.Seq + uint32(len(fin.Payload)) + 1
	client.window = uint32(fin.Window) // the SYN had no window scale
	client.segment(t, segment{flags: "A", seq: client.next, ack: client.acked, stamp: 2})
	return client
}

// lastAck closes the client's side too: the server goes to TIME-WAIT.
func lastAck(t testing.TB, line wire, l *net.TCPListener, c rawClient) *rawClient {
	t.Helper()
	client := finWait2(t, line, l, c)
	client.segment(t, segment{flags: "FA", seq: client.next, ack: client.acked, stamp: 3})
	client.next++
	client.finAcked(t)
	return client
}

// finAcked waits for the acknowledgement of the client's FIN.
func (c *rawClient) finAcked(t testing.TB) {
	t.Helper()
	c.hear(t, func(tcp *layers.TCP) bool { return tcp.ACK && !tcp.FIN && tcp.Ack == c.next })
}

// again repeats the FIN: the kernel keeps a socket in TIME-WAIT for a minute from then.
func (c *rawClient) again(t testing.TB) {
	t.Helper()
	c.segment(t, segment{flags: "FA", seq: c.next - 1, ack: c.acked, stamp: 4})
	c.finAcked(t)
}

// socket is what the model is to know of it.
func (c *rawClient) socket() model.Socket {
	return model.Socket{State: model.SocketTimeWait, RcvNxt: c.next, RcvWnd: c.window,
		SndNxt: c.acked}
}

// TestTimeWait: what a socket in TIME-WAIT, or one in FIN-WAIT-2 that no process has any more,
// takes; of listeners with and without MPTCP; also where numbers wrap.
func TestTimeWait(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	far := farClients(t, w)
	_, host := tableHost(t, w)
	line := openWire(t)
	port := uint16(4000)
	for _, mptcp := range []bool{false, true} {
		for _, vip := range []netip.Addr{hostVIPv6, hostVIPv4} {
			w.run(t, fmt.Sprintf("mptcp %v/%v", mptcp, vip), func(t *testing.T) {
				l := listenBy(t, vip, mptcp)
				for _, client := range []rawClient{{next: 1e3}, {next: 0xfffffffe},
					{next: 0xffffffff, stamp: 5}} {
					port += 3
					client.tuple = tupleOf(far[vip.Is4()], vip, port)
					checkFinal(t, host, "FIN-WAIT-2", finWait2(t, line, l, client))
					client.tuple.SrcPort++
					checkFinal(t, host, "TIME-WAIT", lastAck(t, line, l, client))
				}
			})
		}
	}
}

// checkFinal offers packets of the client's connection, and of another one from the same port.
func checkFinal(t *testing.T, host subject, state string, c *rawClient) {
	t.Helper()
	next, acked, edge := c.next, c.acked, c.next+c.window
	for _, test := range []struct {
		flags    string
		seq, ack uint32
		want     string
	}{
		{"FA", next - 1, acked, "taken"}, // again, or keep-alive with FIN
		{"A", next - 1, acked, "taken"},  // keep-alive, window probe
		{"A", next, acked, "taken"},
		{"PA", next - 1400, acked, "taken"}, // again
		{"PA", edge, acked, "taken"},
		{"A", edge + 1, acked, "taken"}, // behind a FIN
		{"PA", edge + 2, acked, "redirected"},
		{"R", next, 0, "taken"},
		{"R", next + 1, 0, "redirected"},
		{"R", next - 1, 0, "redirected"},
		{"RA", next, 7, "taken"},
		{"RA", edge, acked, "taken"},
		{"RA", edge, acked + 1, "redirected"},
		{"A", next, acked + 1, "redirected"},
		{"A", next, acked - 1, "redirected"},
		{"PA", next + 1<<20, acked + 1<<20, "redirected"},
		{"FA", next - 1<<20, acked - 1<<20, "redirected"},
		{"F", next, acked, "redirected"},
		{"", next, acked, "redirected"},
		{"SA", next, acked, "redirected"},
	} {
		seq, ack := int32(test.seq-next), int32(test.ack-acked)
		name := fmt.Sprintf("%s: %s %+d %+d", state, test.flags, seq, ack)
		wantOffer(t, host, name, c.tuple, test.flags, test.seq, test.ack, test.want)
	}
	wantQuote(t, host, "of "+state, c.tuple, acked-1, "redirected")
	// The policy refuses it.
	wantOffer(t, host, state+": SYN", c.tuple, "S", next+1<<20, 0, "redirected")
}
