package linux_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

// Of all routes those are listed that are asked for; a table that is not there has none.
func TestRoutes(t *testing.T) {
	ns := newNetns(t)
	must(t, linuxtest.IP(strings.ReplaceAll(`-n NS link set lo up
-n NS route add 192.0.2.0/24 dev lo
-n NS route add blackhole 192.0.2.1
-n NS route add blackhole 192.0.2.2 table 1000
-n NS route add unreachable 192.0.2.3
-n NS route add 192.0.2.4 dev lo table 1000 proto 94
-n NS route add blackhole 2001:db8::1
-n NS route add blackhole 2001:db8::2 table 1000
-n NS route add unreachable 2001:db8::3
-n NS route add unreachable 2001:db8::4 table 1000 proto 94`, "NS", ns.Name())))
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		prefix, length := "192.0.2.", "/32"
		if family == unix.AF_INET6 {
			prefix, length = "2001:db8::", "/128"
		}
		for _, test := range []struct {
			like netlink.Route
			want []string
		}{
			{netlink.Route{Table: unix.RT_TABLE_MAIN, Type: unix.RTN_BLACKHOLE}, []string{"1"}},
			{netlink.Route{Table: 1000, Type: unix.RTN_BLACKHOLE}, []string{"2"}},
			{netlink.Route{Table: 1000, Protocol: 94}, []string{"4"}},
			{netlink.Route{Table: 1001, Protocol: 94}, nil},
		} {
			mask, got := netlink.RT_FILTER_TABLE, []string(nil)
			if test.like.Type != 0 {
				mask |= netlink.RT_FILTER_TYPE
			} else {
				mask |= netlink.RT_FILTER_PROTOCOL
			}
			must(t, ns.Do(func() error {
				routes, err := linux.Routes(family, &test.like, mask)
				for _, r := range routes {
					last := strings.TrimSuffix(r.Dst.String(), length)
					got = append(got, strings.TrimPrefix(last, prefix))
				}
				return err
			}))
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("family %d, like %v (-want +got):\n%s", family, test.like, diff)
			}
		}
	}
}
