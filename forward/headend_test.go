package forward_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/forward"
	"sextant/forward/packettest"
	"sextant/replicate"
	"sextant/steer"
)

var steeredForms = map[string]steer.Redundancy{"none": steer.None, "tlv": steer.TLV, "sid": steer.SID}

func steerList(l packettest.Steered) steer.List {
	return steer.List{Name: l.Name, Segments: l.Segments, Reduced: l.Reduced, Redundancy: steeredForms[l.Form], Flow: l.Flow}
}

// newHeadend returns a head-end that does one thing with all traffic.
func newHeadend(t testing.TB, egress uint32, action steer.Action, mtu uint16, lists ...steer.List) *forward.Headend {
	t.Helper()
	path := steer.CandidatePath{Name: "only", Action: action, Lists: lists}
	table, err := steer.Compile([]steer.Rule{{Policy: "all"}}, []steer.Policy{{Name: "all", Index: 3, MTU: mtu, Paths: []steer.CandidatePath{path}}},
		steer.Source{Addr: edgeAddr, HopLimit: 61, Epoch: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &forward.Headend{
		Sides: map[uint32]forward.Side{external: forward.External, internal: forward.Internal, mixed: forward.Mixed},
		Block: mustBlock(t), Locators: []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")},
		Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")}, Table: table, Secret: mustSecret(t), HopLimit: 64,
		LoopLink: [12]byte{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2},
		NextHop: func(netip.Addr, uint8) forward.NextHop {
			return forward.NextHop{Interface: egress, SrcMAC: [6]byte(egressMAC), DstMAC: [6]byte(gatewayMAC), MTU: 1500}
		},
	}
}

// TestHeadendEncapsulates compares the whole frame: each kind of list, every kind of packet, with and without VLAN tags and padding, and
// every way out.
func TestHeadendEncapsulates(t *testing.T) {
	const timestamp = 0xfedcba98
	for _, l := range packettest.SteeredLists() {
		for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
			for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
				in := fromClient(vlans...)
				in.Padding = []byte("pad")
				for _, way := range []struct {
					verdict forward.Verdict
					egress  uint32
					out     link
				}{
					{forward.Transmit, external, link{Src: egressMAC, Dst: gatewayMAC, VLANs: vlans, Padding: in.Padding}},
					{forward.Redirect, internal, link{Src: egressMAC, Dst: gatewayMAC, Padding: in.Padding}},
					{forward.HandToKernel, foreign, in},
				} {
					h := newHeadend(t, way.egress, steer.Path, 0, steerList(l))
					packet.TrafficClass = 0xb9
					ip := packet.Bytes(t)
					label := uint32(h.Secret.Hash(packet.Flow()) & 0xfffff)
					for number := range uint32(2) {
						got := h.Process(external, timestamp, in.Frame(t, ip))
						if len(got.Results) != 1 || got.Results[0].Verdict != way.verdict {
							t.Fatalf("%s, %s: %+v", l.Name, kind, got)
						}
						want := l.Outer(ip, number, timestamp, label, 0xb9, 61).Around(t, packettest.Forwarded(ip))
						wantFrame(t, got.Results[0].Frame, way.out.Frame(t, want))
					}
				}
			}
		}
	}
}

// TestHeadendMirrors: one copy per list, all with one number, without VLAN tags.
func TestHeadendMirrors(t *testing.T) {
	all := packettest.SteeredLists()[3:]
	var lists []steer.List
	for _, l := range all {
		lists = append(lists, steerList(l))
	}
	ip := web6("A").Bytes(t)
	for verdict, egress := range map[forward.Verdict]uint32{forward.Redirect: internal, forward.HandToKernel: foreign} {
		h := newHeadend(t, egress, steer.Mirror, 0, lists...)
		out := link{Src: egressMAC, Dst: gatewayMAC}
		if verdict == forward.HandToKernel {
			out = link{Dst: []byte{1, 1, 1, 1, 1, 1}, Src: []byte{2, 2, 2, 2, 2, 2}}
		}
		label := uint32(h.Secret.Hash(web6("A").Flow()) & 0xfffff)
		for number := range uint32(3) {
			got := h.Process(external, 77, fromClient(9).Frame(t, ip))
			if got.Number != uint64(number) || len(got.Results) != len(all) {
				t.Fatalf("%+v", got)
			}
			for i, l := range all {
				if got.Results[i].Verdict != verdict || got.Lists[i] != i {
					t.Errorf("%s: %+v", l.Name, got.Results[i])
				}
				wantFrame(t, got.Results[i].Frame, out.Frame(t, l.Outer(ip, number, 77, label, 0, 61).Around(t, packettest.Forwarded(ip))))
			}
		}
	}
}

