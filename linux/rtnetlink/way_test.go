package rtnetlink_test

import (
	"testing"

	"sextant/linux/rtnetlink"
)

// FuzzWays holds what routes and next hop objects say of the ways of packets: whatever comes, an
// answer or an error comes out, and no next hop without a weight.
func FuzzWays(f *testing.F) {
	// ip -6 route add 2001:db8::/32, an interface, a gateway; two next hops of a route; an object;
	// a group of two
	f.Add(uint16(rtnetlink.NewRoute), []byte("\x0a\x20\x00\x00\xfe\x03\x00\x01\x00\x00\x00\x00"+
		"\x08\x00\x04\x00\x02\x00\x00\x00\x14\x00\x05\x00\xfd\x00\x00\x00\x00\x00\x00\x00"+
		"\x00\x00\x00\x00\x00\x00\x00\x02"))
	f.Add(uint16(rtnetlink.NewRoute), []byte("\x02\x00\x00\x00\xfe\x03\x00\x01\x00\x00\x00\x00"+
		"\x24\x00\x09\x00\x10\x00\x01\x03\x02\x00\x00\x00\x08\x00\x05\x00\x0a\x00\x01\x02"+
		"\x10\x00\x00\x00\x03\x00\x00\x00\x08\x00\x05\x00\x0a\x00\x02\x02"))
	f.Add(uint16(rtnetlink.NewNextHop), []byte("\x02\xfd\x03\x00\x01\x00\x00\x00"+
		"\x08\x00\x01\x00\x07\x00\x00\x00\x08\x00\x05\x00\x02\x00\x00\x00"))
	f.Add(uint16(rtnetlink.NewNextHop), []byte("\x00\xfd\x03\x00\x00\x00\x00\x00"+
		"\x08\x00\x01\x00\x09\x00\x00\x00\x14\x00\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00"+
		"\x02\x00\x00\x00\x06\x00\x00\x00\x06\x00\x03\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, kind uint16, body []byte) {
		h := rtnetlink.Header{Type: kind}
		if r, ok, err := rtnetlink.RouterRouteIn(h, body); ok && err == nil {
			if !r.Prefix.IsValid() {
				t.Errorf("prefix %s", r.Prefix)
			}
			for _, way := range r.Ways {
				if way.Weight < 1 || way.Weight > 256 {
					t.Errorf("weight %d of a next hop in a route", way.Weight)
				}
			}
		}
		n, ok, err := rtnetlink.WayObjectIn(h, body)
		if ok && err == nil && n.Resilient && len(n.Group) == 0 {
			t.Error("a resilient group without next hops")
		}
	})
}
