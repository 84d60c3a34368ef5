package health_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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

var outer = netip.MustParseAddr(edge6) // source of outer headers

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
					list = append(list, fmt.Sprintf("table %x %s", r.Table, r.Dst))
				}
			}
		}
		return nil
	}))
	return list
}

func path(vip string, host int, function string) health.Path {
	return health.Path{VIP: netip.MustParseAddr(vip),
		SID: netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x:%s::", host, function))}
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
	// Earlier releases had a table and a rule for each SID of a VIP, and jumps to them.
	must(t, w.edge.Do(func() error {
		former, jump, all := netlink.NewRule(), netlink.NewRule(), uint32(0xffffff00)
		former.Priority, former.Mark, former.Table = 702, 0x5e000002, 0x5e000002
		jump.Priority, jump.Mark, jump.Mask, jump.Goto = 701, 0x5e000000, &all, 702
		former.Family, former.Protocol = unix.AF_INET6, 0x5e
		jump.Family, jump.Protocol = unix.AF_INET6, 0x5e
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return errors.Join(netlink.RuleAdd(former), netlink.RuleAdd(jump),
			netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Table: 0x5e000002,
				Protocol: 0x5e, Dst: ipNet(netip.MustParsePrefix(vip6 + "/128")),
				Encap: &netlink.SEG6Encap{Mode: 3,
					Segments: []net.IP{net.ParseIP("fcbb:bb00:7:d6::")}}}))
	}))
	w.help("paths", request{Paths: []health.Path{path(vip6, 1, "d6"), path(vip6, 2, "d6"),
		path(vip4, 2, "d4")}})
	want := append(slices.Clone(kept),
		"rule 700 mark 5e000000 table 5e000000", "table 5e000000 "+vip4+"/32",
		"rule 700 mark 5e000000 table 5e000000", "table 5e000000 "+vip6+"/128")
	same := cmpopts.SortSlices(strings.Compare)
	if diff := cmp.Diff(want, w.ours(), same); diff != "" {
		t.Errorf("three paths (-want +got):\n%s", diff)
	}
	w.help("paths", request{Paths: []health.Path{path(vip6, 2, "d6")}})
	want = append(slices.Clone(kept),
		"rule 700 mark 5e000000 table 5e000000", "table 5e000000 "+vip6+"/128")
	if diff := cmp.Diff(want, w.ours(), same); diff != "" {
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
		if err := paths.Set("eth0", outer, []health.Path{one, two}); err != nil {
			return err
		}
		first, second := paths.Mark(one), paths.Mark(two)
		if first == 0 || second == 0 || first == second {
			t.Errorf("marks %x and %x", first, second)
		}
		if err := paths.Set("eth0", outer, []health.Path{two, four}); err != nil {
			return err
		}
		if paths.Mark(two) != second {
			t.Errorf("the mark of a path that stays went from %x to %x", second,
				paths.Mark(two))
		}
		if list := w.ours(); len(list) != 4 {
			t.Errorf("two paths of two families: %s", strings.Join(list, "\n"))
		}
		if err := paths.Set("eth1", outer, []health.Path{two}); err != nil {
			return err
		}
		if list := w.ours(); len(list) != 2 || paths.Mark(one) != 0 {
			t.Errorf("one path by another interface: %s", strings.Join(list, "\n"))
		}
		if err := paths.Set("eth7", outer, []health.Path{two}); err == nil {
			t.Error("an interface that is not there was accepted")
		}
		return paths.Set("", outer, nil)
	}))
	if left := w.ours(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Packets go to the SID of their mark, with the whole packet behind an outer header, through any
// number of paths, whether others come or go.
func TestManyPaths(t *testing.T) {
	const hosts = 900
	w := newWorld(t)
	must(t, w.edge.Do(func() error { // without a mark packets for the VIP arrive as they are
		return errors.Join(route("fcbb:bb00::/32", "fd00:1::1"),
			route("2001:db8:80::/64", "fd00:1::1"))
	}))
	must(t, w.edge.Do(func() error {
		paths, err := health.OpenPaths()
		if err != nil {
			return err
		}
		few := append(pathsOf(vip6, hosts), pathsOf(vip4, 3)...)
		if err := paths.Set("eth0", outer, few); err != nil {
			return err
		}
		w.wantArriving(paths, few)
		marks := marksOf(paths, few)
		all := append(slices.Clone(few), pathsOf("2001:db8:80::81", 2*hosts)...)
		if err := paths.Set("eth0", outer, all); err != nil {
			return err
		}
		w.wantArriving(paths, all)
		if diff := cmp.Diff(marks, marksOf(paths, few)); diff != "" {
			t.Errorf("marks of paths that stay (-before +after):\n%s", diff)
		}
		if list := w.ours(); len(list) != 2+3 {
			t.Errorf("rules and routes of three VIPs: %s", strings.Join(list, "\n"))
		}
		some := slices.DeleteFunc(slices.Clone(few), func(p health.Path) bool {
			return p.VIP.Is6() && marks[p]%7 > 0
		})
		if err := paths.Set("eth0", outer, some); err != nil {
			return err
		}
		w.wantArriving(paths, some)
		if diff := cmp.Diff(marksOf(paths, some), marks, cmpopts.IgnoreMapEntries(
			func(p health.Path, _ uint32) bool { return !slices.Contains(some, p) })); diff != "" {
			t.Errorf("marks of paths that stay (-after +before):\n%s", diff)
		}
		arriving := w.arriving()
		defer unix.Close(arriving)
		for p, mark := range marks {
			if paths.Mark(p) > 0 {
				continue
			}
			if err := send(p.VIP, mark, "lost"); !errors.Is(err, unix.EPERM) {
				t.Errorf("a packet with the mark of a path that is gone: %v", err)
			}
		}
		w.wantArrive(arriving, paths, some)
		return paths.Set("", outer, nil)
	}))
	if left := w.ours(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func marksOf(paths *health.Paths, list []health.Path) map[health.Path]uint32 {
	marks := map[health.Path]uint32{}
	for _, p := range list {
		marks[p] = paths.Mark(p)
	}
	return marks
}

// send sends a datagram with a mark to a VIP.
func send(vip netip.Addr, mark uint32, text string) error {
	family, to := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: vip.As16(), Port: 9})
	if vip.Is4() {
		family, to = unix.AF_INET, &unix.SockaddrInet4{Addr: vip.As4(), Port: 9}
	}
	socket, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	return errors.Join(unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_MARK, int(mark)),
		unix.Sendto(socket, []byte(text), 0, to))
}

