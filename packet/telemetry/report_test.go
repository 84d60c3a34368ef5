package telemetry_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/telemetry"
)

const (
	ports = telemetry.Interfaces
	both  = telemetry.Interfaces | telemetry.Queue
)

// The examples of section 4 of the Telemetry Report specification 2.0. Its VXLAN example writes a
// Report Length of 31 and a shim length of 7, but its own sum is 33 and its stack is 6 words behind
// 3 of header: 33 and 9 are what it draws. An Ethernet frame in it ends with 2 octets of padding.
// Its example with domain-specific metadata says an MD Length of 2, where 3 words are drawn.
func TestReportExamples(t *testing.T) {
	packet := bytes.Repeat([]byte{0x45}, 40)
	md := telemetry.AppendMetadata(nil, both, telemetry.Metadata{Present: both, Ingress: 7,
		Egress: 1, QueueBytes: 37})
	embedded := append(bytes.Repeat([]byte{0x45}, 28), fromHex(t, `18070006 20000206 90000000
		00000000 00000002 00000025 00000001 00000005`)...)
	vxlan := append(bytes.Repeat([]byte{0x45}, 28), fromHex(t, `140912b5 20000205 c0000000
		00000000 00000003 00010002 00000002 00010002 00000001 00010002`)...)
	tlvs := fromHex(t, "00010009 aabbccdd 200a0000")
	for _, test := range []struct {
		name, head string
		report     telemetry.Report
	}{
		{"IPv4", "140e0220 50000000 00000000 00070001 00000025", telemetry.Report{
			Type: telemetry.RepINT, InType: telemetry.InIPv4, Tracked: true, Bits: both,
			Metadata: md, Inner: packet}},
		{"domain-specific, TLVs", "11120320 5000534d 80000001 00070001 00000025 00000063",
			telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InTLV, Tracked: true,
				Bits: both, DomainID: telemetry.Domain, DSBits: 0x8000, DSStatus: 1,
				Metadata: append(md[:8:8], 0, 0, 0, 99), Inner: append(tlvs, packet...)}},
		{"embedded INT-MD", "14170120 10000000 00000000 00000025", telemetry.Report{
			Type: telemetry.RepINT, InType: telemetry.InIPv4, Tracked: true,
			Bits: telemetry.Queue, Metadata: md[4:], Inner: append(embedded, packet[:20]...)}},
		{"VXLAN", "04210020", telemetry.Report{InType: telemetry.InIPv4, Tracked: true,
			Inner: append(vxlan, bytes.Repeat([]byte{8}, 8+14+20+20+2)...)}},
		{"congested", "15130260 50000000 00000000 00070001 00000025", telemetry.Report{
			Type: telemetry.RepINT, InType: telemetry.InIPv6, Congested: true, Tracked: true,
			Bits: both, Metadata: md, Inner: bytes.Repeat([]byte{0x60}, 60)}},
		{"IOAM", "25020000", telemetry.Report{Type: telemetry.RepIOAM, InType: telemetry.InIPv6,
			Inner: packet[:8]}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := append(fromHex(t, test.head), test.report.Inner...)
			writtenReport(t, test.report, b)
			got, rest, err := telemetry.ParseReport(append(b[:len(b):len(b)], 1, 2))
			if test.report.Metadata == nil {
				test.report.Metadata = []byte{}
			}
			if diff := cmp.Diff(test.report, got); diff != "" || len(rest) != 2 || err != nil {
				t.Fatalf("%d octets left, %v, %s", len(rest), err, diff)
			}
			for cut := range len(b) {
				if _, _, err := telemetry.ParseReport(b[:cut]); !errors.Is(err,
					telemetry.Truncated) {
					t.Fatalf("cut to %d octets: %v", cut, err)
				}
			}
		})
	}
}

func writtenReport(t *testing.T, r telemetry.Report, want []byte) {
	t.Helper()
	b, err := r.Append(nil)
	written(t, b, err, want)
}

func TestGroup(t *testing.T) {
	b := fromHex(t, "20c0abcd 0000000c")
	g, rest, err := telemetry.ParseGroup(b)
	if g != (telemetry.Group{Hardware: 3, Sequence: 0xabcd, Node: 12}) || len(rest) != 0 ||
		err != nil {
		t.Fatal(g, rest, err)
	}
	again, err := g.Append(nil)
	written(t, again, err, b)
}

// A report of 255 words or more runs to the end of the datagram, whatever its last octets are.
func TestReportToTheEnd(t *testing.T) {
	long := telemetry.Report{InType: telemetry.InIPv6, Inner: make([]byte, 1021),
		Metadata: []byte{}}
	b, err := long.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, rest, err := telemetry.ParseReport(b)
	if diff := cmp.Diff(long, got); diff != "" || len(rest) != 0 || err != nil {
		t.Fatal(len(rest), err, diff)
	}
}

func TestCongestion(t *testing.T) {
	want := telemetry.Congestion{IdleGapUS: 300000, FlowHash: 0xfeedbeef}
	b, err := telemetry.Report{Type: telemetry.RepINT, Congested: true, Bits: ports,
		DomainID: telemetry.Domain, DSBits: telemetry.DSIdleGap | telemetry.DSFlowHash,
		Metadata: telemetry.AppendCongestion([]byte{0, 7, 0, 1}, want)}.Append(nil)
	written(t, b, err, fromHex(t, "10050340 4000534d c0000000 00070001 000493e0 feedbeef"))
	r, _, err := telemetry.ParseReport(b)
	if got, ok := r.Congestion(); got != want || !ok || err != nil {
		t.Fatal(got, ok, err)
	}
	r.Congested = false
	if _, ok := r.Congestion(); ok {
		t.Fatal("a report without the Q bit is taken for congestion")
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	report := append(fromHex(t, "15130260 50000000 00000000 00070001 00000025"),
		make([]byte, 60)...)
	md := fromHex(t, "10070028 20000206 90000000 00000000 00000002 00000025 00000001 00000005")
	trace := fromHex(t, "31120000 007b1000 82000000 00000001 00000002")
	samples := make([]telemetry.Sample, 0, 64)
	if n := testing.AllocsPerRun(100, func() {
		r, _, err := telemetry.ParseReport(report)
		m, _, err2 := telemetry.ParseMD(md)
		tr, _, err3 := telemetry.ParseTrace(trace)
		_, _, err4 := telemetry.ParseReport(report[:9])
		r.Baseline()
		to := m.AppendSamples(samples, 1)
		_, err5 := tr.AppendSamples(to, 1)
		if err != nil || err2 != nil || err3 != nil || err4 == nil || err5 != nil {
			t.Fatal(err, err2, err3, err4, err5)
		}
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
