package collector_test

import (
	"encoding/binary"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/controller/collector"
	"sextant/packet/telemetry"
)

const (
	benchFlows = 1024
	benchNodes = 48 // of which a flow passes 3
)

// benchDatagrams are datagrams with some reports each: a packet in SRv6 with INT-MD of 3 nodes, TCP
// inside, of another flow each time.
func benchDatagrams(b *testing.B, reports int) (datagrams [][]byte) {
	one := telemetry.Report{InType: telemetry.InIPv6}
	for f := 0; f < benchFlows; f += reports {
		datagram, err := telemetry.Group{Node: 1}.Append(nil)
		for i := range reports {
			one.Inner = fromHex(b, carried)
			for hop := range 3 { // behind IPv6, UDP, shim and header
				binary.BigEndian.PutUint32(one.Inner[40+8+16+8*hop:],
					uint32(1+(f+i+17*hop)%benchNodes))
			}
			binary.BigEndian.PutUint16(one.Inner[len(one.Inner)-20:], uint16(f+i))
			if err == nil {
				datagram, err = one.Append(datagram)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
		datagrams = append(datagrams, datagram)
	}
	return datagrams
}

// threadSeconds is the processor time of the calling thread.
func threadSeconds(b *testing.B) float64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// How many reports a core takes. Time is the thread's own, so that others on the machine count
// little.
func BenchmarkReports(b *testing.B) {
	for _, bench := range []struct {
		name  string
		count int
	}{{"single", 1}, {"coalesced", 8}} {
		b.Run(bench.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			datagrams := benchDatagrams(b, bench.count)
			table := collector.NewTable(collector.Options{})
			b.ReportAllocs()
			b.ResetTimer()
			begin := threadSeconds(b)
			for i := range b.N {
				datagram := datagrams[i%len(datagrams)]
				number := uint32(i) & (1<<telemetry.SequenceBits - 1)
				binary.BigEndian.PutUint32(datagram, 2<<28|number) // version and hardware before it
				table.Datagram(from, datagram, int64(i))
			}
			seconds := threadSeconds(b) - begin
			if table.Samples != 3*uint64(b.N)*uint64(bench.count) ||
				table.Paths() != min(benchFlows, b.N*bench.count) {
				b.Fatalf("%d samples, %d paths", table.Samples, table.Paths())
			}
			b.ReportMetric(float64(table.Reports)/seconds, "reports/cpu-s")
			b.ReportMetric(float64(table.Samples)/seconds, "samples/cpu-s")
		})
	}
}
