package datapath

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/packettest"
	"sextant/linux"
)

// TestHostCountsResets: RSTs that leave for clients of its services, with and without ACK, and
// nothing else.
func TestHostCountsResets(t *testing.T) {
	w := newWorld(t)
	h, _ := tableHost(t, w)
	wire := packettest.FromClient()
	for _, packet := range []packettest.Packet{
		packettest.Web4("").Reply("R"), packettest.Web4("").Reply("RA"),
		packettest.Web6("").Reply("RA"),
		packettest.Web4("").To(packettest.VIP4, 8080).Reply("R"), packettest.Web4("").Reply("A"),
		packettest.Web4("").Reply("SA"),
	} {
		frame := wire.Frame(t, packet.Bytes(t))
		w.run(t, packet.Src.String(), func(t *testing.T) {
			_, after, err := h.programs["host_leave"].Test(frame)
			must(t, err)
			packettest.WantFrame(t, after, frame)
		})
	}
	var resets, established uint64
	for index := range uint32(16) {
		signals, err := h.Signals(index)
		must(t, err)
		resets, established = resets+signals.Resets, established+signals.Established
	}
	if resets != 3 || established != 0 {
		t.Errorf("%d resets and %d connections, want 3 and none", resets, established)
	}
}

// TestHostTellsStrayResets: of the kernel's RSTs, those about packets of connections that the host
// does not have are told apart from those about what the server does: it is not there, has no room,
// or ends a connection.
func TestHostTellsStrayResets(t *testing.T) {
	w := newWorld(t)
	far := farClients(t, w)
	const queue = 3 // connections wait, and one more
	must(t, linux.WriteSysctl("net.core.somaxconn", strconv.Itoa(queue)))
	must(t, linux.WriteSysctl("net.ipv4.tcp_syncookies", "0"))
	must(t, linux.WriteSysctl("net.ipv4.tcp_abort_on_overflow", "1"))
	h := busyHost(t, w)
	line := openWire(t)
	for i, vip := range []netip.Addr{hostVIPv4, hostVIPv6} {
		index, client, port := uint32(i+1), far[vip.Is4()], uint16(4000)
		l := listenBy(t, vip, false)
		send := func(segment layers.TCP) {
			segment.Window = 1000
			line.send(t, tcpFrame(t, tupleOf(client, vip, port), &segment))
		}
		begin := func() layers.TCP { // the ACK that ends a handshake
			port++
			synAck := line.halfOpen(t, tupleOf(client, vip, port), 100)
			return layers.TCP{ACK: true, Seq: 101, Ack: synAck + 1}
		}
		reset := func(what string, segment layers.TCP, resets, strays uint64) {
			t.Helper()
			send(segment)
			line.hear(t, func(tcp *layers.TCP) bool {
				return tcp.RST && uint16(tcp.DstPort) == port
			})
			wantResets(t, h, index, what, resets, strays)
		}
		reset("a stray", layers.TCP{ACK: true, PSH: true, Seq: 5, Ack: 7}, 1, 1)

		first := begin()
		wrong := first
		wrong.Ack += 8
		reset("half a connection of another host", wrong, 2, 2)
		send(first)
		for range queue - 1 {
			send(begin())
		}
		one, another := begin(), begin()
		port--
		send(one)
		eventually(t, "the queue is full", func() bool {
			signals, err := h.Signals(index)
			must(t, err)
			return signals.Established == queue+1
		})
		port++
		reset("a full queue", another, 3, 2)

		for n := range queue + 1 {
			server, err := l.Accept()
			must(t, err)
			if n == 0 {
				must(t, server.(*net.TCPConn).SetLinger(0))
				must(t, server.Close())
				wantResets(t, h, index, "the server resets a connection", 4, 2)
			} else {
				defer server.Close()
			}
		}
		must(t, l.Close())
		reset("no listener", layers.TCP{SYN: true, Seq: 200}, 5, 2)
	}
}

func wantResets(t *testing.T, h *Host, index uint32, what string, resets, strays uint64) {
	t.Helper()
	var signals HostSignals
	eventually(t, what, func() bool {
		var err error
		signals, err = h.Signals(index)
		must(t, err)
		return signals.Resets == resets
	})
	if signals.StrayResets != strays {
		t.Errorf("%s: %d of %d resets are about strays, want %d", what, signals.StrayResets,
			signals.Resets, strays)
	}
}