// arriving is a socket that has what the first host's interface gets.
func (w *world) arriving() (socket int) {
	w.t.Helper()
	must(w.t, w.hosts[0].Do(func() (err error) {
		socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC,
			int(htons(unix.ETH_P_IPV6)))
		return err
	}))
	must(w.t, unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&unix.Timeval{Sec: 10}))
	return socket
}

func (w *world) wantArriving(paths *health.Paths, list []health.Path) {
	w.t.Helper()
	socket := w.arriving()
	defer unix.Close(socket)
	w.wantArrive(socket, paths, list)
}

// wantArrive sends a packet by each path. It wants these to arrive next, each inside a header to
// its SID. It is called on the edge.
func (w *world) wantArrive(socket int, paths *health.Paths, list []health.Path) {
	w.t.Helper()
	frame := make([]byte, 2048)
	for i, p := range list {
		text := fmt.Sprint("packet ", i)
		must(w.t, send(p.VIP, paths.Mark(p), text))
		header, inner := frame[:40], frame[40:]
		for ours := false; !ours; { // neighbor discovery has packets, too
			n, _, err := linuxtest.Receive(socket, frame)
			if err != nil {
				w.t.Fatalf("%s of %v did not arrive: %v", text, p, err)
			}
			inner = frame[40:n]
			ours = slices.Contains([]byte{unix.IPPROTO_IPIP, unix.IPPROTO_IPV6, unix.IPPROTO_UDP},
				header[6])
		}
		source, sid := netip.AddrFrom16([16]byte(header[8:24])),
			netip.AddrFrom16([16]byte(header[24:40]))
		next, vip := byte(unix.IPPROTO_IPV6), inner[24:40]
		if p.VIP.Is4() {
			next, vip = unix.IPPROTO_IPIP, inner[16:20]
		}
		length := int(binary.BigEndian.Uint16(header[4:]))
		if source != outer || sid != p.SID || header[6] != next || length != len(inner) ||
			!bytes.Equal(vip, p.VIP.AsSlice()) || !bytes.HasSuffix(inner, []byte(text)) {
			w.t.Fatalf("packet %d of %v is %x %x", i, p, header, inner)
		}
	}
}

func htons(n uint16) uint16 { return n<<8 | n>>8 }

// pathsOf are those of a VIP to so many hosts.
func pathsOf(vip string, hosts int) (list []health.Path) {
	for host := range hosts {
		list = append(list, path(vip, host+0x10, "d6"))
	}
	return list
}

// BenchmarkPaths is what the paths of one service cost that come and go: all at once, half of them,
// more beside those that are there, and what an agent left that was killed.
func BenchmarkPaths(b *testing.B) {
	for _, hosts := range []int{1000, 10000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			w := newWorld(b)
			must(b, w.edge.Do(func() error {
				paths, err := health.OpenPaths()
				if err != nil {
					return err
				}
				all := pathsOf(vip6, hosts)
				var half []health.Path
				for i := 0; i < hosts; i += 2 {
					half = append(half, all[i])
				}
				begun := time.Now()
				took := func(unit string) {
					b.ReportMetric(time.Since(begun).Seconds(), unit)
					begun = time.Now()
				}
				set := func(unit string, to []health.Path) {
					err = errors.Join(err, paths.Set("eth0", outer, to))
					took(unit)
				}
				set("s/all-come", all)
				set("s/half-goes", half)
				set("s/half-comes", all)
				set("s/one-goes", all[1:])
				set("s/one-comes", all)
				set("s/all-go", nil)
				set("s/all-come-again", all)
				paths, failed := health.OpenPaths()
				took("s/restart")
				b.ReportMetric(0, "ns/op")
				return errors.Join(err, failed, paths.Set("", outer, nil))
			}))
		})
	}
}
