package datapath

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"sextant/linux"
)

// reaction is what the kernel does with a segment to a socket in TIME-WAIT or FIN-WAIT-2: what it
// sends, and whether the socket is there afterwards.
type reaction string

const (
	ignored  reaction = ""
	acks     reaction = "ACK"     // with the numbers of the old connection
	resets   reaction = "RST"     // FIN-WAIT-2: data after close
	forgets  reaction = "forgets" // says nothing, and the socket is gone
	reopened reaction = "SYN-ACK" // RFC 6191
)

// segmentCase is a segment relative to what the client sends and acknowledges next.
type segmentCase struct {
	what     string
	flags    string
	seq, ack int64
	data     int   // bytes
	stamp    int32 // the client's clock since its latest segment; negative: RFC 7323 section 5.3
	taken    bool
	// finWait2 and timeWait are what the kernel does.
	finWait2, timeWait reaction
}

// fromPeer can all come from the peer of a socket that has been closed, fromOther from another
// connection of the port.
var (
	fromPeer = []segmentCase{
		{"FIN", "FA", 0, 0, 0, 9, true, acks, acks},
		{"FIN again", "FA", -1, 0, 0, 9, true, acks, acks},
		{"keep-alive", "A", -1, 0, 0, 9, true, acks, acks},
		{"window update", "A", 0, 0, 0, 9, true, ignored, ignored},
		{"data after close", "PA", 0, 0, 10, 9, true, resets, acks},
		{"data again", "PA", -5, 0, 5, 9, true, acks, acks},
		{"RST to an old segment", "R", 0, 0, 0, 9, true, forgets, forgets},
		{"abort", "RA", 0, 0, 0, 9, true, forgets, forgets},
		{"abort, data lost", "RA", 100, 0, 0, 9, true, forgets, ignored},
	}
	fromOther = []segmentCase{
		{"ACK", "A", 1 << 24, 1 << 24, 0, 9, false, acks, acks},
		{"ACK", "A", -1 << 24, -1 << 24, 0, 9, false, acks, acks},
		{"ACK at the same number", "A", 0, 1, 0, 9, false, ignored, ignored},
		{"data", "PA", 1 << 24, 1 << 24, 10, 9, false, acks, acks},
		{"data in the window", "PA", 100, 1 << 24, 10, 9, false, resets, acks},
		{"old data", "PA", 100, 1 << 24, 10, -9, false, acks, acks},
		{"keep-alive", "A", 1<<24 - 1, 1 << 24, 0, 9, false, acks, acks},
		{"FIN", "FA", 1 << 24, 1 << 24, 0, 9, false, acks, acks},
		{"RST", "RA", 1 << 24, 1 << 24, 0, 9, false, acks, ignored},
		{"RST in the window", "R", 100, 0, 0, 9, false, forgets, ignored},
		{"SYN, newer number", "S", 1 << 24, 0, 0, 9, false, acks, reopened},
		{"SYN, older number", "S", -1 << 24, 0, 0, -9, false, acks, acks},
	}
)

// TestTimeWaitAgainstKernel: the program takes each segment that can come from the peer, and none
// of another connection; to most of these the kernel would answer with an ACK of other numbers,
// so that their client hangs.
func TestTimeWaitAgainstKernel(t *testing.T) {
	w := newWorld(t)
	onOneProcessor(t) // what it sends is answered in order
	wayElsewhere.lead(t)
	far := farClients(t, w)
	must(t, linux.WriteSysctl("net.ipv4.tcp_invalid_ratelimit", "0"))
	_, host := tableHost(t, w)
	line := openWire(t)
	l := listenBy(t, hostVIPv6, false)
	client := rawClient{tuple: tupleOf(far[false], hostVIPv6, 20000)}
	firsts := []rawClient{{next: 1000}, {next: 0xfffffff0}, {next: 0xfffffffe, stamp: 1000}}
	for _, first := range firsts {
		for _, test := range slices.Concat(fromPeer, fromOther) {
			if test.stamp < 0 && first.stamp == 0 {
				continue
			}
			client.next, client.stamp = first.next, first.stamp
			client.tuple.SrcPort += 2
			peer := finWait2(t, line, l, client)
			test.check(t, host, "FIN-WAIT-2", peer, test.finWait2)
			client.tuple.SrcPort += 2
			peer = lastAck(t, line, l, client)
			test.check(t, host, "TIME-WAIT", peer, test.timeWait)
		}
	}
}

func (test segmentCase) check(t *testing.T, host subject, in string, c *rawClient, want reaction) {
	t.Helper()
	seq, ack := c.next+uint32(test.seq), c.acked+uint32(test.ack)
	name := fmt.Sprintf("%s, first stamp %d: %s %s", in, c.stamp, test.flags, test.what)
	verdict := "redirected"
	if test.taken {
		verdict = "taken"
	}
	wantOffer(t, host, name, c.tuple, test.flags, seq, ack, verdict)
	sent := segment{flags: test.flags, seq: seq, ack: ack, stamp: uint32(test.stamp)}
	sent.data = make([]byte, test.data)
	c.segment(t, sent)
	if got := c.reaction(t); got != want {
		t.Errorf("%s: the kernel answers %q, want %q", name, got, want)
	}
}

// reaction is all that the server says until it answers a SYN from another port, and whether it
// knows the connection afterwards.
func (c *rawClient) reaction(t testing.TB) reaction {
	t.Helper()
	said := c.until(t)
	if len(said) > 0 {
		return reaction(strings.Join(said, " "))
	}
	// A segment out of window: a socket answers with an ACK, the listener with a RST.
	c.segment(t, segment{flags: "A", seq: c.next + 1<<20, ack: c.acked, stamp: 20})
	if said = c.until(t); len(said) == 1 && said[0] == string(resets) {
		return forgets
	}
	return ignored
}

func (c *rawClient) until(t testing.TB) (said []string) {
	t.Helper()
	marker := *c
	// a first SYN or a repetition: a SYN-ACK answers both
	marker.tuple.SrcPort = c.tuple.SrcPort + 1
	marker.stamp = 0
	marker.segment(t, segment{flags: "S", seq: 4711})
	c.line.hear(t, func(tcp *layers.TCP) bool {
		switch uint16(tcp.DstPort) {
		case c.tuple.SrcPort:
			said = append(said, kindOf(tcp))
		case marker.tuple.SrcPort:
			return tcp.SYN && tcp.ACK
		}
		return false
	})
	return said
}

func kindOf(tcp *layers.TCP) string {
	switch {
	case tcp.RST:
		return string(resets)
	case tcp.SYN:
		return string(reopened)
	}
	return string(acks)
}

// onOneProcessor keeps this thread, and so the softirqs that it raises, on one processor.
func onOneProcessor(t testing.TB) {
	t.Helper()
	var before, one unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &before))
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	must(t, unix.SchedSetaffinity(0, &one))
	t.Cleanup(func() { must(t, unix.SchedSetaffinity(0, &before)) })
}
