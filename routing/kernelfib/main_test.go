package kernelfib_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"sextant/linux"
	"sextant/linux/linuxtest"
	"sextant/linux/rtnetlink"
	"sextant/routing/rib"
)

// newNetns is a namespace of the test's own, whose loopback interface is up.
func newNetns(t testing.TB) *linux.Netns {
	t.Helper()
	ns, _ := linuxtest.Netns(t)
	must(t, ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	}))
	return ns
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sid(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", n)) }

func hops(ids ...int) (list []rtnetlink.Hop) {
	for _, n := range ids {
		list = append(list, rtnetlink.Hop{Weight: 1, Mode: rtnetlink.Encap,
			Segments: []netip.Addr{sid(n)}})
	}
	return list
}

func set(t testing.TB, buckets int, ids ...int) rib.Set {
	t.Helper()
	s, ok := rib.NewSet(hops(ids...), buckets)
	if !ok {
		t.Fatal("no set")
	}
	return s.Draw()
}

func prefix(n int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 0x80,
		12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)}), 128)
}
