package linux

import (
	"encoding/binary"
	"net/netip"
	"testing"

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
