package health_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/agent/health"
	"sextant/config"
	"sextant/linux"
	"sextant/linux/linuxtest"
)

const (
	vip6, vip4 = "2001:db8:80::80", "198.51.100.80"
	edge6      = "fd00:5e::e1"
	edge4      = "192.0.2.225"
)

// world is an edge and two hosts, each behind a link of its own; the hosts decapsulate by the
// kernel's own seg6local routes.
type world struct {
	t     testing.TB
	edge  *linux.Netns
	hosts []*linux.Netns
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, edge: newNamespace(t)}
	must(t, w.edge.Do(func() error { return up("lo", edge6+"/128", edge4+"/32") }))
	for i := range 2 {
		host := newNamespace(t)
		w.hosts = append(w.hosts, host)
		must(t, w.edge.Do(func() error {
			return netlink.LinkAdd(&netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprintf("eth%d", i)}, PeerName: "eth0",
				PeerNamespace: netlink.NsFd(host.FD()),
			})
		}))
		must(t, host.Do(func() error { return setUpHost(i + 1) }))
		must(t, w.edge.Do(func() error {
			return errors.Join(up(fmt.Sprintf("eth%d", i), fmt.Sprintf("fd00:%d::e/64", i+1)),
				route(fmt.Sprintf("fcbb:bb00:%d::/48", i+1), fmt.Sprintf("fd00:%d::1", i+1)))
		}))
	}
	return w
}

func newNamespace(t testing.TB) *linux.Netns {
	t.Helper()
	ns, _ := linuxtest.Netns(t)
	// Addresses are of use at once, link-local ones too.
	must(t, ns.Do(func() error {
		return linux.WriteSysctl("net.ipv6.conf.default.accept_dad",
			"0")
	}))
	return ns
}

// setUpHost gives a host the VIPs, and decapsulation at fcbb:bb00:N:d6:: and, for IPv4,
// fcbb:bb00:N:d4::.
func setUpHost(n int) error {
	err := errors.Join(up("lo", vip6+"/128", vip4+"/32"),
		up("eth0", fmt.Sprintf("fd00:%d::1/64", n)),
		linux.WriteSysctl("net.ipv4.conf.all.rp_filter", "0"),
		linux.WriteSysctl("net.ipv4.conf.eth0.rp_filter", "0"),
		route(edge6+"/128", fmt.Sprintf("fd00:%d::e", n)),
		route(edge4+"/32", fmt.Sprintf("fd00:%d::e", n)))
	link, failed := netlink.LinkByName("eth0")
	if failed != nil {
		return errors.Join(err, failed)
	}
	local := func(sid string, e *netlink.SEG6LocalEncap) error {
		prefix := netip.MustParsePrefix(sid)
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(prefix),
			Encap: e})
	}
	six, four := &netlink.SEG6LocalEncap{Action: nl.SEG6_LOCAL_ACTION_END_DT6,
		Table: unix.RT_TABLE_LOCAL},
		&netlink.SEG6LocalEncap{Action: nl.SEG6_LOCAL_ACTION_END_DX4, InAddr: net.IPv4zero}
	six.Flags[nl.SEG6_LOCAL_ACTION], six.Flags[nl.SEG6_LOCAL_TABLE] = true, true
	four.Flags[nl.SEG6_LOCAL_ACTION], four.Flags[nl.SEG6_LOCAL_NH4] = true, true
	return errors.Join(err, local(fmt.Sprintf("fcbb:bb00:%d:d6::/128", n), six),
		local(fmt.Sprintf("fcbb:bb00:%d:d4::/128", n), four))
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func up(name string, addresses ...string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		address := &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(a)), Flags: unix.IFA_F_NODAD}
		err = errors.Join(err, netlink.AddrAdd(link, address))
	}
	return errors.Join(err, netlink.LinkSetUp(link))
}

// route is by an IPv6 next hop, for IPv4 too.
func route(prefix, via string) error {
	p := netip.MustParsePrefix(prefix)
	r := &netlink.Route{Dst: ipNet(p)}
	if p.Addr().Is6() {
		r.Gw = net.ParseIP(via)
	} else {
		r.Via = &netlink.Via{AddrFamily: unix.AF_INET6, Addr: net.ParseIP(via)}
	}
	return netlink.RouteAdd(r)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// help runs a helper process on the edge.
func (w *world) help(name string, r request) string {
	w.t.Helper()
	argument, err := json.Marshal(r)
	must(w.t, err)
	var stdout, stderr bytes.Buffer
	command := exec.Command(os.Args[0], name, string(argument))
	command.Stdout, command.Stderr = &stdout, &stderr
	must(w.t, w.edge.Do(command.Start))
	if err := command.Wait(); err != nil {
		w.t.Fatalf("helper %s: %v: %s", name, err, &stderr)
	}
	return stdout.String()
}

// ours lists the rules and routes of checks on the edge.
func (w *world) ours() (list []string) {
	w.t.Helper()
	must(w.t, w.edge.Do(func() error {
		for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
			rules, err := netlink.RuleList(family)
			if err != nil {
				return err
			}
			for _, r := range rules {
				if r.Priority != 0 && r.Priority < 32766 {
					list = append(list, fmt.Sprintf("rule %d mark %x table %x", r.Priority, r.Mark,
						r.Table))
				}
			}
			routes, err := netlink.RouteListFiltered(family, &netlink.Route{},
				netlink.RT_FILTER_TABLE)
			if err != nil {
				return err
			}
			for _, r := range routes {
				if r.Table > 255 {
					list = append(list, fmt.Sprintf("table %x %s %v", r.Table, r.Dst,
						r.Encap.(*netlink.SEG6Encap).Segments))
				}
			}
		}
		return nil
	}))
	return list
}

