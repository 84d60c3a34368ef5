package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// frr is FRRouting on a node: zebra, which tells its routes by FPM, and bgpd, which takes routes of
// an SRv6 L3VPN into the default VRF.
type frr struct {
	r     *routed
	node  string
	dir   string
	zebra *exec.Cmd
	bgpd  *exec.Cmd
}

const bgpdText = `
frr defaults datacenter
router bgp 64512
 bgp router-id 192.0.2.254
 no bgp default ipv4-unicast
 NEIGHBORS
 segment-routing srv6
  locator edge
 !
 address-family ipv6 unicast
  maximum-paths ibgp 64
  rd vpn export 192.0.2.254:1
  rt vpn both 64512:1
  import vpn
 exit-address-family
 address-family ipv6 vpn
  ACTIVATE
 exit-address-family
`

const zebraText = `
segment-routing
 srv6
  locators
   locator edge
    prefix fcbb:bb00:ed::/48
   !
  !
 !
!
fpm address ::1 port 2620
`

// startFRR starts FRRouting on a node, with four neighbors.
func (r *routed) startFRR(node string) *frr {
	r.t.Helper()
	f := &frr{r: r, node: node, dir: r.t.TempDir()}
	owner, err := user.Lookup("frr")
	if err != nil {
		r.t.Fatalf("%v: install the Debian package frr, as \"make test\" does", err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	must(r.t, os.Chmod(filepath.Dir(f.dir), 0o755))
	must(r.t, os.Chown(f.dir, uid, gid))
	var neighbors, active []string
	for n := 1; n <= 4; n++ {
		address := fmt.Sprintf("fd00:5e::1:%x", n)
		neighbors = append(neighbors, "neighbor "+address+" remote-as 64512",
			"neighbor "+address+" update-source fd00:5e::e1",
			"neighbor "+address+" timers 1 3", "neighbor "+address+" timers connect 1")
		active = append(active, "neighbor "+address+" activate")
	}
	text := strings.NewReplacer("NEIGHBORS", strings.Join(neighbors, "\n "), "ACTIVATE",
		strings.Join(active, "\n  ")).Replace(bgpdText)
	for name, text := range map[string]string{"bgpd.conf": text, "zebra.conf": zebraText} {
		must(r.t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644))
	}
	f.startZebra()
	f.bgpd = f.start("bgpd")
	r.t.Cleanup(func() { f.stop(f.bgpd); f.stop(f.zebra) })
	return f
}

func (f *frr) startZebra() { f.zebra = f.start("zebra", "-M", "dplane_fpm_nl") }

func (f *frr) start(program string, arguments ...string) *exec.Cmd {
	f.r.t.Helper()
	cmd := exec.Command("/usr/lib/frr/"+program,
		append([]string{"-u", "frr", "-g", "frr", "--vty_socket", f.dir, "-z",
			filepath.Join(f.dir, "zserv"),
			"-i", filepath.Join(f.dir, program+".pid"), "-f", filepath.Join(f.dir, program+".conf"),
			"-P", "0", "--log", "stdout"}, arguments...)...)
	inside(f.r.t, f.r.lab, f.node, cmd.Start)
	return cmd
}

func (f *frr) stop(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

// ask runs a command of a daemon's shell.
func (f *frr) ask(command string) string {
	out, _ := exec.Command("vtysh", "--vty_socket", f.dir, "-c", command).CombinedOutput()
	return string(out)
}

// FRRouting learns servers of an SRv6 L3VPN by BGP and tells a router without programs by FPM. A
// server withdraws under downloads: none is lost. zebra and bgpd die and come back: packets are
// forwarded on, and the shadow holds.
func TestFRRKeepsConnections(t *testing.T) {
	t.Parallel()
	r := upRouted(t, "fpm", "main", 0)
	f := r.startFRR("edge1")
	r.awaitHops(1, 2, 3, 4)
	r.awaitSource(func(s api.RouteSource) bool { return s.Complete })
	result := r.download(func() {
		_, err := r.client("web2").Announce(t.Context(), config.AnnounceNothing)
		must(t, err)
		r.await([]int{1, 3, 4}, []int{1, 2, 3, 4})
	})
	strays := r.strays()
	t.Logf("%d downloads, %d failed, %d strays", result.Done, result.Failed, strays)
	if result.Failed > 0 || strays == 0 {
		t.Errorf("%d downloads failed, %v; %d strays\n%s", result.Failed, result.FirstErrors,
			strays, f.ask("show ipv6 route bgp"))
	}
	result = r.download(func() {
		f.stop(f.zebra) // before bgpd, whose routes it would withdraw
		f.stop(f.bgpd)
		r.awaitSource(func(s api.RouteSource) bool { return s.Client == nil && s.Routes == 1 })
		f.startZebra()
		f.bgpd = f.start("bgpd")
		r.awaitSource(func(s api.RouteSource) bool { return s.Client != nil && s.Sessions == 2 })
		for end := time.Now().Add(routingPatience); !strings.Contains(f.ask("show ipv6 route bgp"),
			"2001:db8:80::80/128"); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("bgpd's routes do not come back:\n%s", f.ask("show bgp ipv6 vpn"))
			}
		}
	})
	if result.Failed > 0 {
		t.Errorf("while FRRouting died and came back: %d downloads failed, %v", result.Failed,
			result.FirstErrors)
	}
	r.await([]int{1, 3, 4}, []int{1, 2, 3, 4})
}

// awaitHops waits until the VIP's next hops are these servers. A session that was late has left a
// shadow.
func (r *routed) awaitHops(servers ...int) {
	r.t.Helper()
	var last []api.Route
	for end := time.Now().Add(2 * routingPatience); time.Now().Before(end); time.Sleep(
		20 * time.Millisecond) {
		routes, err := r.client("edge1").Routes(r.t.Context())
		must(r.t, err)
		if last = routes; len(routes) == 1 && slices.Equal(serversOf(routes[0].NextHops), servers) {
			return
		}
	}
	r.t.Fatalf("the next hops are never %v; they are %+v", servers, last)
}

// source is FPM as it is.
func (r *routed) source() api.RouteSource {
	r.t.Helper()
	sources, err := r.client("edge1").RouteSources(r.t.Context())
	must(r.t, err)
	if len(sources) != 1 {
		r.t.Fatalf("sources %+v, want one", sources)
	}
	return sources[0]
}

// awaitSource waits until FPM is as it should be.
func (r *routed) awaitSource(fits func(api.RouteSource) bool) {
	r.t.Helper()
	var last api.RouteSource
	for end := time.Now().Add(routingPatience); time.Now().Before(end); time.Sleep(
		20 * time.Millisecond) {
		if last = r.source(); fits(last) {
			return
		}
	}
	r.t.Fatalf("FPM never is as it should be: %+v", last)
}
