package datapath

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/datapath/packettest"
	"sextant/te/frer"
	"sextant/te/srpolicy"
)

// BenchmarkSteer prints what replication and elimination cost, beside a single encapsulation and
// decapsulation. Method and figures: docs/results/benchmarks.md.
func BenchmarkSteer(b *testing.B) {
	w := newWorld(b)
	oneCPU(b)
	addRoute(b, "fcbb:bb00::/32", "fd00:5e:1::2", 0)
	head, inside := headendRows(b, w)
	drivers := []*benchDriver{newWholeDriver(b, w.near), newWholeDriver(b, inside)}
	bare := benchRow{name: "bare encapsulation", program: drivers[0].Programs[benchProgBare],
		frame: head[0].frame, verdict: xdpTransmit}
	rows := slices.Concat([]benchRow{bare}, head, mergeRows(b, w))
	costs := make([][]cost, len(rows))
	for range *benchPasses {
		for i, r := range rows {
			driver := drivers[0]
			if r.name == rowCopy {
				driver = drivers[1]
			}
			costs[i] = append(costs[i], driver.measure(b, r))
		}
	}
	printRows(rows, costs)
}

// newWholeDriver is a driver for programs that take packets in one piece: the kernel lets a program
// call only its like.
func newWholeDriver(t testing.TB, ingress int) *benchDriver {
	t.Helper()
	spec, err := loadBench()
	must(t, err)
	for _, program := range spec.Programs {
		program.Flags &^= unix.BPF_F_XDP_HAS_FRAGS
	}
	collection, err := ebpf.NewCollection(spec)
	must(t, err)
	t.Cleanup(collection.Close)
	return &benchDriver{Collection: collection, ingress: ingress}
}

const (
	rowCopy     = "replicate: each copy (2 SIDs, TLV)"
	benchRound  = 4096 // numbers until the driver starts again
	benchBits   = 12   // of a number, so that it goes round with the driver
	benchPolicy = 7
)

var benchVia = netip.MustParseAddr("fcbb:bb00:1:e::")

// benchTable is a table of one policy, which has all traffic.
func benchTable(t testing.TB, h *Headend, action srpolicy.Action, copies int,
	form srpolicy.Redundancy) srpolicy.Table {
	t.Helper()
	var lists []srpolicy.List
	for i := range copies {
		lists = append(lists, srpolicy.List{Segments: []netip.Addr{benchVia, mergeSID1.Addr()},
			Redundancy: form, Flow: uint32(i + 1)})
	}
	policy := srpolicy.Policy{Name: "p", Index: benchPolicy,
		Paths: []srpolicy.CandidatePath{{Action: action, Lists: lists}}}
	table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "p"}}, []srpolicy.Policy{policy},
		h.Source(), nil)
	must(t, err)
	return table
}

// benchGroup has all flows choose of a group of one list, and remember it.
func benchGroup(t testing.TB, h *Headend) {
	t.Helper()
	list := benchTable(t, h, srpolicy.Path, 1, srpolicy.None)[0].Lists[0]
	must(t, h.SetTable(nil))
	must(t, errors.Join(h.SetGroups([]Group{{Prefix: netip.PrefixFrom(hostVIPv6, 128),
		Lists: []srpolicy.Header{list}, Weights: []uint32{1}, Hold: time.Hour}})...))
}

