package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/linux/linuxtest"
)

// What the edge needs of the kernel's routes and rules comes back, whoever took it.
func TestRoutesThatGoComeBack(t *testing.T) {
	m := newMachine(t)
	const check = "check: {kind: exec, command: [/bin/true], interval: 1s, timeout: 1s}"
	r := m.start(strings.NewReplacer("      port: 80\n", "      port: 80\n      "+check+"\n",
		"protocol: udp, backends", "protocol: udp, "+check+", backends").Replace(nodeText))
	defer r.stop()
	before := m.edgeRoutes()
	if len(before) != 6 {
		t.Fatalf("rules and routes %q", before)
	}
	ip := func(commands string) func() {
		return func() { must(t, m.ns.Do(func() error { return linuxtest.IP(commands) })) }
	}
	for _, test := range []struct {
		what string
		take func()
	}{
		{"the interface", func() {
			ip("link set edge0 down")()
			r.await("a warning that nothing is checked", func(s api.Status) bool {
				return strings.Contains(strings.Join(s.Warnings, "\n"), "backends are not checked")
			})
			ip("link set edge0 up")()
		}},
		{"the rule of IPv4", ip("rule del pref 700")},
		{"the rule of IPv6", ip("-6 rule del pref 700")},
		{"paths of IPv4", ip("route flush table 1577058304")},
		{"paths of IPv6", ip("-6 route flush table 1577058304")},
		{"blackholes", ip("route flush type blackhole\n-6 route flush type blackhole")},
	} {
		test.take()
		r.await(test.what, func(api.Status) bool { return slices.Equal(m.edgeRoutes(), before) })
	}
	r.await("no warnings", func(s api.Status) bool {
		return !strings.Contains(strings.Join(s.Warnings, "\n"), "not checked")
	})
}

// edgeRoutes lists the rules and routes of checks, and the blackholes of VIPs.
func (m *machine) edgeRoutes() []string {
	m.t.Helper()
	list := m.vipRoutes()
	must(m.t, m.ns.Do(func() (err error) {
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			rules, failed := netlink.RuleList(family)
			for _, rule := range rules {
				if rule.Priority == 700 {
					list = append(list, rule.String())
				}
			}
			routes, missing := netlink.RouteListFiltered(family,
				&netlink.Route{Table: 0x5e000000}, netlink.RT_FILTER_TABLE)
			for _, route := range routes {
				list = append(list, fmt.Sprintf("%s by %d", route.Dst, route.LinkIndex))
			}
			err = errors.Join(err, failed, missing)
		}
		return err
	}))
	slices.Sort(list)
	return list
}
