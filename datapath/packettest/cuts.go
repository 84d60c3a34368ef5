package packettest

import (
	"bytes"
	"fmt"
	"testing"
)

// fixedLength is the length of an IP header, with the options of IPv4.
func fixedLength(ip []byte) int {
	if ip[0]>>4 == 4 {
		return int(ip[0]&0xf) * 4
	}
	return 40
}

// cutFrames are all beginnings of a frame: where the fixed header is cut, that is missed, and later
// the length is a lie.
func cutFrames(frame []byte, fixedEnd int) []Case {
	cases := make([]Case, len(frame))
	for n := range frame {
		want := "bad_length"
		if n < fixedEnd {
			want = "truncated"
		}
		cases[n] = Case{Name: fmt.Sprintf("%d of %d bytes", n, len(frame)), Side: External,
			Frame: frame[:n], Want: want}
	}
	return cases
}

// EdgeCuts cuts one of [Kinds] everywhere: as a frame, and as a packet whose IP header agrees.
func EdgeCuts(t testing.TB, packet Packet) []Case {
	t.Helper()
	ip := packet.Bytes(t)
	fixed := fixedLength(ip)
	cases := cutFrames(FromClient(100, 200).Frame(t, ip), 22+fixed)
	for n := fixed; n < len(ip); n++ {
		short := bytes.Clone(ip[:n])
		if ip[0]>>4 == 6 {
			short[4], short[5] = byte((n-40)>>8), byte(n-40)
		} else {
			short = Summed(Patched(short, 2, byte(n>>8), byte(n)))
		}
		cases = append(cases, Case{
			Name: fmt.Sprintf("packet of %d, not %d bytes", n, len(ip)), Side: External,
			Frame: FromClient().Frame(t, short), Want: shortened(packet, len(ip), n),
		})
	}
	return cases
}

// shortened tells what an edge makes of a packet that ends after n bytes of its whole.
func shortened(packet Packet, whole, n int) string {
	end := whole - len(packet.Payload) // of the transport header
	header := 8
	if packet.Protocol != udp {
		header = 20 + 12*len(packet.TCPOptions) // the one that Kinds uses, with padding
	}
	switch {
	case n < end-header && len(packet.Extensions) > 0:
		return "truncated"
	case n < end, packet.Protocol == udp: // which knows its length
		return "bad_transport"
	}
	return "redirect"
}

// HostCuts cuts one of [Kinds] behind outer headers everywhere: as a frame, and as a packet whose
// outer length agrees.
func HostCuts(t testing.TB, packet Packet) []Case {
	t.Helper()
	ip := packet.Bytes(t)
	const headers = 40 + 8 + 24 // outer header, options, SRH with one segment
	around := To(OfferSID).With(dst, Extension(rout, 0),
		SRH(ProtocolOf(ip), 0, 0, OfferSID)).Around(t, ip)
	cases := cutFrames(FromClient(100).Frame(t, around), 18+40)
	for n := 40; n < len(around); n++ {
		want := "bad_length"
		if n < headers+fixedLength(ip) {
			want = "truncated"
		}
		cases = append(cases, Case{
			Name:  fmt.Sprintf("packet of %d, not %d bytes", n, len(around)),
			Frame: FromClient().Frame(t, Patched(around[:n], 4, byte((n-40)>>8), byte(n-40))),
			Want:  want,
		})
	}
	return cases
}
