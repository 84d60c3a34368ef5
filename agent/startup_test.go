package agent_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/routing/bgp"
)

// announced lists the VIPs and host's routes that the agent announces.
func (r *running) announced() (list []string) {
	r.t.Helper()
	routes, err := r.BGPRoutes(r.t.Context())
	must(r.t, err)
	for _, route := range routes {
		if route.Direction == api.Announced {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %d", route.VIP, route.Behavior,
				len(route.Services))))
		}
	}
	return list
}

func (r *running) awaitAnnounced(want ...string) {
	r.t.Helper()
	for end := time.Now().Add(patience); !slices.Equal(r.announced(),
		want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("announced %q, want %q", r.announced(), want)
		}
	}
}

const (
	hostRoute = "2001:db8:80::81 End.OFFER 2"
	edgeVIP6  = "2001:db8:80::80  0"
	edgeVIP4  = "192.0.2.53  0"
)

// An edge without memory, whose peer tells that a host had each bucket, keeps the host in the
// chains until BGP has told of it, or has told all and not of it. It announces its VIPs then, and
// no sooner.
func TestFreshEdgeWaitsForBGP(t *testing.T) {
	secret := clusterSigning(t)
	for name, test := range map[string]struct {
		tells int    // id of the host that BGP tells of
		then  string // who is in each chain
	}{
		"the host is there": {3, "bgp-fcbb-bb00-3"},
		"it is not":         {0x77, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			text := strings.Replace(bgpText, "        - {name: web3, sid: \"fcbb:bb00:3::\"}\n", "",
				1)
			text = strings.Replace(text, "      port: 80\n",
				"      port: 80\n      table: exact\n      candidates: 1\n      returnHold: 0\n", 1)
			text = strings.Replace(text, "port: any, protocol: udp,",
				"port: any, protocol: udp, returnHold: 0,", 1)
			r := m.start(strings.Replace(text, "  source: fd00:5e::e1\n",
				fmt.Sprintf("  source: fd00:5e::e1\n  peers: [%q]\n", peer(t, secret, 65537)), 1))
			unknown := func(chain string) bool {
				return slices.Contains(strings.Split(chain, " "),
					"")
			}
			for i, chain := range r.who() {
				if !unknown(chain) {
					t.Fatalf("flow %d is offered to %q; its owner at the peer was a host of "+
						"which nobody has told yet", i, chain)
				}
			}
			if got := r.announced(); !slices.Equal(got, []string{hostRoute}) {
				t.Errorf("before the neighbor has told all, %q is announced", got)
			}
			host := openHost(t)
			must(t, host.Announce([]bgp.Announcement{serving(test.tells, false)}))
			r.awaitAnnounced(edgeVIP4, edgeVIP6, hostRoute)
			for i, chain := range r.who() {
				if unknown(chain) || !strings.Contains(chain, test.then) {
					t.Fatalf("flow %d is offered to %q, want %q among them, and nobody who is gone",
						i, chain, test.then)
				}
			}
			r.stop()
		})
	}
}

// When nobody tells, the edge announces its VIPs when the time for it is over; an edge whose
// packets are forwarded on meanwhile waits for nobody.
func TestStartupEnds(t *testing.T) {
	m := newMachine(t)
	text := strings.NewReplacer("  onStop: keep", "  startup: 1s\n  onStop: keep",
		"      port: 80\n", "      port: 80\n      returnHold: 0\n",
		"port: any, protocol: udp,", "port: any, protocol: udp, returnHold: 0,").Replace(bgpText)
	r := m.start(text)
	r.awaitAnnounced(edgeVIP4, edgeVIP6, hostRoute)
	r.stop()
	r = m.start(strings.Replace(text, "startup: 1s", "startup: 10m", 1))
	if got := r.announced(); !slices.Equal(got, []string{edgeVIP4, edgeVIP6, hostRoute}) {
		t.Errorf("right after a restart, %q is announced", got)
	}
	r.stop()
}

// With announceVIPs: healthy the VIP of a service none of whose backends is healthy is not
// announced, although a panic uses them all.
func TestVIPOfNobodyHealthy(t *testing.T) {
	m := newMachine(t)
	text := strings.NewReplacer("  onStop: keep",
		"  startup: 0s\n  announceVIPs: healthy\n  onStop: keep",
		"      port: 80\n", "      port: 80\n      returnHold: 0\n      check: {kind: exec, "+
			"command: [/bin/false], interval: 50ms, timeout: 50ms, fall: 1}\n",
		"port: any, protocol: udp,", "port: any, protocol: udp, returnHold: 0,").Replace(bgpText)
	r := m.start(text)
	r.awaitAnnounced(edgeVIP4, hostRoute)
	_, err := r.apply(m.text(strings.Replace(text, "announceVIPs: healthy", "announceVIPs: any",
		1)), false)
	must(t, err)
	r.awaitAnnounced(edgeVIP4, edgeVIP6, hostRoute)
	r.stop()
}