// headendRows returns the rows, and the interface where copies come out of the loop.
func headendRows(t testing.TB, w *world) ([]benchRow, int) {
	t.Helper()
	start := func(spread int) *Headend {
		h, err := OpenHeadend(w.dir, HeadendConfig{
			Flows: spread, Spread: spread,
			Domain: Domain{
				Secret: testSecret,
				Source: netip.MustParseAddr("fd00:5e::1"),
			},
			HopLimit:   63,
			Interfaces: []HeadendInterface{{Name: "near"}},
		})
		must(t, err)
		t.Cleanup(h.Close)
		must(t, h.setPorts([]Attachment{{On: "near", Index: w.near, Mode: Native}}))
		return h
	}
	open := func(action srpolicy.Action, copies int, form srpolicy.Redundancy) *Headend {
		h := start(0)
		must(t, h.SetTable(benchTable(t, h, action, copies, form)))
		return h
	}
	const flows = 1 << 14
	arriving := benchArriving(t, benchACK(benchClientV6, hostVIPv6), flows)
	of := func(name string, h *Headend, verdict uint32, counted string) benchRow {
		return benchRow{name: name, program: h.programs[Internal], frame: arriving,
			verdict: verdict, counted: benchOutcome(t, h.collection, counted)}
	}
	plain, numbered := open(srpolicy.Path, 1, srpolicy.None), open(srpolicy.Path, 1, srpolicy.TLV)
	group := start(2 * flows)
	benchGroup(t, group)
	two, three := open(srpolicy.Mirror, 2, srpolicy.TLV), open(srpolicy.Mirror, 3, srpolicy.TLV)
	one := of("the same, one flow", group, xdpTransmit, "transmitted")
	one.frame = benchArriving(t, benchACK(benchClientV6, hostVIPv6), 1)
	copied := of(rowCopy, two, xdpRedirect, "redirected")
	copied.frame = benchCopy(t, two.programs[Internal], w, arriving)
	return []benchRow{
		of("encapsulate (2 SIDs)", plain, xdpTransmit, "transmitted"),
		of("encapsulate (2 SIDs), of a group", group, xdpTransmit, "transmitted"),
		one,
		of("encapsulate (2 SIDs, TLV)", numbered, xdpTransmit, "transmitted"),
		of("replicate: number, and 2 into the loop", two, xdpRedirect, "copied"),
		of("replicate: number, and 3 into the loop", three, xdpRedirect, "copied"),
		copied,
	}, two.loop.inner
}

// benchCopy is a packet as it comes out of the loop, of another number each time: those are where
// the driver has ports.
func benchCopy(t testing.TB, program *ebpf.Program, w *world, arriving benchFrame) benchFrame {
	t.Helper()
	_, note := newRunner(program, w.near).run(t, arriving.octets)
	const numberAt = 24 // struct copy_note
	return benchFrame{octets: slices.Clone(note), source: ethernetHeader + 4 + 8, ports: numberAt,
		flows: benchRound, order: true}
}

func mergeRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	merges := newTwoMerges(t, w)
	settings := recoverySettingsOf(Instance{Rules: frer.Settings{HistoryLog2: 10, Bits: benchBits,
		Reset: 1 << 62}})
	must(t, merges.program.maps["instances"].Put(uint32(0), settings))
	numbered := func(form string, flows int) benchFrame {
		for _, l := range packettest.SteeredLists() {
			if l.Form != form || len(l.Segments) != 2 {
				continue
			}
			l.Flow = 1
			ip := benchPacket(t, benchACK(benchClientV6, hostVIPv6))
			outer := l.Arrived(ip, 0, 0, 1, 0, 60)
			outer.Dst = mergeSID1.Addr()
			f := benchFrame{octets: benchLink.Frame(t, outer.Around(t, ip)),
				source: ethernetHeader + 16 + 4, flows: flows, order: true}
			at := ethernetHeader + ipv6Header + 8 + 2*16 // of the TLV
			copy(f.octets[at+4:], []byte{0, 0, 0, 1})    // flow
			f.ports = at + 8 + 2                         // the low half of the number
			return f
		}
		t.Fatalf("no list of form %s", form)
		return benchFrame{}
	}
	of := func(name string, frame benchFrame, verdict uint32, counted func() uint64) benchRow {
		return benchRow{name: name, program: merges.program.programs["merge"], frame: frame,
			verdict: verdict, counted: counted}
	}
	taken := benchOutcome(t, merges.program.collection, "taken")
	late := numbered("tlv", 1) // the number has come in the round before
	late.octets[late.ports], late.octets[late.ports+1] = byte((benchRound-1)>>8),
		byte((benchRound-1)&0xff)
	plain := numbered("tlv", 1)
	plain.octets[ethernetHeader+ipv6Header+8+2*16] = 125 // a TLV that means nothing here
	return []benchRow{
		of("decapsulate (SRH)", plain, xdpPass, taken),
		of("eliminate: the first copy", numbered("tlv", benchRound), xdpPass, taken),
		of("eliminate: another copy", late, xdpDrop,
			func() uint64 { return dropped(t, merges.program.collection, "duplicate") }),
	}
}

func dropped(t testing.TB, c *collection, reason string) uint64 {
	t.Helper()
	drops, err := c.Drops()
	must(t, err)
	for _, d := range drops {
		if d.Name == reason {
			return d.Packets
		}
	}
	t.Fatalf("no reason %s", reason)
	return 0
}
