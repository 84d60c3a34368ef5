package datapath

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"sextant/datapath/packettest"
	"sextant/linux"
	"sextant/packet/flow"
)

// Whether a connection is on this host is decided by real sockets of the kernel.

// offered is a packet of a flow in a carrier that has another candidate.
func offered(t testing.TB, tuple flow.Tuple, flags string, seq, ack uint32) []byte {
	t.Helper()
	packet := packettest.Packet{
		Src: tuple.Src, Dst: tuple.Dst, SrcPort: tuple.SrcPort, DstPort: tuple.DstPort,
		Flags: flags, Seq: seq, Ack: ack,
	}
	return packettest.FromClient().Frame(t,
		packettest.To(netip.MustParseAddr("fcbb:bb00:1:2::")).Around(t, packet.Bytes(t)))
}

// wantOffer offers a packet of a flow: "taken" or "redirected".
func wantOffer(t testing.TB, host subject, name string, tuple flow.Tuple, flags string, seq,
	ack uint32, want string) {
	t.Helper()
	if got, _ := host.process(t, offered(t, tuple, flags, seq, ack)); got != want {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}

// wantQuote offers an ICMP error about a packet of the server's: "taken" or "redirected".
func wantQuote(t testing.TB, host subject, name string, tuple flow.Tuple, seq uint32, want string) {
	t.Helper()
	about := packettest.Packet{Src: tuple.Dst, Dst: tuple.Src, SrcPort: tuple.DstPort,
		DstPort: tuple.SrcPort, Flags: "A", Seq: seq}
	ip := packettest.Unreachable(t, about.Bytes(t), 1280)
	frame := packettest.FromClient().Frame(t,
		packettest.To(netip.MustParseAddr("fcbb:bb00:1:2::")).Around(t, ip))
	if got, _ := host.process(t, frame); got != want {
		t.Errorf("error about a packet %s: %s, want %s", name, got, want)
	}
}

// TestHere: established and half-open connections, and SYN cookies, of listeners with and without
// MPTCP.
func TestHere(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	far := farClients(t, w)
	_, host := tableHost(t, w)
	line := openWire(t)
	port := uint16(4000)
	for _, mptcp := range []bool{false, true} {
		for vip, client := range map[netip.Addr]netip.Addr{hostVIPv6: clientV6,
			hostVIPv4: clientV4} {
			w.run(t, fmt.Sprintf("mptcp %v/%v", mptcp, vip), func(t *testing.T) {
				l := listenBy(t, vip, mptcp)
				stranger := far[vip.Is4()]
				checkListener(t, host, tupleOf(stranger, vip, 999))
				checkConnections(t, host, l, client, mptcp)
				must(t, linux.WriteSysctl("net.ipv4.tcp_syncookies", "0"))
				checkRequest(t, host, line, tupleOf(stranger, vip, port+1))
				checkRequestQuotes(t, host, line, tupleOf(stranger, vip, port+2))
				must(t, linux.WriteSysctl("net.ipv4.tcp_syncookies", "2"))
				checkCookie(t, host, line, tupleOf(stranger, vip, port+3))
			})
			port += 3
		}
	}
}

func listenBy(t testing.TB, vip netip.Addr, mptcp bool) *net.TCPListener {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(mptcp)
	l, err := config.Listen(context.Background(), "tcp", netip.AddrPortFrom(vip, hostPort).String())
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

// checkListener: a listener alone is no connection.
func checkListener(t *testing.T, host subject, unknown flow.Tuple) {
	t.Helper()
	for _, flags := range []string{"A", "PA", "FA", "R", "RA", "SA", "F", ""} {
		wantOffer(t, host, "to a listener: "+flags, unknown, flags, 5, 7, "redirected")
	}
	wantQuote(t, host, "of a listener", unknown, 7, "redirected")
}

func checkConnections(t *testing.T, host subject, l *net.TCPListener, client netip.Addr,
	mptcp bool) {
	t.Helper()
	dialer := &net.Dialer{}
	dialer.SetMultipathTCP(mptcp)
	tuple, server, peer := connectBy(t, dialer, l, client)
	t.Cleanup(func() { server.Close(); peer.Close() })
	for _, flags := range []string{"A", "PA", "S", "R", "FA"} {
		wantOffer(t, host, "to an established connection: "+flags, tuple, flags, 5, 7, "taken")
	}
	other := tuple
	other.SrcPort ^= 1
	wantOffer(t, host, "beside an established connection", other, "A", 5, 7, "redirected")
	wantQuote(t, host, "of an established connection", tuple, 7, "taken")
	wantQuote(t, host, "beside an established connection", other, 7, "redirected")
}

// checkRequest: of a half-open connection, only what fits its sequence numbers is here.
func checkRequest(t *testing.T, host subject, line wire, tuple flow.Tuple) {
	t.Helper()
	client := uint32(0xffffffff) // its number wraps
	ours := line.halfOpen(t, tuple, client)
	for _, test := range []struct {
		flags    string
		seq, ack uint32
		want     string
	}{
		{"A", client + 1, ours + 1, "taken"},
		{"PA", 77, ours + 1, "taken"},
		{"A", client + 1, ours, "redirected"},
		{"A", client + 1, ours + 2, "redirected"},
		{"S", client, 0, "taken"},
		{"SA", client, ours + 1, "taken"},
		{"R", client + 1, 0, "taken"},
		{"R", client, ours + 1, "redirected"},
		{"RA", 9, ours + 1, "taken"},
		{"RA", client + 1, ours, "redirected"},
		{"F", client + 1, ours + 1, "redirected"},
	} {
		name := fmt.Sprintf("to a request: %s %d %d", test.flags, test.seq-client, test.ack-ours)
		wantOffer(t, host, name, tuple, test.flags, test.seq, test.ack, test.want)
	}
}

// checkRequestQuotes: of a half-open connection, only the SYN-ACK can have met an error.
func checkRequestQuotes(t *testing.T, host subject, line wire, tuple flow.Tuple) {
	t.Helper()
	ours := line.halfOpen(t, tuple, 500)
	wantQuote(t, host, "of a request", tuple, ours, "taken")
	wantQuote(t, host, "of another request", tuple, ours+1, "redirected")
}

// checkCookie: the kernel keeps nothing of the SYN, but vouches for the ACK that repeats its
// cookie.
func checkCookie(t *testing.T, host subject, line wire, tuple flow.Tuple) {
	t.Helper()
	const client = uint32(500)
	cookie := line.halfOpen(t, tuple, client)
	for _, test := range []struct {
		flags    string
		seq, ack uint32
		want     string
	}{
		{"A", client + 1, cookie + 1, "taken"},
		{"FA", client + 1, cookie + 1, "taken"},
		// a cookie carries the size of segments in its low bits
		{"A", client + 1, cookie + 1000, "redirected"},
		{"A", client + 2, cookie + 1, "redirected"},
		{"SA", client + 1, cookie + 1, "redirected"},
		{"RA", client + 1, cookie + 1, "redirected"},
		{"F", client + 1, cookie + 1, "redirected"},
	} {
		name := fmt.Sprintf("with a cookie: %s %d %d", test.flags, test.seq-client, test.ack-cookie)
		wantOffer(t, host, name, tuple, test.flags, test.seq, test.ack, test.want)
	}
	tuple.SrcPort ^= 0x100
	wantOffer(t, host, "with another flow's cookie", tuple, "A", client+1, cookie+1, "redirected")
}

// TestRefusalExpires: a SYN refused once stays refused, even when there is little to do by now and
// when the programs are loaded anew; when its time is over, the policy decides again. Its age is
// written into the table.
func TestRefusalExpires(t *testing.T) {
	w := newWorld(t)
	wayElsewhere.lead(t)
	h, host := tableHost(t, w)
	flowOf := func(port uint16) flow.Tuple {
		return flow.Tuple{Src: packettest.Client4, Dst: packettest.VIP4, SrcPort: port, DstPort: 80,
			Protocol: 6}
	}
	syn := func(port uint16, want string) {
		t.Helper()
		wantOffer(t, host, fmt.Sprintf("SYN from port %d", port), flowOf(port), "S", 0, 0, want)
	}
	refusal := uint32(h.config.Refusal.Seconds()) * jiffiesPerSecond()
	// Far from its end on both sides, as the clock goes on meanwhile.
	age := func(port uint16, jiffies uint32) {
		t.Helper()
		slot := uint32(testHash(flowOf(port)) % 65536)
		var entry uint64
		must(t, h.maps["refusals"].Lookup(slot, &entry))
		if entry>>32 != testHash(flowOf(port))>>32 {
			t.Fatalf("the refusal of port %d is remembered as %x", port, entry)
		}
		must(t, h.maps["refusals"].Put(slot, entry&^0xffffffff|uint64(uint32(entry)-jiffies)))
	}
	syn(1, "redirected")
	setBusy(t, h, 1, 0)
	syn(1, "redirected")
	syn(2, "taken")
	setBusy(t, h, 1, 4)
	syn(3, "redirected")
	setBusy(t, h, 1, 0)
	age(1, refusal/2)
	syn(1, "redirected")
	age(1, refusal-refusal/2)
	syn(1, "taken")
	syn(3, "redirected")

	must(t, h.pin())
	h, host = tableHost(t, w)
	setBusy(t, h, 1, 0)
	syn(3, "redirected")
	age(3, refusal)
	syn(3, "taken")

	got, err := h.Traffic(1)
	must(t, err)
	want := HostTraffic{
		Offered: 9, Accepted: 3, Refused: 6, Taken: Traffic{Packets: 3, Bytes: 120},
		PassedOn: Traffic{Packets: 6, Bytes: 240},
	}
	if got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// TestForced: the last candidate takes a SYN that it would refuse, and counts it.
func TestForced(t *testing.T) {
	w := newWorld(t)
	h, host := tableHost(t, w)
	frame := packettest.FromClient().Frame(t, packettest.To(packettest.OfferSID).Around(t,
		packettest.Web6("S").Bytes(t)))
	host.check(t, packettest.Case{Name: "last SYN", Frame: frame, Want: "take"})
	got, err := h.Traffic(2)
	must(t, err)
	if want := (HostTraffic{Forced: 1, Taken: Traffic{Packets: 1, Bytes: 60}}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

// eventually waits for what another thread or the kernel does in its own time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(wirePatience); time.Now().Before(deadline); time.Sleep(
		time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Errorf("not within %v: %s", wirePatience, what)
}
