package datapath

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"sextant/lb/acceptance"
	"sextant/packet/flow"
)

// TestAcceptQueue: a service whose load is its listener's accept queue refuses new connections
// while too many wait there, with listeners with and without MPTCP, of one family and of both, and
// forgets what was once offered when the server has caught up.
func TestAcceptQueue(t *testing.T) {
	w := newWorld(t)
	addAddresses(t, hostVIPv6, hostVIPv4, clientV6, clientV4)
	wayElsewhere.lead(t)
	config := hostConfig(t)
	config.Refusal = 0 // each SYN is decided about
	program, err := OpenHost(w.dir, config)
	must(t, err)
	t.Cleanup(program.Close)
	must(t, program.setPorts([]Attachment{{On: "near", Index: w.near, Mode: Native},
		{On: "far", Index: w.far, Mode: Native}}))
	policy := acceptance.Policy{Kind: acceptance.Static, Threshold: 2, Reported: true, Queue: true}
	must(t, program.SetService(ServiceKey{VIP: hostVIPv4, Port: hostPort, Protocol: 6}, 1, policy))
	must(t, program.SetService(ServiceKey{VIP: hostVIPv6, Port: hostPort, Protocol: 6}, 2, policy))
	run := newRunner(program.programs["host"], w.near)
	port := uint16(5000)
	for _, listener := range []struct {
		name string
		open func(vip netip.Addr) *net.TCPListener
	}{
		{"plain", func(vip netip.Addr) *net.TCPListener { return listenBy(t, vip, false) }},
		{"MPTCP", func(vip netip.Addr) *net.TCPListener { return listenBy(t, vip, true) }},
		{"both families", func(netip.Addr) *net.TCPListener {
			return listenBy(t, netip.IPv6Unspecified(), false)
		}},
	} {
		for index, family := range []struct{ vip, client, stranger netip.Addr }{
			{hostVIPv4, clientV4, netip.MustParseAddr("203.0.113.99")},
			{hostVIPv6, clientV6, netip.MustParseAddr("2001:db8:c::99")},
		} {
			l := listener.open(family.vip)
			offer := func(waiting int, want uint32) {
				t.Helper()
				port++
				tuple := flow.Tuple{Src: family.stranger, Dst: family.vip, SrcPort: port,
					DstPort: hostPort, Protocol: 6}
				code, _ := run.run(t, offered(t, tuple, "S", 1, 0))
				busy, err := program.Busy(uint32(index+1), policy)
				if code != want || busy != waiting || err != nil {
					t.Errorf("%s, %s: with %d in the queue the verdict is %d, want %d; busy %d, %v",
						listener.name, family.vip, waiting, code, want, busy, err)
				}
			}
			var clients []net.Conn
			connect := func() {
				dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(
					netip.AddrPortFrom(family.client, 0))}
				c, err := dialer.Dial("tcp", fmt.Sprintf("[%s]:%d", family.vip, hostPort))
				must(t, err)
				clients = append(clients, c)
			}
			offer(0, xdpPass)
			connect()
			eventually(t, "the connection is in the queue", func() bool {
				return queued(t, program, run, family.stranger, family.vip, uint32(index+1)) == 1
			})
			offer(1, xdpPass)
			connect()
			eventually(t, "both are in the queue", func() bool {
				return queued(t, program, run, family.stranger, family.vip, uint32(index+1)) == 2
			})
			offer(2, xdpRedirect)
			for range clients {
				c, err := l.Accept()
				must(t, err)
				defer c.Close()
			}
			offer(0, xdpPass)
			for _, c := range clients {
				c.Close()
			}
			l.Close()
		}
	}
}

// queued offers a SYN, and returns how many connections the program has seen in the queue.
func queued(t *testing.T, h *Host, run *runner, client, vip netip.Addr, index uint32) int {
	t.Helper()
	tuple := flow.Tuple{Src: client, Dst: vip, SrcPort: 4999, DstPort: hostPort, Protocol: 6}
	run.run(t, offered(t, tuple, "S", 1, 0))
	n, err := h.Busy(index, acceptance.Policy{Reported: true})
	must(t, err)
	return n
}
