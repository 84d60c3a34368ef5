package model_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopacket/gopacket/layers"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
)

// The sockets that a host can have for a flow. The client's number wraps.
const serverISN, clientISN = 1_000_000, 0xffffffff

var (
	listening = model.Socket{State: model.SocketListen}
	vouching  = model.Socket{State: model.SocketListen, CookieOK: true}
	requested = model.Socket{State: model.SocketNewSynRecv, SndISN: serverISN, RcvISN: clientISN}
	connected = model.Socket{State: model.SocketOther}
	// Both numbers wrap: behind the server's FIN, and within the window.
	lingering = model.Socket{State: model.SocketTimeWait, RcvNxt: 0xffffff00, RcvWnd: 1000}
)

// offerCase is an offer, and what the host makes of it.
type offerCase struct {
	name   string
	sid    netip.Addr // a carrier with another candidate unless set
	packet inner
	socket model.Socket
	busy   uint32 // 4 are too many
	want   model.Offer
}

// runOffers makes each offer to a host.
func runOffers(t *testing.T, cases []offerCase) {
	t.Helper()
	takes := map[model.Offer]bool{model.OfferLast: true, model.OfferHere: true,
		model.OfferAccepted: true}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			host := newHost(internal)
			host.Busy = func(model.ServiceKey) uint32 { return test.busy }
			host.Sockets = func(asked flow.Tuple) model.Socket {
				if asked != test.packet.Flow() {
					t.Errorf("asked for the socket of %v, want %v", asked, test.packet.Flow())
				}
				return test.socket
			}
			if !test.sid.IsValid() {
				test.sid = addr("fcbb:bb00:1:2::")
			}
			got := processHost(t, host, to(test.sid).Around(t, test.packet.Bytes(t)))
			if got.Offer != test.want || got.Taken != takes[test.want] {
				t.Errorf("offer %v, taken %v; want %v", got.Offer, got.Taken, test.want)
			}
		})
	}
}

// TestOfferLast: nobody is left, or nothing is known about the packet.
func TestOfferLast(t *testing.T) {
	runOffers(t, []offerCase{
		{name: "last SYN", sid: offerSID, packet: web4("S"), busy: 9, want: model.OfferLast},
		{name: "last ACK", sid: offerSID, packet: web6("A"), want: model.OfferLast},
		{name: "last UDP", sid: offerSID, packet: web6("").Of(udp), want: model.OfferLast},
		{name: "last at a whole address", sid: classicSID, packet: web6("S"), busy: 9,
			want: model.OfferLast},
		{name: "last SYN without a service", sid: offerSID, packet: web4("S").To(vip4, 8080),
			want: model.OfferLast},
		{name: "UDP", packet: web6("").Of(udp), want: model.OfferNotTCP},
		{name: "ICMP", packet: web6("").Of(layers.IPProtocolICMPv6, make([]byte, 8)...),
			want: model.OfferNotTCP},
	})
}

// TestOfferSYN: new connections, and packets of such as are established.
func TestOfferSYN(t *testing.T) {
	runOffers(t, []offerCase{
		{name: "SYN, little to do", packet: web4("S"), busy: 3, want: model.OfferAccepted},
		{name: "SYN, enough to do", packet: web4("S"), busy: 4, want: model.OfferRefused},
		{name: "SYN to any port", packet: web6("S"), busy: 3, want: model.OfferAccepted},
		{name: "SYN to a listener", packet: web4("S"), socket: vouching, busy: 4,
			want: model.OfferRefused},
		{name: "SYN without a service", packet: web4("S").To(vip4, 8080),
			want: model.OfferNoService},
		{name: "SYN of a request", packet: web4("S"), socket: requested, busy: 9,
			want: model.OfferHere},
		{name: "SYN of a connection", packet: web4("S"), socket: connected, busy: 9,
			want: model.OfferHere},
		{name: "SYN of a connection without a service", packet: web4("S").To(vip4, 8080),
			socket: connected, want: model.OfferHere},
		{name: "ACK of nothing", packet: web4("A"), want: model.OfferNotHere},
		{name: "ACK of a connection", packet: web4("A"), socket: connected, want: model.OfferHere},
		{name: "RST of a connection", packet: web4("R"), socket: connected, want: model.OfferHere},
		{name: "no flags of a connection", packet: web4(""), socket: connected,
			want: model.OfferHere},
	})
}

