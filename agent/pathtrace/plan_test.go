package pathtrace

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"sextant/packet/cflb"
)

// A probe is a whole SYN, checksum included; the sums were added up elsewhere.
func TestOctets(t *testing.T) {
	for _, test := range []struct {
		src, dst string
		want     string
	}{
		{"192.0.2.1", "198.51.100.2",
			"45000028000000000906" + "0000" + "c0000201c6336402" + "9c40005001020304" +
				"00000000500204001f15" + "0000"},
		{"2001:db8::1", "2001:db8::2",
			"6000abcd00140609" + "20010db8000000000000000000000001" +
				"20010db8000000000000000000000002" + "9c40005001020304" +
				"0000000050020400afd7" + "0000"},
	} {
		p := cflb.Packet{Src: netip.MustParseAddr(test.src), Dst: netip.MustParseAddr(test.dst),
			Protocol: protocolTCP, SrcPort: 40000, DstPort: 80, HopLimit: 9, FlowLabel: 0xabcd}
		if got := hex.EncodeToString(octets(p, 0x01020304)); got != test.want {
			t.Errorf("%s:\n%s, want\n%s", test.src, got, test.want)
		}
	}
}

// Whatever comes, reading ends, and takes no answer from elsewhere for the destination's.
func FuzzRead(f *testing.F) {
	syn := octets(cflb.Packet{Src: netip.MustParseAddr("192.0.2.1"),
		Dst: netip.MustParseAddr("198.51.100.2")}, 7)
	f.Add(byte(protocolICMP), append([]byte{11, 0, 0, 0, 0, 0, 0, 0}, syn...))
	f.Add(byte(protocolICMPv6), append([]byte{3, 0, 0, 0, 0, 0, 0, 0}, syn...))
	f.Add(byte(protocolTCP), syn[20:])
	f.Fuzz(func(t *testing.T, protocol byte, octets []byte) {
		router := netip.MustParseAddr("192.0.2.77")
		for _, dst := range []string{"198.51.100.2", "2001:db8::2"} {
			p := Plan{Dst: netip.MustParseAddr(dst)}
			if a, ok := p.read(router, protocol, octets); ok && a.Arrived {
				t.Errorf("%x of protocol %d arrived at %s", octets, protocol, a.From)
			}
		}
	})
}