func path(vip string, host int, function string) health.Path {
	return health.Path{VIP: netip.MustParseAddr(vip),
		SID: netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%d:%s::", host, function))}
}

func job(p health.Path, backend string, source string) health.Job {
	return health.Job{Check: check(config.CheckTCP), Target: health.Target{
		Service: p.VIP.String(), Backend: backend, Address: netip.AddrPortFrom(p.VIP, 80),
		SID: p.SID, Source: netip.MustParseAddr(source),
	}}
}

// A check meets the server at the VIP of the host that it is about, and no other, whatever the
// address family.
func TestChecksGoToTheirHost(t *testing.T) {
	w := newWorld(t)
	// The first host serves, the second has the VIPs but no server.
	for _, vip := range []string{vip6, vip4} {
		must(t, w.hosts[0].Do(func() error {
			listener, err := net.Listen("tcp", netip.AddrPortFrom(netip.MustParseAddr(vip),
				80).String())
			if err == nil {
				t.Cleanup(func() { listener.Close() })
			}
			return err
		}))
	}
	var r request
	for i := range w.hosts {
		six, four := path(vip6, i+1, "d6"), path(vip4, i+1, "d4")
		r.Paths = append(r.Paths, six, four)
		r.Jobs = append(r.Jobs, job(six, fmt.Sprint(i+1), edge6), job(four, fmt.Sprint(i+1), edge4))
	}
	// Nobody decapsulates at this one.
	nowhere := path(vip6, 1, "ff")
	lost := job(nowhere, "lost", edge6)
	lost.Check.Timeout = check(config.CheckTCP).Interval
	r.Paths, r.Jobs = append(r.Paths, nowhere), append(r.Jobs, lost)
	var outcome map[string]string
	must(t, json.Unmarshal([]byte(w.help("monitor", r)), &outcome))
	want := map[string]string{
		"1 " + vip6: "ok", "1 " + vip4: "ok",
		"2 " + vip6:    "connect to [2001:db8:80::80]:80 at fcbb:bb00:2:d6::: connection refused",
		"2 " + vip4:    "connect to 198.51.100.80:80 at fcbb:bb00:2:d4::: connection refused",
		"lost " + vip6: "connect to [2001:db8:80::80]:80 at fcbb:bb00:1:ff::: no answer in time",
	}
	if diff := cmp.Diff(want, outcome); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if left := w.ours(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// An edge without an IPv4 address, from which nobody could be answered, says so.
func TestChecksWithoutAnAddress(t *testing.T) {
	w := newWorld(t)
	must(t, w.edge.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		address := ipNet(netip.MustParsePrefix(edge4 + "/32"))
		return netlink.AddrDel(lo, &netlink.Addr{IPNet: address})
	}))
	four := path(vip4, 1, "d4")
	sourceless := job(four, "1", edge4)
	sourceless.Target.Source = netip.Addr{}
	sourceless.Check.Timeout = sourceless.Check.Interval
	var outcome map[string]string
	must(t, json.Unmarshal([]byte(w.help("monitor", request{Paths: []health.Path{four},
		Jobs: []health.Job{sourceless}})), &outcome))
	const want = "at fcbb:bb00:1:d4::: this node has no IPv4 address to check from; give it one"
	if got := outcome["1 "+vip4]; !strings.Contains(got, want) {
		t.Errorf("the outcome is %q, want %q", got, want)
	}
}

// An agent that is killed leaves its paths; the next one and unloading remove what is no longer
// wanted, and nothing of others.
func TestPathsAreReconciled(t *testing.T) {
	w := newWorld(t)
	foreign := netlink.NewRule()
	foreign.Priority, foreign.Mark, foreign.Table, foreign.Family = 941, 7, 0x5e000001,
		unix.AF_INET6
	must(t, w.edge.Do(func() error { return netlink.RuleAdd(foreign) }))
	kept := w.ours()
	w.help("paths", request{Paths: []health.Path{path(vip6, 1, "d6"), path(vip6, 2, "d6"),
		path(vip4, 2, "d4")}})
	if list := w.ours(); len(list) != len(kept)+3+(2+3)+(1+3) {
		t.Errorf("three paths are %d rules and routes: %s", len(list), strings.Join(list, "\n"))
	}
	w.help("paths", request{Paths: []health.Path{path(vip6, 2, "d6")}})
	list := strings.Join(w.ours(), "\n")
	want := []string{
		"rule 700 mark 5e000000 table 0", "rule 701 mark 5e000000 table 0",
		"rule 702 mark 5e000001 table 5e000001", "rule 941 mark 7 table 5e000001",
		"rule 942 mark 0 table 0",
		"table 5e000001 " + vip6 + "/128 [fcbb:bb00:2:d6::]",
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), list); diff != "" {
		t.Errorf("the next agent's paths (-want +got):\n%s", diff)
	}
	must(t, w.edge.Do(health.RemovePaths))
	if diff := cmp.Diff(kept, w.ours()); diff != "" {
		t.Errorf("after removal (-before +after):\n%s", diff)
	}
	must(t, w.edge.Do(health.RemovePaths))
}