// TestOfferRequest: a connection request takes what fits its sequence numbers.
func TestOfferRequest(t *testing.T) {
	runOffers(t, []offerCase{
		{name: "ACK of a request", packet: web4("A").Numbered(5, serverISN+1), socket: requested,
			want: model.OfferHere},
		{name: "data of a request", packet: web4("PA").Numbered(5, serverISN+1), socket: requested,
			want: model.OfferHere},
		{name: "ACK of another request", packet: web4("A").Numbered(0, serverISN),
			socket: requested, want: model.OfferNotHere},
		{name: "SYN-ACK of a request", packet: web4("SA").Numbered(0, serverISN+1),
			socket: requested, want: model.OfferHere},
		{name: "SYN-ACK of another request", packet: web4("SA").Numbered(0, serverISN+2),
			socket: requested, want: model.OfferNotHere},
		{name: "RST of a request", packet: web4("R").Numbered(0, 7), socket: requested,
			want: model.OfferHere},
		{name: "RST of another request", packet: web4("R").Numbered(clientISN, serverISN+1),
			socket: requested, want: model.OfferNotHere},
		{name: "RST-ACK of a request", packet: web4("RA").Numbered(9, serverISN+1),
			socket: requested, want: model.OfferHere},
		{name: "RST-ACK of another request", packet: web4("RA").Numbered(0, serverISN),
			socket: requested, want: model.OfferNotHere},
		{name: "SYN-RST of a request", packet: web4("SR").Numbered(77, 0), socket: requested,
			want: model.OfferHere},
		{name: "FIN without ACK of a request", packet: web4("F").Numbered(0, serverISN+1),
			socket: requested, want: model.OfferNotHere},
	})
}

// TestOfferCookie: a listener takes the ACK of a SYN cookie.
func TestOfferCookie(t *testing.T) {
	runOffers(t, []offerCase{
		{name: "ACK of a listener", packet: web4("A"), socket: listening, want: model.OfferNotHere},
		{name: "ACK of a cookie", packet: web4("A"), socket: vouching, want: model.OfferHere},
		{name: "FIN-ACK of a cookie", packet: web4("FA"), socket: vouching, want: model.OfferHere},
		{name: "SYN-ACK of a cookie", packet: web4("SA"), socket: vouching,
			want: model.OfferNotHere},
		{name: "RST-ACK of a cookie", packet: web4("RA"), socket: vouching,
			want: model.OfferNotHere},
		{name: "no ACK of a cookie", packet: web4("F"), socket: vouching, want: model.OfferNotHere},
	})
}

