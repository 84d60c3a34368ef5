package datapath

import (
	"net/netip"
	"testing"

	"sextant/datapath/model"
	"sextant/packet/cflb"
)

// BenchmarkCFLB measures what a packet costs at a router with four equal next hops: hashed as
// without controllable load balancing, and under each cipher. Passes of all rows alternate; the
// median of each row is shown, without the driver.
func BenchmarkCFLB(b *testing.B) {
	w := newWorld(b)
	oneCPU(b)
	driver := newBenchDriver(b, w.near)
	var rows []cflbBenchRow
	for _, family := range []string{"v4", "v6"} {
		for _, p := range []struct {
			name string
			cflb.Parameters
		}{
			{"hash", cflb.Parameters{}},
			{"ports-feistel", cflb.Defaults(cflb.BothPorts, 4, [16]byte{1})},
			{"ports-rc5", cflb.Parameters{Fields: cflb.BothPorts, Radix: 4, Cipher: cflb.RC5}},
			{"ports-skip32", cflb.Parameters{Fields: cflb.BothPorts, Radix: 4,
				Cipher: cflb.Skip32}},
			{"ports-radix5", cflb.Parameters{Fields: cflb.BothPorts, Radix: 5}},
			{"ports-radix8", cflb.Parameters{Fields: cflb.BothPorts, Radix: 8}},
			{"label+port", cflb.Defaults(cflb.FlowLabelSourcePort, 4, [16]byte{1})},
		} {
			if family == "v6" || !p.Fields.HasLabel() {
				rows = append(rows, newCFLBBenchRow(b, w, family, p.name, p.Parameters))
			}
		}
	}
	const repeat, passes = 200000, 9
	for b.Loop() {
		idle := make([]float64, passes)
		times := make([][]float64, len(rows))
		for pass := range passes {
			idle[pass], _ = driver.run(b, driver.Programs[benchProgNothing], rows[0].frame, repeat)
			for i, row := range rows {
				ns, verdict := driver.run(b, row.router.programs["cflb"], row.frame, repeat)
				if verdict != xdpTransmit {
					b.Fatalf("%s: verdict %d", row.name, verdict)
				}
				times[i] = append(times[i], ns)
			}
		}
		for i, row := range rows {
			b.ReportMetric(median(times[i])-median(idle), "ns/"+row.name)
		}
	}
}

type cflbBenchRow struct {
	name   string
	router *CFLB
	frame  benchFrame
}

func newCFLBBenchRow(b *testing.B, w *world, family, name string, p cflb.Parameters) cflbBenchRow {
	b.Helper()
	codec, err := cflb.New(p)
	must(b, err)
	m := &model.CFLB{IPv4: codec, IPv6: codec, Router: 7}
	r := openCFLB(b, w, m, false)
	hops := make([]model.CFLBNextHop, 4)
	for i := range hops {
		hops[i] = model.CFLBNextHop{Interface: uint32(w.near), Weight: 1, MTU: 1500, Ready: true,
			Destination: [6]byte{2, 0, 0, 0, 0, byte(i)}}
	}
	client, server := benchClientV4, netip.MustParseAddr("203.0.113.9")
	if family == "v6" {
		client, server = benchClientV6, netip.MustParseAddr("2001:db8:5::9")
	}
	bits := server.BitLen() / 2
	must(b, r.SetTable(model.CFLBTable{
		Groups: [][]model.CFLBNextHop{hops},
		Routes: map[netip.Prefix]int{netip.PrefixFrom(server, bits).Masked(): 0},
	}))
	return cflbBenchRow{family + "-" + name, r, benchArriving(b, benchACK(client, server), 1<<20)}
}
