package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// A change that is refused, whatever refuses it, leaves sessions alone.
func TestRefusedChangeKeepsSessions(t *testing.T) {
	m := newMachine(t)
	d := m.disk()
	a := m.start(bgpText)
	defer a.stop()
	openHost(t)
	session := func() (peer api.BGPPeer) {
		t.Helper()
		peers, err := a.BGPPeers(t.Context())
		must(t, err)
		if len(peers) != 1 {
			t.Fatalf("neighbors %+v, want one", peers)
		}
		return peers[0]
	}
	eventually(t, "the session is up", func() bool { return session().State == "established" })
	since := session().Since
	text := m.text(bgpText, "passive: true", "passive: true, holdTime: 30s")
	ends := strings.Replace(text, "fcbb:bb00:9::/48", "fcbb:bb00:a::/48", 1)
	password := strings.Replace(text, "passive: true", "passive: true, passwordFile: /none", 1)
	for name, refused := range map[string]func() error{
		"guard": func() error {
			_, err := a.Apply(t.Context(), "node.yaml", []byte(ends), false)
			return err
		},
		"guard, on condition": func() error {
			_, err := a.ApplyUnconfirmed(t.Context(), "node.yaml", []byte(ends), time.Hour)
			return err
		},
		"full disk": func() error {
			d.fill()
			defer d.empty()
			_, err := a.apply(text, false)
			return err
		},
		"password": func() error {
			_, err := a.apply(password, false)
			return err
		},
		"password, dry run": func() error {
			_, err := a.apply(password, true)
			return err
		},
	} {
		if err := refused(); err == nil {
			t.Errorf("%s: nothing is refused", name)
		}
		if now := session(); now.State != "established" || !now.Since.Equal(*since) {
			t.Fatalf("%s: the session that was up since %v is %+v", name, since, now)
		}
	}
	_, err := a.apply(text, false)
	must(t, err)
	if now := session(); now.State == "established" && now.Since.Equal(*since) {
		t.Error("another holdTime began no new session")
	}
}

// vrfText is an edge, and a VRF by which the kernel forwards.
var vrfText = routedText[:strings.Index(routedText, "routing:")] + vrfPart

const vrfPart = `routing:
  vrfs:
    - name: blue
      source: kernel
      table: 10
      datapath: kernel
      install: 100
      interfaces: [host0]
      shadow: {table: 101, sid: "fcbb:bb00:d0::", keep: 10m}
`

// routes are the rules of the machine, and the routes over IPv6 with which Sextant has to do.
func (m *machine) routes() (list []string) {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		for _, table := range []int{100, 101, 110, 111, unix.RT_TABLE_MAIN} {
			routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6,
				&netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
			if err != nil {
				return err
			}
			for _, r := range routes {
				if r.Protocol == 0x5f {
					list = append(list, fmt.Sprintf("table %d: %s", table, r.Dst))
				}
			}
		}
		rules, err := netlink.RuleList(netlink.FAMILY_ALL)
		for _, r := range rules {
			list = append(list, r.String())
		}
		return err
	}))
	slices.Sort(list)
	return list
}

// A start that is refused leaves the kernel's tables and the state as they were, whatever its node
// file says of both; a start that is not changes them.
func TestRefusedStartLeavesTables(t *testing.T) {
	m := newMachine(t)
	m.ip("link set lo up")
	m.ip("-6 nexthop replace id 1 encap seg6 mode encap segs fcbb:bb00:2:: dev lo")
	m.ip("-6 route add 2001:db8:80::80 table 10 nhid 1")
	a := m.start(vrfText)
	eventually(t, "the route is in the VRF's table", func() bool {
		return slices.Contains(m.routes(), "table 100: 2001:db8:80::80/128")
	})
	confirmed := m.text(vrfText, "drainTime: 1m", "drainTime: 2m")
	_, err := a.ApplyUnconfirmed(t.Context(), "node.yaml", []byte(confirmed), time.Hour)
	must(t, err)
	a.stop()
	file := filepath.Join(m.dir, "state", "both1.json")
	state, err := os.ReadFile(file)
	must(t, err)
	routes := m.routes()
	without := strings.Replace(vrfText, vrfPart, "", 1)
	others := strings.NewReplacer("install: 100", "install: 110", "table: 101", "table: 111",
		"d0::", "d1::", "host0", "edge0").Replace(vrfText)
	for _, text := range []string{without, others} {
		why := m.fails(strings.Replace(text, "name: edge0", "name: none", 1))
		if !strings.Contains(why, "packets are forwarded as before") {
			t.Errorf("the start is refused, for: %s", why)
		}
		same(t, "the kernel's tables", routes, m.routes())
		now, err := os.ReadFile(file)
		must(t, err)
		same(t, "the state", []string{string(state)}, []string{string(now)})
	}
	m.start(others).stop()
	if now := m.routes(); slices.Contains(now, "table 100: 2001:db8:80::80/128") ||
		!slices.Contains(now, "table 254: fcbb:bb00:d1::/128") {
		t.Errorf("with other tables: %q", now)
	}
	m.start(without).stop()
	for _, r := range m.routes() {
		if strings.HasPrefix(r, "table") {
			t.Errorf("without VRFs: %s", r)
		}
	}
}