// TestOfferTimeWait: a socket in TIME_WAIT takes what its own peer can still send.
func TestOfferTimeWait(t *testing.T) {
	fin, next, edge := uint32(0xfffffeff), uint32(0xffffff00), uint32(744) // of the client
	segment := func(name, flags string, seq, ack uint32, want model.Offer) offerCase {
		packet := web4(flags).Numbered(seq, ack)
		return offerCase{name: name, packet: packet, socket: lingering, want: want}
	}
	here, elsewhere := model.OfferHere, model.OfferNotHere
	runOffers(t, []offerCase{
		segment("FIN again", "FA", fin, 0, here),
		segment("data and FIN again", "FPA", fin-1400, 0, here),
		segment("ACK of the FIN again", "A", next, 0, here),
		segment("keep-alive", "A", next-1, 0, here),
		segment("window probe", "A", next-1, 0, here),
		segment("data in FIN_WAIT_2", "PA", next+500, 0, here),
		segment("the last byte of the window", "PA", edge, 0, here),
		segment("ACK behind a FIN beyond the window", "A", edge+1, 0, here),
		segment("behind the window", "PA", edge+2, 0, elsewhere),
		segment("RST at the next number", "R", next, 77, here),
		segment("RST-ACK at the next number", "RA", next, 77, here),
		segment("RST-ACK of an abort in FIN_WAIT_2", "RA", next+500, 0, here),
		segment("RST in the window", "R", next+1, 77, elsewhere),
		segment("RST before the window", "R", fin, 77, elsewhere),
		segment("another connection's ACK", "A", next, 1, elsewhere),
		segment("another connection's ACK before", "A", fin, 0xffffffff, elsewhere),
		segment("another connection's data", "PA", 4711, 815, elsewhere),
		segment("another connection's FIN", "FA", 4711, 815, elsewhere),
		segment("another connection's RST", "R", 4711, 0, elsewhere),
		segment("another connection's RST-ACK", "RA", 4711, 815, elsewhere),
		segment("SYN-ACK", "SA", next, 0, elsewhere),
		segment("FIN without ACK", "F", fin, 0, elsewhere),
		segment("no flags", "", next, 0, elsewhere),
		segment("SYN", "S", 4711, 0, model.OfferAccepted),
		segment("old SYN", "S", fin-5000, 0, model.OfferAccepted),
		segment("SYN at the next number", "S", next, 0, model.OfferAccepted),
		{name: "SYN, enough to do", packet: web4("S"), socket: lingering, busy: 4,
			want: model.OfferRefused},
		{
			name: "SYN, no service", packet: web4("S").To(vip4, 8080), socket: lingering,
			want: model.OfferNoService,
		},
	})
}

// TestOfferRefusedBefore: a SYN that was refused is passed on for ten seconds without
// asking the policy again.
func TestOfferRefusedBefore(t *testing.T) {
	host := newHost(internal)
	decisions := 0
	busy := uint32(4)
	host.Busy = func(key model.ServiceKey) uint32 {
		if want := (model.ServiceKey{Addr: vip4, Port: 80, Protocol: 6}); key != want {
			t.Errorf("asked about %v, want %v", key, want)
		}
		decisions++
		return busy
	}
	syn := func(port uint16, now time.Duration) model.Offer {
		packet := web4("S")
		packet.SrcPort = port
		frame := fromClient().Frame(t, to(addr("fcbb:bb00:1:2::")).Around(t, packet.Bytes(t)))
		return host.Process(external, now, frame).Offer
	}
	start := 5 * time.Second
	for _, step := range []struct {
		port      uint16
		after     time.Duration
		busy      uint32
		want      model.Offer
		decisions int
	}{
		{port: 1, after: 0, busy: 4, want: model.OfferRefused, decisions: 1},
		{port: 1, after: time.Second, busy: 0, want: model.OfferRefusedBefore, decisions: 1},
		{port: 2, after: time.Second, busy: 0, want: model.OfferAccepted, decisions: 2},
		{port: 3, after: 2 * time.Second, busy: 4, want: model.OfferRefused, decisions: 3},
		{port: 1, after: 10*time.Second - 1, busy: 0, want: model.OfferRefusedBefore, decisions: 3},
		{port: 1, after: 10 * time.Second, busy: 4, want: model.OfferRefused, decisions: 4},
		{port: 3, after: 11 * time.Second, busy: 0, want: model.OfferRefusedBefore, decisions: 4},
		{port: 3, after: 12 * time.Second, busy: 0, want: model.OfferAccepted, decisions: 5},
		{port: 1, after: 19 * time.Second, busy: 0, want: model.OfferRefusedBefore, decisions: 5},
		{port: 1, after: 20 * time.Second, busy: 0, want: model.OfferAccepted, decisions: 6},
	} {
		busy = step.busy
		if got := syn(step.port, start+step.after); got != step.want ||
			decisions != step.decisions {
			t.Errorf("port %d after %v: %v with %d decisions; want %v with %d",
				step.port, step.after, got, decisions, step.want, step.decisions)
		}
	}
}

