package srpolicy

import (
	"net/netip"
	"slices"
	"testing"
)

// A header gives back the list that it was made of, in each of its forms.
func TestHeaderSegments(t *testing.T) {
	var all []netip.Addr
	for i := range 8 {
		all = append(all, netip.AddrFrom16([16]byte{0xfc, 15: byte(i + 1)}))
		for _, reduced := range []bool{false, true} {
			h, err := List{Segments: all, Reduced: reduced}.Header(Source{
				Addr: netip.IPv6Loopback(), HopLimit: 64})
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Segments(); !slices.Equal(got, all) {
				t.Errorf("reduced %v: %v, not %v", reduced, got, all)
			}
		}
	}
}
