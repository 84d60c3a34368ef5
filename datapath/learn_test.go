package datapath

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"sextant/datapath/packettest"
)

// learningEdge is the only one with a route to it, of those that ask for SYN-ACKs.
var learningEdge = netip.MustParseAddr("fd00:5e::e1")

// What a program of the TC hook returns.
const (
	tcUnspec   = 0xffffffff
	tcShot     = 2
	tcRedirect = 7
)

// answering is a host that has taken a SYN, and its model.
type answering struct {
	twoHosts
	run *runner
	way uint32
}

// take gives both the SYN of a flow, as an edge sends it.
func (a *answering) take(t *testing.T, edge netip.Addr, sid string, syn packettest.Packet) {
	t.Helper()
	outer := packettest.To(netip.MustParseAddr(sid))
	outer.Src = edge
	frame := packettest.FromClient().Frame(t, outer.Around(t, syn.Bytes(t)))
	want := a.model.Process(a.way, 0, frame)
	verdict, after := a.run.run(t, frame)
	if !agree(t, frame, verdict, after, want) || !want.Taken {
		t.Fatalf("the SYN was not taken: %+v", want)
	}
}

// answer lets the SYN-ACK leave, and wants it to go by way of an edge or straight.
func (a *answering) answer(t *testing.T, synAck packettest.Packet, by *packettest.Outer) {
	t.Helper()
	wire := packettest.FromClient()
	frame := wire.Frame(t, synAck.Bytes(t))
	want, verdict := frame, uint32(tcUnspec)
	if by != nil {
		want, verdict = wire.Frame(t, by.Around(t, synAck.Bytes(t))), tcRedirect
	}
	got, after, err := a.program.programs["host_leave"].Test(frame)
	must(t, err)
	if got != verdict {
		t.Errorf("the program returned %d, want %d", got, verdict)
	}
	packettest.WantFrame(t, after, want)
	if model := a.model.Egress(frame, false); !bytes.Equal(model, want) {
		t.Errorf("the model's frame is %x\nwant %x", model, want)
	}
}

// TestHostAnswersByEdge compares the whole frame: the first SYN-ACK goes by way of the edge that
// sent the SYN, and names the SID at which it came. Everything else goes straight: the second, that
// of another try, one that no edge asked for, and one to an edge that is not routed.
func TestHostAnswersByEdge(t *testing.T) {
	w := newWorld(t)
	addRoute(t, "fd00:5e::e1/128", "fd00:5e:1::2", 0)
	hosts := newTwoHosts(t, w, nil)
	a := &answering{hosts, newRunner(hosts.program.programs["host"], w.near), uint32(w.near)}
	var byEdge, notRouted uint64
	for i, vip := range []netip.Addr{hostVIPv6, hostVIPv4} {
		client := []netip.Addr{clientV6, clientV4}[i]
		for j, sid := range []string{"fcbb:bb00:1::", "2001:db8:51d::1"} {
			w.run(t, fmt.Sprintf("%v/%s", vip, sid), func(t *testing.T) {
				syn := packettest.Packet{Src: client, Dst: vip, SrcPort: uint16(3000 + j),
					DstPort: hostPort, Flags: "S", TrafficClass: 0xb8}
				synAck := syn.Reply("SA")
				own := netip.MustParseAddr(sid)
				outer := packettest.Outer{
					Src: hosts.program.config.Source, Dst: learningEdge, TrafficClass: 0xb8,
					HopLimit: 64, FlowLabel: label(syn.Flow()),
				}.With(43, packettest.SRH(packettest.ProtocolOf(synAck.Bytes(t)), 0,
					1, learningEdge, own))

				a.answer(t, synAck, nil) // nobody sent the SYN
				a.take(t, learningEdge, sid, syn)
				a.answer(t, synAck, &outer)
				a.answer(t, synAck, nil)
				a.take(t, learningEdge, sid, syn) // soon after
				a.answer(t, synAck, nil)
				byEdge++

				other := syn
				other.SrcPort += 10
				a.take(t, netip.MustParseAddr("fd00:5e::e2"), sid, other) // no route
				a.answer(t, other.Reply("SA"), nil)
				notRouted++
				other.SrcPort += 10
				a.take(t, netip.MustParseAddr("fd00:5e::77"), sid, other) // does not learn
				a.answer(t, other.Reply("SA"), nil)
			})
		}
	}
	var signals HostSignals
	for i := range hostServices {
		s, err := hosts.program.Signals(uint32(i + 1))
		must(t, err)
		signals.ByEdge += s.ByEdge
		signals.NotRouted += s.NotRouted
	}
	if signals.ByEdge != byEdge || signals.NotRouted != notRouted {
		t.Errorf("%d SYN-ACKs by way of edges and %d without a route were counted, want %d and %d",
			signals.ByEdge, signals.NotRouted, byEdge, notRouted)
	}
}