// TestOfferPolicyState: the state of a policy is kept from one offer to the next.
func TestOfferPolicyState(t *testing.T) {
	host := newHost(internal)
	service := host.Services[model.ServiceKey{Addr: vip4, Port: 80, Protocol: 6}]
	service.Policy = acceptance.Policy{Kind: acceptance.Dynamic, Threshold: 1, Window: 50,
		Workers: 8, LowPermille: 400, HighPermille: 600}
	service.State = service.Policy.Initial()
	want := service.State
	for i := range 300 {
		busy := uint32(i % 7)
		host.Busy = func(model.ServiceKey) uint32 { return busy }
		packet := web4("S")
		packet.SrcPort = uint16(i)
		got := processHost(t, host, to(addr("fcbb:bb00:1:2::")).Around(t, packet.Bytes(t)))
		var answer acceptance.Answer
		answer, want = service.Policy.Decide(want, acceptance.Offer{Busy: busy, Left: 1})
		if answer.Accept != (got.Offer == model.OfferAccepted) {
			t.Fatalf("offer %d: %v, but the policy says %v", i, got.Offer, answer.Accept)
		}
		if diff := cmp.Diff(want, service.State); diff != "" {
			t.Fatalf("state after offer %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestOfferNote: what a host tells the next one is in the upper bits of the outer flow label, and
// the next one finds it there.
func TestOfferNote(t *testing.T) {
	host := newHost(internal)
	service := host.Services[model.ServiceKey{Addr: vip4, Port: 80, Protocol: 6}]
	service.Policy = acceptance.Policy{Kind: acceptance.Average, Cores: 1}
	host.Busy = func(model.ServiceKey) uint32 { return 9 }
	service.State.Levels = [acceptance.MaxLevels]acceptance.Level{1 << 16, 1 << 16, 1 << 16}
	packet := web4("S")
	label := flow.Label(host.FlowHash.Hash(host.Secret, packet.Flow()))
	offered := func(destination string) packettest.Outer {
		outer := to(addr(destination))
		outer.FlowLabel = label
		return outer
	}
	passed := processHost(t, host, offered("fcbb:bb00:1:2:3::").Around(t, packet.Bytes(t)))
	if passed.Offer != model.OfferRefused {
		t.Fatalf("nine connections where one is usual: %v", passed.Offer)
	}
	changed := binary.BigEndian.Uint32(passed.Frame[14:])&0xfffff ^ label
	told := acceptance.Note(changed >> 8)
	if changed&0xff != 0 || told != acceptance.NoteOf(service.State.Levels[0]) {
		t.Errorf("the flow label has changed by %#x, want the note %#x above 8 bits", changed,
			acceptance.NoteOf(service.State.Levels[0]))
	}
	next := newHost(internal)
	receiver := next.Services[model.ServiceKey{Addr: vip4, Port: 80, Protocol: 6}]
	receiver.Policy = service.Policy
	next.Busy = func(model.ServiceKey) uint32 { return 0 }
	outer := offered("fcbb:bb00:1::")
	outer.FlowLabel ^= uint32(told) << 8
	if got := processHost(t, next, outer.Around(t, packet.Bytes(t))); got.Offer != model.OfferLast {
		t.Fatalf("the last candidate: %v", got.Offer)
	}
	_, want := service.Policy.Decide(acceptance.State{}, acceptance.Offer{Told: told})
	if receiver.State != want {
		t.Errorf("the last candidate has learnt %+v, want %+v", receiver.State, want)
	}
}
