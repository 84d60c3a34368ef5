package linux

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// event is a message as the kernel sends it.
func event(kind byte, attributes ...[]byte) []byte {
	b := []byte{0, 0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, kind, 1, 0, 0}
	for i := 0; i < len(attributes); i += 2 {
		b = binary.NativeEndian.AppendUint16(b, uint16(4+len(attributes[i+1])))
		b = append(append(b, attributes[i][0], 0), attributes[i+1]...)
		b = append(b, make([]byte, -len(b)&3)...)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	return b
}

func established() []byte {
	return event(MPTCPEstablished, []byte{1}, binary.NativeEndian.AppendUint32(nil, 77),
		[]byte{5}, []byte{10, 1, 0, 1}, []byte{7}, []byte{10, 2, 0, 1}, []byte{9},
		[]byte{0xa0, 0x28}, []byte{10}, []byte{0x13, 0x89}, []byte{18}, []byte{1})
}

func TestMPTCPEvents(t *testing.T) {
	got := parseMPTCPEvents(append(established(), event(MPTCPClosed, []byte{1},
		binary.NativeEndian.AppendUint32(nil, 78))...))
	want := []MPTCPEvent{
		{Kind: MPTCPEstablished, Token: 77, Local: netip.MustParseAddrPort("10.1.0.1:41000"),
			Remote: netip.MustParseAddrPort("10.2.0.1:5001"), Server: true},
		{Kind: MPTCPClosed, Token: 78},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool {
		return a == b
	})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whatever comes, reading ends.
func FuzzMPTCPEvents(f *testing.F) {
	f.Add(established())
	cut := established() // ends within the padding of its last attribute
	binary.NativeEndian.PutUint32(cut, uint32(len(cut)-3))
	f.Add(cut[:len(cut)-3])
	f.Fuzz(func(t *testing.T, b []byte) {
		if list := parseMPTCPEvents(b); len(list) > len(b)/20 {
			t.Errorf("%d events in %d octets", len(list), len(b))
		}
	})
}

// socketMessage is a message about a socket, with these attributes of its MPTCP connection.
func socketMessage(family byte, ulp ...[]byte) []byte {
	b := make([]byte, inetDiagMessage)
	b[0] = family
	copy(b[4:], []byte{0xa0, 0x28, 0x13, 0x89})
	copy(b[8:], []byte{10, 1, 0, 1})
	copy(b[24:], []byte{10, 2, 0, 1})
	info := make([]byte, tcpInfoAcked+8)
	info[tcpInfoBackoff] = 3
	binary.NativeEndian.PutUint32(info[tcpInfoAckSilent:], 6000)
	binary.NativeEndian.PutUint64(info[tcpInfoAcked:], 1<<33)
	attribute := func(kind uint16, value []byte) []byte {
		a := binary.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
		a = append(binary.NativeEndian.AppendUint16(a, kind), value...)
		return append(a, make([]byte, -len(a)&3)...)
	}
	var of []byte
	for i := 0; i < len(ulp); i += 2 {
		of = append(of, attribute(uint16(ulp[i][0]), ulp[i+1])...)
	}
	b = append(b, attribute(inetDiagInfo, info)...)
	return append(b, attribute(inetDiagULPInfo|1<<15, attribute(inetULPMPTCP|1<<15, of))...)
}

// joined is a socket that the kernel of 6.18 tells of as "flags:Jjec token:.../4d(id:9)".
func joined() []byte {
	return socketMessage(2, []byte{2}, binary.NativeEndian.AppendUint32(nil, 77),
		[]byte{8}, binary.NativeEndian.AppendUint32(nil, 1<<2|1<<3|1<<5|1<<6|1<<7),
		[]byte{10}, []byte{9})
}

func TestTCPSocketMessage(t *testing.T) {
	ends, got, ok := parseTCPSocket(joined())
	want := TCPProgress{Acked: 1 << 33, Timeouts: 3, Silent: 6 * time.Second,
		MPTCP: MPTCPSubflow{Token: 77, ID: 9, Joined: true, Backup: true}}
	if ends.Local.String() != "10.1.0.1:41000" || ends.Remote.String() != "10.2.0.1:5001" ||
		got != want || !ok {
		t.Errorf("it is %+v, %+v, %t, not %+v", ends, got, ok, want)
	}
}

// Whatever the kernel says of a socket, reading ends.
func FuzzTCPSocket(f *testing.F) {
	f.Add(joined())
	f.Add(socketMessage(10))
	f.Add(joined()[:inetDiagMessage+3])
	f.Fuzz(func(t *testing.T, b []byte) {
		if ends, _, ok := parseTCPSocket(b); ok && !ends.Local.IsValid() {
			t.Errorf("%x has no ends", b)
		}
	})
}
