package model_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/datapath/model"
	"sextant/datapath/packettest"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

var steeredForms = map[string]srpolicy.Redundancy{"none": srpolicy.None, "tlv": srpolicy.TLV,
	"sid": srpolicy.SID}

func steerList(l packettest.Steered) srpolicy.List {
	return srpolicy.List{Name: l.Name, Segments: l.Segments, Reduced: l.Reduced,
		Redundancy: steeredForms[l.Form], Flow: l.Flow}
}

// newHeadend returns a head-end that does one thing with all traffic.
func newHeadend(t testing.TB, egress uint32, action srpolicy.Action, mtu uint16,
	lists ...srpolicy.List) *model.Headend {
	t.Helper()
	path := srpolicy.CandidatePath{Name: "only", Action: action, Lists: lists}
	table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "all"}},
		[]srpolicy.Policy{{Name: "all", Index: 3, MTU: mtu, Paths: []srpolicy.CandidatePath{path}}},
		srpolicy.Source{Addr: edgeAddr, HopLimit: 61, Epoch: 5}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &model.Headend{
		Sides: map[uint32]model.Side{external: model.External, internal: model.Internal,
			mixed: model.Mixed},
		Block: mustBlock(t), Locators: []netip.Prefix{netip.MustParsePrefix("fd00:c0de::/32")},
		Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")}, Table: table,
		Secret: mustSecret(t), HopLimit: 64,
		LoopLink: [12]byte{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2},
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Interface: egress, SrcMAC: [6]byte(egressMAC),
				DstMAC: [6]byte(gatewayMAC), MTU: 1500}
		},
	}
}

