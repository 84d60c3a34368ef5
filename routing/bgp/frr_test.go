package bgp_test

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/linux"
	"sextant/routing/bgp"
)

const bgpd = "/usr/lib/frr/bgpd"

// frrText is a router that takes all families, and reflects VPN routes (RFC 4456).
const frrText = `
frr defaults datacenter
router bgp 64512
 bgp router-id 10.0.0.2
 no bgp default ipv4-unicast
 no bgp ebgp-requires-policy
 bgp graceful-restart
 neighbor 2001:db8::1 remote-as 64512
 neighbor 2001:db8::1 timers 3 9
 neighbor 2001:db8::1 passive
 neighbor 2001:db8::1 capability extended-nexthop
 neighbor 10.0.0.1 remote-as 64512
 neighbor 10.0.0.1 passive
 address-family ipv4 unicast
  neighbor 2001:db8::1 activate
 exit-address-family
 address-family ipv6 unicast
  neighbor 2001:db8::1 activate
 exit-address-family
 address-family ipv4 vpn
  neighbor 10.0.0.1 activate
  neighbor 10.0.0.1 route-reflector-client
  neighbor 2001:db8::1 activate
  neighbor 2001:db8::1 route-reflector-client
 exit-address-family
 address-family ipv6 vpn
  neighbor 10.0.0.1 activate
  neighbor 10.0.0.1 route-reflector-client
  neighbor 2001:db8::1 activate
  neighbor 2001:db8::1 route-reflector-client
 exit-address-family
`

// router is FRR's bgpd in a namespace.
type router struct {
	t   *testing.T
	cmd *exec.Cmd
	dir string
}

func startFRR(t *testing.T, ns *linux.Netns, text string) router {
	t.Helper()
	if _, err := os.Stat(bgpd); err != nil {
		t.Fatalf("FRR is not there: %v; install the Debian package frr", err)
	}
	r := router{t: t, dir: t.TempDir()}
	must(t, os.Chmod(r.dir, 0o755))
	file := filepath.Join(r.dir, "bgpd.conf")
	must(t, os.WriteFile(file, []byte(text), 0o644))
	r.cmd = exec.Command(bgpd, "--no_kernel", "--no_zebra", "--skip_runas", "--config_file", file,
		"--pid_file", filepath.Join(r.dir, "pid"),
		"--vty_socket", r.dir, "--vty_port", "0", "--listenon", "::", "--listenon", "0.0.0.0",
		"--bgp_port", "17900", "--log", "stdout")
	r.cmd.Stdout, r.cmd.Stderr = t.Output(), t.Output()
	must(t, linux.Start(r.cmd, ns, nil))
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
	})
	return r
}

// ask runs a command of the router's shell.
func (r router) ask(command string) string {
	out, _ := exec.Command("vtysh", "--vty_socket", r.dir, "-d", "bgpd", "-c", command).Output()
	return string(out)
}

// await waits until the answer to a command contains all words.
func (r router) await(command string, words ...string) {
	r.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		answer, missing := r.ask(command), ""
		for _, word := range words {
			if !strings.Contains(answer, word) {
				missing = word
			}
		}
		if missing == "" && json.Valid([]byte(answer)) {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("never: %s\nin the answer to %s:\n%s", missing, command, answer)
		}
	}
}

// FRR takes the routes of a host, with SID, weight and drain, and plain ones, of both IP versions
// over a session of IPv6 (RFC 8950), and passes the hosts' on to an edge.
func TestFRR(t *testing.T) {
	l := newLink(t)
	near := linked(nearAddress6, farAddress6)
	near.GracefulRestart = patience
	near.Listen = netip.AddrPortFrom(nearAddress6, port)
	other := linked(nearAddress, farAddress)
	other.Listen, other.RouterID, other.Neighbors[0].Families = netip.AddrPortFrom(nearAddress,
		port), loopback(9), vpn
	plain6, plain4 := netip.MustParseAddr("2001:db8:80::80"), netip.MustParseAddr("192.0.2.80")
	drained := offer(3, "2001:db8:80::81")
	drained.Draining = true
	frr := startFRR(t, l.far, frrText)
	s := startSpeaker(t, l.near, role{near, []bgp.Announcement{
		{VIP: plain6}, {VIP: plain4}, offer(7, "2001:db8:80::80"), offer(7, "192.0.2.80"), drained,
	}})
	s.await("the session is up",
		func(r report) bool { return r.Sessions[farAddress6.String()] == "established standing" })
	frr.await("show bgp ipv6 unicast 2001:db8:80::80/128 json", `"valid":true`,
		`"ip":"2001:db8::1"`)
	frr.await("show bgp ipv4 unicast 192.0.2.80/32 json", `"valid":true`, `"ip":"2001:db8::1"`)
	frr.await("show bgp ipv6 vpn 2001:db8:80::80/128 json", `"remoteSid":"fcbb:bb00:7::"`,
		"LB:64512:7", "RT:64512:1", "64512:6:80")
	frr.await("show bgp ipv4 vpn 192.0.2.80/32 json", `"remoteSid":"fcbb:bb00:7::"`)
	frr.await("show bgp ipv6 vpn 2001:db8:80::81/128 json", "graceful-shutdown")
	edge := startSpeaker(t, l.near, role{BGP: other})
	edge.await("the reflected routes", func(r report) bool {
		return slices.Equal(r.Routes, []string{"192.0.2.80 fcbb:bb00:7:: 7",
			"2001:db8:80::80 fcbb:bb00:7:: 7", "2001:db8:80::81 fcbb:bb00:3:: 3"})
	})
	must(t, s.cmd.Process.Kill())
	frr.await("show bgp ipv6 unicast 2001:db8:80::80/128 json", `"valid":true`, `"stale":true`)
}
