package telemetry_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// A report by hand, from the header types of p4_src/include/headers.p4 and the order in which the
// deparser emits them: report, Ethernet, IPv6, segment routing header, TCP, octet, shim, INT.
const (
	smoothieReport   = "14000043 0000000c 0000abcd 00bc614e "
	smoothieEthernet = "020000000002 020000000001 86dd "
	smoothieIPv6     = "60000000 0050 2b 3f " +
		"20010db8000000010000000000000001 20010db8000000050000000000000005 "
	smoothieSRH = "06 04 04 01 01 00 0000 " +
		"20010db8000000020000000000000002 20010db8000000050000000000000005 "
	smoothieTCP = "9c40 01bb 00000001 00000002 50 10 ffff 0000 0000 "
	smoothieUDP = "9c40 01bb 0058 0000 "
	// 0xb800: node, latency, queue, ingress time: 5 words; two nodes, the newest first
	smoothieINT = "01 00 0d 00  10 00 05 06 b800 0000 " +
		"00000009 00000007 00800003 00000000000f4240 " + // node 9: 7 us, 3 packets and more, 1 ms
		"00000001 00000002 0000000c 00000000000003e8 " // node 1: 2 us, 12 packets and less, 1 us
)

func smoothieSamples() []telemetry.Sample {
	const known = telemetry.FieldNode | telemetry.FieldDelay | telemetry.FieldQueue |
		telemetry.FieldTime
	return []telemetry.Sample{
		{Path: 5, Node: 1, DelayNS: 2000, QueueBytes: 12 * 1500, TimeNS: 1000, Hop: 0,
			Ingress: 1<<32 - 1, Egress: 1<<32 - 1, Known: known},
		{Path: 5, Node: 9, DelayNS: 7000, QueueBytes: 3 * 1500, TimeNS: 1e6, Hop: 1,
			Ingress: 1<<32 - 1, Egress: 1<<32 - 1, Known: known},
	}
}

func TestSmoothieReport(t *testing.T) {
	flowOf := func(dst string, protocol uint8) flow.Tuple {
		return flow.Tuple{Src: netip.MustParseAddr("2001:db8:0:1::1"),
			Dst: netip.MustParseAddr(dst), SrcPort: 40000, DstPort: 443, Protocol: protocol}
	}
	routed := smoothieReport + smoothieEthernet + smoothieIPv6 + smoothieSRH + smoothieTCP
	plain := smoothieReport + smoothieEthernet + strings.Replace(smoothieIPv6, "2b", "11", 1) +
		smoothieUDP
	for name, test := range map[string]struct {
		text    string
		flow    flow.Tuple
		reroute bool
	}{
		"TCP behind a segment routing header": {routed + "01 " + smoothieINT,
			flowOf("2001:db8:0:2::2", 6), true},
		"UDP": {plain + "00 " + smoothieINT, flowOf("2001:db8:0:5::5", 17), false},
	} {
		b := fromHex(t, test.text)
		got, err := telemetry.ParseSmoothieReport(b)
		want := telemetry.SmoothieReport{Hardware: 3, Sequence: 0xabcd, Node: 12,
			IngressUS: 12345678, Tracked: true, Reroute: test.reroute, Flow: test.flow}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(telemetry.SmoothieReport{}),
			cmpopts.EquateComparable(netip.Addr{})); diff != "" || err != nil || got.Nodes() != 2 {
			t.Errorf("%s: %v, %d nodes, %s", name, err, got.Nodes(), diff)
		}
		if diff := cmp.Diff(smoothieSamples(), got.AppendSamples(nil, 5, 1500)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for cut := range b {
			if _, err := telemetry.ParseSmoothieReport(b[:cut]); err == nil {
				t.Fatalf("%s: %d of %d octets are taken for whole", name, cut, len(b))
			}
		}
	}
}

func TestSmoothieReportBroken(t *testing.T) {
	head := smoothieReport + smoothieEthernet + smoothieIPv6 + smoothieSRH + smoothieTCP + "01 "
	for name, text := range map[string]string{
		"version 2":       "2" + head[1:] + smoothieINT,
		"ARP":             strings.Replace(head, "86dd", "0806", 1) + smoothieINT,
		"ICMPv6":          strings.Replace(head, "06 04 04", "3a 04 04", 1) + smoothieINT,
		"INT-MD 2.1":      head + strings.Replace(smoothieINT, "10 00 05", "20 00 05", 1),
		"another shim":    head + "02" + smoothieINT[2:],
		"a short shim":    head + strings.Replace(smoothieINT, "00 0d", "00 02", 1),
		"a long shim":     head + strings.Replace(smoothieINT, "00 0d", "00 0e", 1),
		"half a node":     head + strings.Replace(smoothieINT, "00 0d", "00 0c", 1),
		"fewer words":     head + strings.Replace(smoothieINT, "10 00 05", "10 00 04", 1),
		"instructions":    head + strings.Replace(smoothieINT, "b800", "b880", 1),
		"no instructions": head + strings.Replace(smoothieINT, "05 06 b800", "00 06 0000", 1),
	} {
		if r, err := telemetry.ParseSmoothieReport(fromHex(t, text)); err == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func FuzzParseSmoothieReport(f *testing.F) {
	f.Add(fromHex(f, smoothieReport+smoothieEthernet+smoothieIPv6+smoothieSRH+smoothieTCP+"01 "+
		smoothieINT))
	f.Add(fromHex(f, smoothieReport+smoothieEthernet+strings.Replace(smoothieIPv6, "2b", "11", 1)+
		smoothieUDP+"00 "+smoothieINT))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := telemetry.ParseSmoothieReport(b)
		if err == nil && (r.Nodes() > 84 || len(r.AppendSamples(nil, 0, 1)) != r.Nodes()) {
			t.Fatalf("%d nodes of %d octets", r.Nodes(), len(b))
		}
	})
}