// TestHeadendEncapsulates compares the whole frame: each kind of list, every kind of packet, with
// and without VLAN tags and padding, and every way out.
func TestHeadendEncapsulates(t *testing.T) {
	const timestamp = 0xfedcba98
	for _, l := range packettest.SteeredLists() {
		for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
			for _, vlans := range [][]uint16{nil, {100}, {100, 200}} {
				in := fromClient(vlans...)
				in.Padding = []byte("pad")
				for _, way := range []struct {
					verdict model.Verdict
					egress  uint32
					out     link
				}{
					{model.Transmit, external, link{Src: egressMAC, Dst: gatewayMAC, VLANs: vlans,
						Padding: in.Padding}},
					{model.Redirect, internal, link{Src: egressMAC, Dst: gatewayMAC,
						Padding: in.Padding}},
					{model.HandToKernel, foreign, in},
				} {
					h := newHeadend(t, way.egress, srpolicy.Path, 0, steerList(l))
					packet.TrafficClass = 0xb9
					ip := packet.Bytes(t)
					label := uint32(h.FlowHash.Hash(h.Secret, packet.Flow()) & 0xfffff)
					for number := range uint32(2) {
						got := h.Process(external, timestamp, in.Frame(t, ip))
						if len(got.Results) != 1 || got.Results[0].Verdict != way.verdict {
							t.Fatalf("%s, %s: %+v", l.Name, kind, got)
						}
						want := l.Outer(ip, number, timestamp, label, 0xb9, 61).Around(t,
							packettest.Forwarded(ip))
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
	var lists []srpolicy.List
	for _, l := range all {
		lists = append(lists, steerList(l))
	}
	ip := web6("A").Bytes(t)
	for verdict, egress := range map[model.Verdict]uint32{model.Redirect: internal,
		model.HandToKernel: foreign} {
		h := newHeadend(t, egress, srpolicy.Mirror, 0, lists...)
		out := link{Src: egressMAC, Dst: gatewayMAC}
		if verdict == model.HandToKernel {
			out = link{Dst: []byte{1, 1, 1, 1, 1, 1}, Src: []byte{2, 2, 2, 2, 2, 2}}
		}
		label := uint32(h.FlowHash.Hash(h.Secret, web6("A").Flow()) & 0xfffff)
		for number := range uint32(3) {
			got := h.Process(external, 77, fromClient(9).Frame(t, ip))
			if got.Number != uint64(number) || len(got.Results) != len(all) {
				t.Fatalf("%+v", got)
			}
			for i, l := range all {
				if got.Results[i].Verdict != verdict || got.Lists[i] != i {
					t.Errorf("%s: %+v", l.Name, got.Results[i])
				}
				wantFrame(t, got.Results[i].Frame,
					out.Frame(t, l.Outer(ip, number, 77, label, 0, 61).Around(t,
						packettest.Forwarded(ip))))
			}
		}
	}
}

// TestHeadendSplits: a flow stays on its list, and packets take theirs in turn.
func TestHeadendSplits(t *testing.T) {
	sids := []netip.Addr{packettest.ViaSID1, packettest.ViaSID2, packettest.MergeSID}
	var lists []srpolicy.List
	for i, sid := range sids {
		lists = append(lists, srpolicy.List{Name: fmt.Sprint(i), Segments: []netip.Addr{sid},
			Reduced: true, Weight: uint32(i + 1)})
	}
	flows, packets := newHeadend(t, internal, srpolicy.SplitFlow, 0, lists...),
		newHeadend(t, internal, srpolicy.SplitPacket, 0, lists...)
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

// TestHeadendTooBig: a packet that does not fit its path, or one of them, is answered with what
// would.
func TestHeadendTooBig(t *testing.T) {
	three := packettest.SteeredLists()[2]
	overhead := 40 + 8 + 3*16
	for name, test := range map[string]struct {
		action srpolicy.Action
		mtu    uint16
		want   int
	}{
		"by the next hop":         {srpolicy.Path, 0, 1500 - overhead},
		"by one of two next hops": {srpolicy.Mirror, 0, 1500 - overhead},
		"by the policy":           {srpolicy.Mirror, 1300, 1300},
	} {
		one := packettest.SteeredLists()[0]
		lists := []srpolicy.List{steerList(three), steerList(one)}
		for _, packet := range []inner{web4("A"), web6("A")} {
			h := newHeadend(t, internal, test.action, test.mtu, lists...)
			packet.Payload = make([]byte, test.want+1-len(packet.Bytes(t)))
			got := h.Process(external, 0, fromClient(7).Frame(t, packet.Bytes(t)))
			if len(got.Results) != 1 || got.Results[0].Verdict != model.Transmit {
				t.Fatalf("%s: %+v", name, got)
			}
			ip := got.Results[0].Frame[18:]
			header := map[byte]int{4: 20, 6: 40}[ip[0]>>4]
			if mtu := binary.BigEndian.Uint32(ip[header+4:]); mtu != uint32(test.want) ||
				!packettest.SumsRight(ip) {
				t.Errorf("%s: answered MTU %d, want %d: %x", name, mtu, test.want, ip)
			}
			packet.Payload = packet.Payload[1:]
			if got := h.Process(external, 0,
				fromClient().Frame(t, packet.Bytes(t))); got.Results[0].Verdict != model.Redirect {
				t.Errorf("%s: one byte less: %+v", name, got)
			}
		}
	}
}

// TestMergeTakesTheFirst: of each kind of list, the first copy is decapsulated and the second
// dropped; without numbers both pass.
func TestMergeTakesTheFirst(t *testing.T) {
	sid := netip.PrefixFrom(packettest.MergeSID, 80)
	for _, l := range packettest.SteeredLists() {
		for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
			ip := packet.Bytes(t)
			recovery := frer.NewRecovery(frer.Settings{HistoryLog2: 10, Bits: frer.BitsSID,
				Reset: time.Second})
			m := &model.Merge{
				Interfaces: map[uint32]struct{}{internal: {}}, Block: mustBlock(t),
				SIDs:           []netip.Prefix{sid},
				Infrastructure: []netip.Prefix{netip.MustParsePrefix("fd00:5e::/48")},
				Members:        map[model.Member]*frer.Recovery{{SID: sid, Flow: l.Flow}: recovery},
			}
			in := fromClient(5)
			frame := in.Frame(t, l.Arrived(ip, 9, 1, 0x12345, 0, 50).Around(t, ip))
			got := m.Process(internal, 0, frame)
			if !got.Taken {
				t.Fatalf("%s, %s: %+v", l.Name, kind, got)
			}
			wantFrame(t, got.Frame, in.Frame(t, ip))
			want := model.ReasonDuplicate
			if l.Form == "none" {
				want = model.ReasonNone
			}
			if got := m.Process(internal, 1, frame); got.Reason != want {
				t.Errorf("%s, %s, the second copy: %s, want %s", l.Name, kind, got.Reason, want)
			}
		}
	}
}