// A host announces a service when its own check finds it to work, and withdraws it when it does
// not; a restart of the agent withdraws nothing.
func TestHostAnnouncesWhatWorks(t *testing.T) {
	m := newMachine(t)
	works := filepath.Join(m.dir, "works")
	text := strings.Replace(bgpText, "accept: {policy: dynamic, workers: 32}}",
		"accept: {policy: dynamic, workers: 32}, check: {kind: exec, command: [/usr/bin/test, "+
			"-e, DIR/works], interval: 1s, timeout: 1s, rise: 1, fall: 3}}", 1)
	text = strings.Replace(text, "  onStop: keep", "  startup: 10m\n  onStop: keep", 1)
	r := m.start(text)
	const rest = "2001:db8:80::81 End.OFFER 1"
	r.awaitAnnounced(rest)
	must(t, os.WriteFile(works, nil, 0o600))
	r.awaitAnnounced(hostRoute)
	services, err := r.Services(t.Context(), "", "")
	must(t, err)
	for _, s := range services {
		if s.Host != nil && s.Name == "api" &&
			(s.Host.Health == nil || s.Host.Health.Status != "healthy") {
			t.Errorf("the host's own check says %+v", s.Host.Health)
		}
	}
	r.stop()
	r = m.start(text)
	if got := r.announced(); !slices.Contains(got, hostRoute) {
		t.Errorf("right after a restart, %q is announced", got)
	}
	must(t, os.Remove(works))
	r.awaitAnnounced(edgeVIP4, edgeVIP6, rest)
	r.stop()
	r = m.start(text)
	if got := r.announced(); !slices.Contains(got, rest) {
		t.Errorf("after a restart, %q is announced, although the service failed before", got)
	}
	r.stop()
}

// An operator's word on a learned backend outlives its host's, and a restart; what its host says
// can't be changed here.
func TestDrainLearnedBackend(t *testing.T) {
	m := newMachine(t)
	r := m.start(bgpText)
	host := openHost(t)
	must(t, host.Announce([]bgp.Announcement{serving(0x77, false)}))
	r.awaitLearned("bgp-fcbb-bb00-77 5 up buckets:true")
	const name = "bgp-fcbb-bb00-77"
	drain(r, name, config.Draining)
	r.awaitLearned("bgp-fcbb-bb00-77 5 draining buckets:false")
	weight := 9
	if _, err := r.PutBackend(t.Context(), api.Update, "web", name,
		api.BackendSpec{Weight: &weight}); err == nil || !strings.Contains(err.Error(),
		"bgp.weight") {
		t.Errorf("another weight: %v", err)
	}
	if _, err := r.DeleteBackend(t.Context(), "web", name); err == nil ||
		!strings.Contains(err.Error(), "learned by BGP") {
		t.Errorf("delete: %v", err)
	}
	r.stop()
	r = m.start(bgpText)
	r.awaitLearned("bgp-fcbb-bb00-77 5 draining buckets:false")
	drain(r, name, config.Up)
	r.awaitLearned("bgp-fcbb-bb00-77 5 up buckets:true")
	r.stop()
}

// Who is listed among its own peers does not ask itself.
func TestOwnPeer(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	port := server.Listener.Addr().String()[len("127.0.0.1:"):]
	for _, own := range []string{"127.0.0.1:" + port, "0.0.0.0:" + port} {
		m := newMachine(t)
		must(t, m.ns.Do(upLoopback))
		text := strings.Replace(nodeText, "agent.sock}", "agent.sock, metrics: \""+own+"\"}", 1)
		r := m.start(strings.Replace(text, "  source: fd00:5e::e1\n",
			fmt.Sprintf("  source: fd00:5e::e1\n  peers: [%q]\n", "127.0.0.1:"+port), 1))
		r.stop()
		if asked.Load() != 0 {
			t.Errorf("with metrics at %s it asked at its own address", own)
		}
	}
}

// What a peer calls by a number of its own is nobody here: it is left out and counted.
func TestForeignNumbersAreIgnored(t *testing.T) {
	secret := clusterSigning(t)
	m := newMachine(t)
	r := m.start(strings.Replace(exactText, "  source: fd00:5e::e1\n",
		fmt.Sprintf("  source: fd00:5e::e1\n  peers: [%q]\n", peerOf(t, secret, 65537, 0xe001)), 1))
	for i, chain := range r.who() {
		if strings.Contains(chain, " ") {
			t.Fatalf("flow %d is offered to %q", i, chain)
		}
	}
	if got := r.metric("sextant_past_ignored_places_total"); got != "65537" {
		t.Errorf("%s places were ignored, want 65537", got)
	}
	r.stop()
}

// The kernel drops what the program leaves to it of a VIP, as long as there is the service.
func TestVIPsEndHere(t *testing.T) {
	m := newMachine(t)
	vips := func() (list []string) {
		must(t, m.ns.Do(func() error {
			for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
				routes, err := netlink.RouteListFiltered(family,
					&netlink.Route{Type: unix.RTN_BLACKHOLE}, netlink.RT_FILTER_TYPE)
				if err != nil {
					return err
				}
				for _, route := range routes {
					list = append(list, route.Dst.String())
				}
			}
			return nil
		}))
		return list
	}
	r := m.start(nodeText)
	if got, want := vips(), []string{"192.0.2.53/32", "2001:db8:80::80/128"}; !slices.Equal(got,
		want) {
		t.Errorf("routes that drop: %v, want %v", got, want)
	}
	must(t, func() error { _, err := r.DeleteService(t.Context(), "dns", api.Edge); return err }())
	if got, want := vips(), []string{"2001:db8:80::80/128"}; !slices.Equal(got, want) {
		t.Errorf("routes that drop: %v, want %v", got, want)
	}
	r.stop()
	must(t, m.unload())
	if got := vips(); len(got) > 0 {
		t.Errorf("after unloading: %v", got)
	}
}