// Paths come and go one by one without disturbing the others.
func TestPathsChange(t *testing.T) {
	w := newWorld(t)
	must(t, w.edge.Do(func() error {
		paths, err := health.OpenPaths()
		if err != nil {
			return err
		}
		one, two, four := path(vip6, 1, "d6"), path(vip6, 2, "d6"), path(vip4, 1, "d6")
		if err := paths.Set("eth0", []health.Path{one, two}); err != nil {
			return err
		}
		first, second := paths.Mark(one), paths.Mark(two)
		if first == 0 || second == 0 || first == second {
			t.Errorf("marks %x and %x", first, second)
		}
		if err := paths.Set("eth0", []health.Path{two, four}); err != nil {
			return err
		}
		if paths.Mark(two) != second {
			t.Errorf("the mark of a path that stays went from %x to %x", second,
				paths.Mark(two))
		}
		if list := w.ours(); len(list) != 10 {
			t.Errorf("two paths of two families: %s", strings.Join(list, "\n"))
		}
		if err := paths.Set("eth1", []health.Path{two}); err != nil {
			return err
		}
		if list := w.ours(); len(list) != 5 || paths.Mark(one) != 0 {
			t.Errorf("one path by another interface: %s", strings.Join(list, "\n"))
		}
		if err := paths.Set("eth7", []health.Path{two}); err == nil {
			t.Error("an interface that is not there was accepted")
		}
		return paths.Set("", nil)
	}))
	if left := w.ours(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A VIP's paths have tables of their own, those of VIPs the same ones, and the kernel finds each by
// its mark, in whichever block that is.
func TestManyPaths(t *testing.T) {
	const hosts, vips = 600, 3
	w := newWorld(t)
	must(t, w.edge.Do(func() error {
		paths, err := health.OpenPaths()
		if err != nil {
			return err
		}
		var list []health.Path
		for vip := range vips {
			for host := range hosts {
				list = append(list, path(fmt.Sprintf("2001:db8:80::%x", vip+1), host+1, "d6"))
			}
		}
		if err := paths.Set("eth0", list); err != nil {
			return err
		}
		const gates, jumps = 2, 3
		if rules := len(w.ours()) - len(list); rules != gates+jumps+hosts {
			t.Errorf("%d rules for %d hosts", rules, hosts)
		}
		for _, p := range list {
			found, err := netlink.RouteGetWithOptions(p.VIP.AsSlice(),
				&netlink.RouteGetOptions{Mark: paths.Mark(p)})
			if err != nil || len(found) != 1 {
				return fmt.Errorf("route to %s by mark %x: %v, %w", p.VIP, paths.Mark(p), found,
					err)
			}
			seg6, leads := found[0].Encap.(*netlink.SEG6Encap)
			if !leads || !seg6.Segments[0].Equal(p.SID.AsSlice()) {
				t.Fatalf("mark %x leads to %v, want %s", paths.Mark(p), found[0].Encap, p.SID)
			}
		}
		// What goes leaves room for what comes.
		first, kept := paths.Mark(list[0]), paths.Mark(list[hosts-1])
		other := path("2001:db8:80::1", hosts+1, "d6")
		if err := paths.Set("eth0", append(list[1:], other)); err != nil {
			return err
		}
		if paths.Mark(other) != first || paths.Mark(list[hosts-1]) != kept {
			t.Errorf("marks %x and %x, want %x and %x", paths.Mark(other),
				paths.Mark(list[hosts-1]), first, kept)
		}
		return paths.Set("", nil)
	}))
	if left := w.ours(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
