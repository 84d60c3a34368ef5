package forward_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"

	"sextant/forward"
	"sextant/forward/packettest"
	"sextant/srv6"
)

const (
	ip4 = layers.IPProtocolIPv4
	ip6 = layers.IPProtocolIPv6
)

// hostCase is a frame, and what becomes of it.
type hostCase struct {
	name    string
	ingress uint32 // external unless set
	ip      []byte // in an Ethernet frame
	frame   []byte // instead of ip
	verdict forward.Verdict
	reason  forward.Reason
}

// runHost gives each frame to a host with routes by another interface: what it hands to
// the kernel, it took.
func runHost(t *testing.T, cases []hostCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			frame, ingress := test.frame, test.ingress
			if frame == nil {
				frame = fromClient().Frame(t, test.ip)
			}
			if ingress == 0 {
				ingress = external
			}
			got := checkHost(t, newHost(internal), ingress, time.Minute, frame)
			if got.Verdict != test.verdict || got.Reason != test.reason {
				t.Fatalf("got %v, %v; want %v, %v", got.Verdict, got.Reason, test.verdict, test.reason)
			}
			if got.Taken != (test.verdict == forward.HandToKernel) {
				t.Errorf("taken: %v", got.Taken)
			}
		})
	}
}

// TestHostFrame: what is decided before the extension headers.
func TestHostFrame(t *testing.T) {
	syn4, syn6, other, wire := web4("S").Bytes(t), web6("S").Bytes(t), addr("fcbb:bb00:2::"), fromClient()
	runHost(t, []hostCase{
		{name: "foreign interface", ingress: mixed, ip: to(offerSID).Around(t, syn4), verdict: forward.Pass},
		{name: "no Ethernet header", frame: make([]byte, 13), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "IPv4", ip: syn4, verdict: forward.Pass},
		{name: "IPv4 of version 3", frame: patched(wire.Frame(t, syn4), 14, 0x35), verdict: forward.Pass},
		{name: "three tags", frame: fromClient(1, 2, 3).Frame(t, to(offerSID).Around(t, syn4)), verdict: forward.Pass},
		{name: "IPv6 header cut off", frame: wire.Frame(t, syn6)[:53], verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "IPv6 of version 4", frame: patched(wire.Frame(t, syn6), 14, 0x40), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
		{name: "IPv6 behind the frame", frame: patched(wire.Frame(t, syn6), 18, 1), verdict: forward.Drop, reason: forward.ReasonBadLength},
		{name: "not a SID", ip: syn6, verdict: forward.Pass},
		{name: "not a SID, with a long chain", ip: web6("S").Behind(dst, chainOf(9, tcp)).Bytes(t), verdict: forward.Pass},
		{name: "SID of another", ip: to(other).From("2001:db8::1").Around(t, syn4), verdict: forward.Pass},
		{name: "from outside of the domain", ip: to(offerSID).From("2001:db8::1").Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonOutsideDomain},
		{name: "from a SID", ip: to(dt46SID).From("fcbb:bb00:2::").Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonOutsideDomain},
		{name: "guard before the walk", ip: to(offerSID).From("2001:db8::1").With(dst, chainOf(9, ip4)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonOutsideDomain},
	})
}

// TestHostExtensions: the outer extension headers.
func TestHostExtensions(t *testing.T) {
	syn4, other := web4("S").Bytes(t), addr("fcbb:bb00:2::")
	runHost(t, []hostCase{
		{name: "eight extension headers", ip: to(offerSID).With(dst, chainOf(7, rout), srh(ip4, 0, 0, other)).Around(t, syn4), verdict: forward.HandToKernel},
		{name: "nine extension headers", ip: to(offerSID).With(dst, chainOf(8, rout), srh(ip4, 0, 0, other)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonExtensionChain},
		{name: "nine for DT", ip: to(dt46SID).With(dst, chainOf(9, ip4)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonExtensionChain},
		{name: "atomic fragment", ip: to(offerSID).With(frag, fragment(ip4, 6)).Around(t, syn4), verdict: forward.HandToKernel},
		{name: "fragment", ip: to(offerSID).With(frag, fragment(ip4, 1)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "foreign routing header", ip: to(offerSID).With(rout, routing(ip4, 3, 0, 1)).Around(t, syn4), verdict: forward.HandToKernel},
		{name: "foreign routing header with segments left", ip: to(offerSID).With(rout, routing(ip4, 3, 1, 1)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonRoutingHeader},
		{name: "routing header before what is cut off", ip: to(offerSID).With(rout, routing(dst, 0, 1, 1)).Around(t, syn4[:7]), verdict: forward.Drop, reason: forward.ReasonRoutingHeader},
	})
}

// TestHostSRH: the segment routing header (RFC 8754 section 4.3.1.1).
func TestHostSRH(t *testing.T) {
	syn4, other := web4("S").Bytes(t), addr("fcbb:bb00:2::")
	runHost(t, []hostCase{
		{name: "SRH cut off", ip: to(offerSID).With(rout, srh(ip4, 0, 0, other)[:16]).Around(t, syn4[:7]), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "SRH of 8 bytes", ip: to(offerSID).With(rout, srh(ip4, 0, 0)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadSRH},
		{name: "SRH of 16 bytes", ip: to(offerSID).With(rout, patched(append(srh(ip4, 0, 0), make([]byte, 8)...), 1, 1)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadSRH},
		{name: "last entry behind the SRH", ip: to(offerSID).With(rout, srh(ip4, 0, 1, other)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadSRH},
		{name: "last entry 255", ip: to(offerSID).With(rout, srh(ip4, 0, 255, other)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadSRH},
		{name: "segments left behind the last entry", ip: to(offerSID).With(rout, srh(ip4, 3, 1, other, other)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadSRH},
		{name: "a list that is reduced", ip: to(offerSID).With(rout, srh(ip4, 2, 1, other, other)).Around(t, syn4), verdict: forward.Redirect},
		{name: "segments left 255", ip: to(offerSID).With(rout, srh(ip4, 255, 0, other)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadSRH},
		{name: "TLVs behind the segments", ip: to(offerSID).With(rout, patched(srh(ip4, 1, 0, other, other), 24, 4, 14)).Around(t, syn4), verdict: forward.Redirect},
		{name: "a second SRH", ip: to(offerSID).With(rout, srh(rout, 0, 0, other), srh(ip4, 0, 0, other)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadSRH},
		{name: "a second SRH cut off", ip: to(offerSID).With(rout, srh(rout, 0, 0, other), srh(ip4, 0, 0, other)[:16]).Around(t, syn4[:7]), verdict: forward.Drop, reason: forward.ReasonTruncated},
	})
}

// TestDecapsulate: End.DT4, End.DT6 and End.DT46.
func TestDecapsulate(t *testing.T) {
	syn4, syn6, other := web4("S").Bytes(t), web6("S").Bytes(t), addr("fcbb:bb00:2::")
	runHost(t, []hostCase{
		{name: "DT4", ip: to(dt4SID).Around(t, syn4), verdict: forward.HandToKernel},
		{name: "DT4 of IPv6", ip: to(dt4SID).Around(t, syn6), verdict: forward.Drop, reason: forward.ReasonUpperLayer},
		{name: "DT6", ip: to(dt6SID).Around(t, syn6), verdict: forward.HandToKernel},
		{name: "DT6 of IPv4", ip: to(dt6SID).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonUpperLayer},
		{name: "DT46 of IPv4", ip: to(dt46SID).Around(t, syn4), verdict: forward.HandToKernel},
		{name: "DT46 of IPv6", ip: to(dt46SID).Around(t, syn6), verdict: forward.HandToKernel},
		{name: "DT46 of nothing", ip: to(dt46SID).With(dst, ext(59, 0)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonUpperLayer},
		{name: "DT46 with segments left 0", ip: to(dt46SID).With(rout, srh(ip6, 0, 0, other)).Around(t, syn6), verdict: forward.HandToKernel},
		{name: "DT46 with segments left", ip: to(dt46SID).With(rout, srh(ip6, 1, 0, other)).Around(t, syn6), verdict: forward.Drop, reason: forward.ReasonSegmentsLeft},
		{name: "DT46 with an argument", ip: to(addr("fcbb:bb00:1:d46:2::")).Around(t, syn6), verdict: forward.Drop, reason: forward.ReasonSegmentsLeft},
		{name: "DT46 with the last bit set", ip: to(addr("fcbb:bb00:1:d46::1")).Around(t, syn6), verdict: forward.Drop, reason: forward.ReasonSegmentsLeft},
		{name: "segments left before the upper layer", ip: to(addr("fcbb:bb00:1:d4:2::")).Around(t, syn6), verdict: forward.Drop, reason: forward.ReasonSegmentsLeft},
		{name: "DT46 of 19 bytes", ip: to(dt46SID).Around(t, syn4[:19]), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "DT46 of 20 bytes", ip: to(dt46SID).Around(t, syn4[:20]), verdict: forward.HandToKernel},
		{name: "DT46 of 39 bytes", ip: to(dt46SID).Around(t, syn6[:39]), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "DT46 of IPv4 said to be IPv6", ip: to(dt46SID).With(dst, ext(ip6, 0)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
		{name: "DT46 of IPv6 said to be IPv4", ip: to(dt46SID).With(dst, ext(ip4, 0)).Around(t, syn6), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
	})
}

// TestOfferMalformed: what End.OFFER does not look at any further, and what it only just does.
func TestOfferMalformed(t *testing.T) {
	syn4, syn6, carrier, other := web4("S").Bytes(t), web6("S").Bytes(t), addr("fcbb:bb00:1:2::"), addr("fcbb:bb00:2::")
	runHost(t, []hostCase{
		{name: "OFFER of nothing", ip: to(offerSID).With(dst, ext(59, 0)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonUpperLayer},
		{name: "OFFER of TCP", ip: to(carrier).With(dst, ext(tcp, 0)).Around(t, syn4), verdict: forward.Drop, reason: forward.ReasonUpperLayer},
		{name: "OFFER of 19 bytes", ip: to(carrier).Around(t, syn4[:19]), verdict: forward.Drop, reason: forward.ReasonTruncated},
		{name: "OFFER of IPv6 said to be IPv4", ip: to(carrier).With(dst, ext(ip4, 0)).Around(t, syn6), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
		{name: "OFFER of IHL 4", ip: to(carrier).Around(t, patched(syn4, 0, 0x44)), verdict: forward.Drop, reason: forward.ReasonBadIPHeader},
		{name: "OFFER of more than the outer packet", ip: to(offerSID).Around(t, patched(syn4, 3, 41)), verdict: forward.Drop, reason: forward.ReasonBadLength},
		{name: "OFFER of less than the outer packet", ip: to(offerSID).Around(t, append(bytes.Clone(syn4), 1, 2)), verdict: forward.HandToKernel},
		{name: "OFFER of a fragment", ip: to(carrier).Around(t, patched(syn4, 6, 0x20)), verdict: forward.Drop, reason: forward.ReasonFragment},
		{name: "OFFER of bad TCP", ip: to(offerSID).Around(t, patched(syn4, 32, 0x40)), verdict: forward.Drop, reason: forward.ReasonBadTransport},
		{name: "OFFER of nine extension headers", ip: to(carrier).Around(t, web6("S").Behind(dst, chainOf(9, tcp)).Bytes(t)), verdict: forward.Drop, reason: forward.ReasonExtensionChain},
		{name: "OFFER of eight in eight", ip: to(offerSID).With(dst, chainOf(8, ip6)).Around(t, web6("S").Behind(dst, chainOf(8, tcp)).Bytes(t)), verdict: forward.HandToKernel},
		{name: "OFFER of an SRH that is done", ip: to(offerSID).Around(t, web6("S").Behind(rout, srh(tcp, 0, 9)).Bytes(t)), verdict: forward.HandToKernel},
		{name: "OFFER of an SRH with segments left", ip: to(offerSID).Around(t, web6("S").Behind(rout, srh(tcp, 1, 0, other)).Bytes(t)), verdict: forward.Drop, reason: forward.ReasonRoutingHeader},
		{name: "routing header before a fragment", ip: to(offerSID).Around(t, web6("S").Behind(rout, routing(frag, 0, 1, 0), fragment(tcp, 1)).Bytes(t)), verdict: forward.Drop, reason: forward.ReasonRoutingHeader},
	})
}

// TestHostForeignBehavior: a SID of a behavior that hosts do not have decapsulates nothing.
func TestHostForeignBehavior(t *testing.T) {
	host := newHost(internal)
	host.SIDs = []forward.LocalSID{{Prefix: netip.PrefixFrom(classicSID, 128), Behavior: srv6.End}}
	got := processHost(t, host, to(classicSID).Around(t, web4("A").Bytes(t)))
	if got.Verdict != forward.Drop || got.Reason != forward.ReasonUpperLayer {
		t.Errorf("got %v, %v; want a drop for upper_layer", got.Verdict, got.Reason)
	}
}

// TestHostCut cuts packets everywhere: a cut frame lies about its length; with an outer
// length that agrees, a header that is cut is missed, and so is what the inner one claims.
func TestHostCut(t *testing.T) {
	for kind, packet := range packettest.Kinds(web4("A"), web6("A")) {
		t.Run(kind, func(t *testing.T) {
			ip := packet.Bytes(t)
			headers := 40 + 8 + 24 // outer header, options, SRH with one segment
			around := to(offerSID).With(dst, ext(rout, 0), srh(innerProtocol(ip), 0, 0, offerSID)).Around(t, ip)
			frame := fromClient(100).Frame(t, around)
			host := newHost(internal)
			for n := range len(frame) {
				want := forward.ReasonBadLength
				if n < 18+40 {
					want = forward.ReasonTruncated
				}
				if got := host.Process(external, 0, frame[:n]); got.Reason != want {
					t.Errorf("%d of %d bytes: %v, want %v", n, len(frame), got.Reason, want)
				}
			}
			fixed := headers + 40
			if ip[0]>>4 == 4 {
				fixed = headers + int(ip[0]&0xf)*4
			}
			for n := 40; n < len(around); n++ {
				want := forward.ReasonBadLength
				if n < fixed {
					want = forward.ReasonTruncated
				}
				short := patched(around[:n], 4, byte((n-40)>>8), byte(n-40))
				if got := processHost(t, host, short); got.Reason != want {
					t.Errorf("packet of %d, not %d bytes: %v, want %v", n, len(around), got.Reason, want)
				}
			}
		})
	}
}