// TestHeadendSplits: a flow stays on its list, and packets take theirs in turn.
func TestHeadendSplits(t *testing.T) {
	sids := []netip.Addr{packettest.ViaSID1, packettest.ViaSID2, packettest.MergeSID}
	var lists []steer.List
	for i, sid := range sids {
		lists = append(lists, steer.List{Name: fmt.Sprint(i), Segments: []netip.Addr{sid}, Reduced: true, Weight: uint32(i + 1)})
	}
	flows, packets := newHeadend(t, internal, steer.SplitFlow, 0, lists...), newHeadend(t, internal, steer.SplitPacket, 0, lists...)
	taken, turns := map[int]int{}, []int{}
	const count = 6000
	for i := range count {
		p := web6("A")
		p.SrcPort = uint16(i)
		frame := fromClient().Frame(t, p.Bytes(t))
		first, second := flows.Process(external, 0, frame), flows.Process(external, 0, frame)
		if first.Lists[0] != second.Lists[0] {
			t.Fatalf("flow %d changed from list %d to %d", i, first.Lists[0], second.Lists[0])
		}
		taken[first.Lists[0]]++
		turns = append(turns, packets.Process(external, 0, frame).Lists[0])
	}
	for i := range sids {
		if want := count * (i + 1) / 6; taken[i] < want*9/10 || taken[i] > want*11/10 {
			t.Errorf("list %d has %d flows, want about %d", i, taken[i], want)
		}
	}
	if !slices.Equal(turns[:12], []int{2, 1, 0, 2, 1, 2, 2, 1, 0, 2, 1, 2}) {
		t.Errorf("turns %v", turns[:12])
	}
}

// TestHeadendTooBig: a packet that does not fit its path, or one of them, is answered with what would.
func TestHeadendTooBig(t *testing.T) {
	three := packettest.SteeredLists()[2]
	overhead := 40 + 8 + 3*16
	for name, test := range map[string]struct {
		action steer.Action
		mtu    uint16
		want   int
	}{
		"by the next hop":         {steer.Path, 0, 1500 - overhead},
		"by one of two next hops": {steer.Mirror, 0, 1500 - overhead},
		"by the policy":           {steer.Mirror, 1300, 1300},
	} {
		one := packettest.SteeredLists()[0]
		lists := []steer.List{steerList(three), steerList(one)}
		for _, packet := range []inner{web4("A"), web6("A")} {
			h := newHeadend(t, internal, test.action, test.mtu, lists...)
			packet.Payload = make([]byte, test.want+1-len(packet.Bytes(t)))
			got := h.Process(external, 0, fromClient(7).Frame(t, packet.Bytes(t)))
			if len(got.Results) != 1 || got.Results[0].Verdict != forward.Transmit {
				t.Fatalf("%s: %+v", name, got)
			}
			ip := got.Results[0].Frame[18:]
			header := map[byte]int{4: 20, 6: 40}[ip[0]>>4]
			if mtu := binary.BigEndian.Uint32(ip[header+4:]); mtu != uint32(test.want) || !packettest.SumsRight(ip) {
				t.Errorf("%s: answered MTU %d, want %d: %x", name, mtu, test.want, ip)
			}
			packet.Payload = packet.Payload[1:]
			if got := h.Process(external, 0, fromClient().Frame(t, packet.Bytes(t))); got.Results[0].Verdict != forward.Redirect {
				t.Errorf("%s: one byte less: %+v", name, got)
			}
		}
	}
}

// TestMergeTakesTheFirst: of each kind of list, the first copy is decapsulated and the second dropped; without numbers both pass.
func TestMergeTakesTheFirst(t *testing.T) {
	sid := netip.PrefixFrom(packettest.MergeSID, 80)
	for _, l := range packettest.SteeredLists() {
		for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
			ip := packet.Bytes(t)
			recovery := replicate.NewRecovery(replicate.Settings{HistoryLog2: 10, Bits: replicate.BitsSID, Reset: time.Second})
			m := &forward.Merge{
				Interfaces: map[uint32]struct{}{internal: {}}, Block: mustBlock(t), SIDs: []netip.Prefix{sid},
				Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
				Members:        map[forward.Member]*replicate.Recovery{{SID: sid, Flow: l.Flow}: recovery},
			}
			in := fromClient(5)
			frame := in.Frame(t, l.Arrived(ip, 9, 1, 0x12345, 0, 50).Around(t, ip))
			got := m.Process(internal, 0, frame)
			if !got.Taken {
				t.Fatalf("%s, %s: %+v", l.Name, kind, got)
			}
			wantFrame(t, got.Frame, in.Frame(t, ip))
			want := forward.ReasonDuplicate
			if l.Form == "none" {
				want = forward.ReasonNone
			}
			if got := m.Process(internal, 1, frame); got.Reason != want {
				t.Errorf("%s, %s, the second copy: %s, want %s", l.Name, kind, got.Reason, want)
			}
		}
	}
}
