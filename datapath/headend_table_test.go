package datapath

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"

	"sextant/datapath/packettest"
	"sextant/te/srpolicy"
)

// twoTables are tables by which a packet is dropped, in the one by the last rule, in the other by
// the first. All other rules send packets away, and do not choose it, or come too late: it is sent
// if it meets rules of both tables.
func twoTables(t *testing.T, source srpolicy.Source) (tables [2]srpolicy.Table) {
	t.Helper()
	lists := []srpolicy.List{{Segments: []netip.Addr{netip.MustParseAddr("fcbb:bb00:1:e::")}}}
	policies := []srpolicy.Policy{
		{Name: "drop", Index: 0, DropIfInvalid: true},
		{Name: "send", Index: 1, Paths: []srpolicy.CandidatePath{
			{Name: "only", Action: srpolicy.Path, Lists: lists}}},
	}
	rules := [2][]srpolicy.Rule{make([]srpolicy.Rule, srpolicy.MaxRules),
		make([]srpolicy.Rule, srpolicy.MaxRules)}
	for i := range srpolicy.MaxRules {
		rules[0][i].Policy, rules[1][i].Policy = "send", "send"
		rules[0][i].Match.Source = netip.MustParsePrefix("2001:db8:ffff::/48") // of nobody here
	}
	rules[0][srpolicy.MaxRules-1] = srpolicy.Rule{Policy: "drop"}
	rules[1][0].Policy = "drop"
	for i := range tables {
		var err error
		tables[i], err = srpolicy.Compile(rules[i], policies, source, nil)
		must(t, err)
	}
	return tables
}

// TestHeadendPacketsMeetOneTable: whenever the table is replaced, a packet meets the old one or the
// new one. The kernel itself runs the program again and again, so that most replacements come
// within a packet.
func TestHeadendPacketsMeetOneTable(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	h := newTwoHeadends(t, w, External).program
	tables := twoTables(t, h.Source())
	must(t, h.SetTable(tables[1]))
	frame := packettest.Link{Src: routerMAC, Dst: nearMAC}.Frame(t,
		packettest.Web6("A").To(netip.MustParseAddr("2001:db8:80::80"), 80).Bytes(t))
	const replacements, packets = 100, 1000
	var done atomic.Bool
	w.onTwoCPUs(t, func(worker int) {
		if worker == 0 {
			defer done.Store(true)
			for i := range replacements {
				if err := h.SetTable(tables[i%2]); err != nil {
					t.Error(err)
				}
			}
			return
		}
		for over := false; !over; over = done.Load() {
			if _, err := h.programs[External].Run(&ebpf.RunOptions{
				Data: frame, Repeat: packets,
				Context: xdpContext{DataEnd: uint32(len(frame)), Ingress: uint32(w.near)},
			}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	sent, err := h.ListTraffic(1)
	must(t, err)
	if sent[0].Packets != 0 {
		t.Errorf("in %d replacements %d packets met rules of both tables", replacements,
			sent[0].Packets)
	}
	drops, err := h.Drops()
	must(t, err)
	for _, d := range drops {
		if d.Name == "no_path" && d.Packets < packets {
			t.Errorf("%d packets met a table", d.Packets)
		}
	}
}
