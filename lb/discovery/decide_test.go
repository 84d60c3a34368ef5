package discovery_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
)

var (
	vip   = netip.MustParseAddr("2001:db8:80::80")
	web   = config.Endpoint{VIP: vip, Protocol: config.TCP, Port: 80}
	peer1 = netip.MustParseAddr("fd00::1")
	peer2 = netip.MustParseAddr("fd00::2")
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

func service(name string, e config.Endpoint, backends ...config.Backend) discovery.Service {
	return discovery.Service{Limit: 10, Service: config.Service{
		Name: name, Endpoint: e, Backends: backends,
		Continuity: config.Continuity{Policy: config.PolicyOffer, DrainTime: time.Minute},
	}}
}

// route is what a peer says of host n.
func route(peer netip.Addr, n int, edit ...func(*discovery.Route)) discovery.Route {
	r := discovery.Route{
		Peer: peer, Distinguisher: fmt.Sprintf("10.0.0.%d:1", n),
		Prefix: netip.PrefixFrom(vip, 128), SID: sid(n),
		Behavior: srv6.EndOFFER, Weight: 1,
	}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func sid(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", n)) }

func draining(r *discovery.Route) { r.Draining = true }
func weight(w int) func(*discovery.Route) {
	return func(r *discovery.Route) { r.Weight = w }
}
func at(s string) func(*discovery.Route) {
	return func(r *discovery.Route) { r.SID = netip.MustParseAddr(s) }
}
func doing(b srv6.Behavior) func(*discovery.Route) {
	return func(r *discovery.Route) { r.Behavior = b }
}
func from(rd string) func(*discovery.Route) {
	return func(r *discovery.Route) { r.Distinguisher = rd }
}
func structured(block, node, function uint8) func(*discovery.Route) {
	return func(r *discovery.Route) {
		r.Structure = discovery.Structure{Block: block, Node: node, Function: function}
	}
}
func serving(ports ...discovery.Port) func(*discovery.Route) {
	return func(r *discovery.Route) { r.Services = ports }
}

func view(t *testing.T, services []discovery.Service, sessions map[netip.Addr]discovery.Session,
	routes ...discovery.Route) discovery.View {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return discovery.View{
		Domain: discovery.Domain{Block: block, Carrier: true}, Services: services,
		Sessions: sessions, Routes: routes, Now: noon,
	}
}

type sessions = map[netip.Addr]discovery.Session

// text writes members and refusals, one a line.
func text(members []discovery.Member, refusals []discovery.Refusal) string {
	var b strings.Builder
	for _, m := range members {
		backend := m.Backend()
		fmt.Fprintf(&b, "%s %s weight %d %s\n", m.Endpoint, backend.Name, backend.Weight,
			backend.State)
	}
	for _, r := range refusals {
		fmt.Fprintf(&b, "ignored %s of %s for %q: %s\n", r.Route.SID, r.Route.Distinguisher,
			r.Service, r.Reason)
	}
	return b.String()
}

const onWeb = "[2001:db8:80::80]:80/tcp "

func TestDecide(t *testing.T) {
	one := []discovery.Service{service("web", web)}
	before := []discovery.Member{{Endpoint: web, SID: sid(1), Distinguisher: "10.0.0.1:1",
		Peers: []netip.Addr{peer1}, Weight: 3}}
	both := []discovery.Member{{Endpoint: web, SID: sid(1), Distinguisher: "10.0.0.1:1",
		Peers: []netip.Addr{peer1, peer2}, Weight: 3}}
	long := slices.Clone(before)
	long[0].Draining, long[0].Withdrawn = true, noon.Add(-time.Minute)
	anHour := slices.Clone(long)
	anHour[0].Withdrawn = noon.Add(-time.Hour)
	for name, test := range map[string]struct {
		before   []discovery.Member
		services []discovery.Service
		sessions sessions
		routes   []discovery.Route
		want     string
	}{
		"a route": {nil, one, sessions{peer1: discovery.Standing},
			[]discovery.Route{route(peer1, 1, weight(7))},
			onWeb + "bgp-fcbb-bb00-1 weight 7 up\n"},
		"a draining route": {before, one, sessions{peer1: discovery.Standing},
			[]discovery.Route{route(peer1, 1, draining)},
			onWeb + "bgp-fcbb-bb00-1 weight 1 draining\n"},
		"withdrawn": {before, one, sessions{peer1: discovery.Standing},
			nil, onWeb + "bgp-fcbb-bb00-1 weight 3 draining\n"},
		"withdrawn longer than the drain time": {long, one, sessions{peer1: discovery.Standing},
			nil, ""},
		"back again": {long, one, sessions{peer1: discovery.Standing},
			[]discovery.Route{route(peer1, 1)},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\n"},
		"session lost": {before, one, sessions{peer1: discovery.Lost}, nil,
			onWeb + "bgp-fcbb-bb00-1 weight 3 draining\n"},
		"session lost long ago": {anHour, one, sessions{peer1: discovery.Lost}, nil, ""},
		"both of two reflectors lost": {both, one, sessions{peer1: discovery.Lost,
			peer2: discovery.Lost}, nil, onWeb + "bgp-fcbb-bb00-1 weight 3 draining\n"},
		"neighbor deleted": {before, one, nil, nil, ""},
		"session restarts": {before, one, sessions{peer1: discovery.Settling}, nil,
			onWeb + "bgp-fcbb-bb00-1 weight 3 up\n"},
		"one of two reflectors lost": {both, one, sessions{peer2: discovery.Standing}, nil,
			onWeb + "bgp-fcbb-bb00-1 weight 3 draining\n"},
		"one of two reflectors knows": {both, one, sessions{peer2: discovery.Settling}, nil,
			onWeb + "bgp-fcbb-bb00-1 weight 3 up\n"},
		"two reflectors": {nil, one, nil, []discovery.Route{route(peer2, 1, draining),
			route(peer1, 1, weight(4))},
			onWeb + "bgp-fcbb-bb00-1 weight 1 draining\n"},
		"this node itself": {nil, one, nil, []discovery.Route{route(netip.Addr{}, 1)},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\n"},
		"no service": {nil, []discovery.Service{service("web",
			config.Endpoint{VIP: peer1, Protocol: config.TCP, Port: 80})}, nil,
			[]discovery.Route{route(peer1, 1)},
			"ignored fcbb:bb00:1:: of 10.0.0.1:1 for \"\": no_service\n"},
		"another port of the VIP": {before, one, sessions{peer1: discovery.Standing},
			[]discovery.Route{route(peer1, 1,
				serving(discovery.Port{Protocol: config.TCP, Port: 443}))},
			onWeb + "bgp-fcbb-bb00-1 weight 3 draining\nignored fcbb:bb00:1:: of 10.0.0.1:1 for " +
				"\"\": no_service\n"},
		"this port among others": {nil, one, nil,
			[]discovery.Route{route(peer1, 1,
				serving(discovery.Port{Protocol: config.UDP, Port: 80},
					discovery.Port{Protocol: config.TCP, Port: 80}))},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\n"},
		"outside of the block": {nil, one, nil,
			[]discovery.Route{route(peer1, 1, at("fcbb:bb01:1::")),
				route(peer1, 2, at("fcbb:bb00:2:3::"))},
			"ignored fcbb:bb00:2:3:: of 10.0.0.2:1 for \"web\": not_a_sid\nignored fcbb:bb01:1:: " +
				"of 10.0.0.1:1 for \"web\": not_a_sid\n"},
		"the structure of the domain": {nil, one, nil,
			[]discovery.Route{route(peer1, 1, structured(32, 16, 0))},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\n"},
		"an identifier as function": {nil, one, nil,
			[]discovery.Route{route(peer1, 1, structured(32, 0, 16))},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\n"},
		"the structure of another domain": {nil, one, nil,
			[]discovery.Route{route(peer1, 1, structured(48, 16, 16)),
				route(peer1, 2, structured(32, 8, 0))},
			"ignored fcbb:bb00:1:: of 10.0.0.1:1 for \"web\": sid_structure\n" +
				"ignored fcbb:bb00:2:: of 10.0.0.2:1 for \"web\": sid_structure\n"},
		"no offer": {nil, one, nil, []discovery.Route{route(peer1, 1, doing(srv6.EndDT46))},
			"ignored fcbb:bb00:1:: of 10.0.0.1:1 for \"web\": behavior\n"},
		"behaviour lost on the way": {nil, one, nil,
			[]discovery.Route{route(peer1, 1, doing(65535),
				serving(discovery.Port{Protocol: config.TCP, Port: 80})),
				route(peer1, 2, doing(65535))},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\nignored fcbb:bb00:2:: of 10.0.0.2:1 for " +
				"\"web\": behavior\n"},
		"two hosts with one SID": {nil, one, nil,
			[]discovery.Route{route(peer1, 1, from("10.0.0.9:1")), route(peer1, 1)},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\nignored fcbb:bb00:1:: of 10.0.0.9:1 for " +
				"\"web\": sid_conflict\n"},
		"the first keeps it": {before, one, sessions{peer1: discovery.Standing},
			[]discovery.Route{route(peer1, 1, from("10.0.0.0:1"), weight(9)), route(peer1, 1)},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\nignored fcbb:bb00:1:: of 10.0.0.0:1 for " +
				"\"web\": sid_conflict\n"},
		"until it leaves it": {before, one, sessions{peer1: discovery.Standing},
			[]discovery.Route{route(peer1, 1, from("10.0.0.0:1"))},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\n"},
		"static SID": {before, []discovery.Service{service("web", web,
			config.Backend{Name: "a", SID: sid(1)})},
			sessions{peer1: discovery.Standing}, []discovery.Route{route(peer1, 1)},
			"ignored fcbb:bb00:1:: of 10.0.0.1:1 for \"web\": static_sid\n"},
		"static name": {nil, []discovery.Service{service("web", web,
			config.Backend{Name: "bgp-fcbb-bb00-1", SID: sid(2)})}, nil,
			[]discovery.Route{route(peer1, 1)},
			"ignored fcbb:bb00:1:: of 10.0.0.1:1 for \"web\": name_conflict\n"},
		"too many": {[]discovery.Member{{Endpoint: web, SID: sid(3), Distinguisher: "10.0.0.3:1",
			Peers: []netip.Addr{peer1}}},
			[]discovery.Service{{Service: one[0].Service, Limit: 2}},
			sessions{peer1: discovery.Standing},
			[]discovery.Route{route(peer1, 1), route(peer1, 2), route(peer1, 3)},
			onWeb + "bgp-fcbb-bb00-1 weight 1 up\n" + onWeb + "bgp-fcbb-bb00-3 weight 1 up\n" +
				"ignored fcbb:bb00:2:: of 10.0.0.2:1 for \"web\": too_many\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(discovery.Decide(test.before,
				view(t, test.services, test.sessions, test.routes...)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Which behaviours fit depends on the service's policy and on the VIP's IP version.
func TestBehaviors(t *testing.T) {
	v4 := config.Endpoint{VIP: netip.MustParseAddr("192.0.2.80"), Protocol: config.TCP, Port: 80}
	all := []srv6.Behavior{
		srv6.EndOFFER, srv6.EndDT4, srv6.EndDT6, srv6.EndDT46, srv6.EndDT4COND, srv6.EndDT6COND,
		srv6.EndDT46COND, srv6.End,
	}
	var got strings.Builder
	for _, policy := range []config.ServicePolicy{config.PolicyOffer, config.PolicyECMP,
		config.PolicyShadow} {
		for _, e := range []config.Endpoint{v4, web} {
			s := service("s", e)
			s.Policy = policy
			fmt.Fprintf(&got, "%s %s:", policy, e.VIP)
			for _, b := range all {
				r := route(peer1, 1, doing(b))
				r.Prefix = netip.PrefixFrom(e.VIP, e.VIP.BitLen())
				if members, _ := discovery.Decide(nil,
					view(t, []discovery.Service{s}, nil, r)); len(members) == 1 {
					fmt.Fprintf(&got, " %s", b)
				}
			}
			got.WriteString("\n")
		}
	}
	want := `offer 192.0.2.80: End.OFFER
offer 2001:db8:80::80: End.OFFER
ecmp 192.0.2.80: End.OFFER End.DT4 End.DT46
ecmp 2001:db8:80::80: End.OFFER End.DT6 End.DT46
shadow 192.0.2.80: End.DT4.COND End.DT46.COND
shadow 2001:db8:80::80: End.DT6.COND End.DT46.COND
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// With a segment routing header any routable SID will do.
func TestSIDsOfAHeader(t *testing.T) {
	v := view(t, []discovery.Service{service("web", web)}, nil,
		route(peer1, 1, at("2001:db8:1::1")), route(peer1, 2, at("ff02::1")))
	v.Domain.Carrier = false
	want := onWeb + "bgp-2001-db8-1--1 weight 1 up\nignored ff02::1 of 10.0.0.2:1 for \"web\": " +
		"not_a_sid\n"
	if diff := cmp.Diff(want, text(discovery.Decide(nil, v))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The order in which routes and members come is no information.
func TestOrderDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var routes []discovery.Route
	for n := 1; n <= 14; n++ {
		routes = append(routes, route(peer1, n), route(peer2, n, draining),
			route(peer2, n, from("10.9.9.9:1")))
	}
	services := []discovery.Service{service("web", web),
		service("tls", config.Endpoint{VIP: vip, Protocol: config.TCP, Port: 443})}
	standing := sessions{peer1: discovery.Standing}
	members, refusals := discovery.Decide(nil, view(t, services, standing, routes...))
	want := text(discovery.Decide(members, view(t, services, standing, routes[6:]...)))
	if len(refusals) == 0 || !strings.Contains(want, "too_many") || !strings.Contains(want,
		"draining") {
		t.Fatalf("the world is too simple: %s", want)
	}
	for range 20 {
		shuffled, rest := slices.Clone(members), slices.Clone(routes[6:])
		random.Shuffle(len(shuffled), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j],
				shuffled[i]
		})
		random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
		if diff := cmp.Diff(want, text(discovery.Decide(shuffled,
			view(t, services, standing, rest...)))); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

// By the same routes and sessions, members are decided as before, however late it is; but the time
// decides of those that are withdrawn. An agent decides anew only when one of these changes.
func TestDecidedOnce(t *testing.T) {
	services := []discovery.Service{service("web", web),
		service("tls", config.Endpoint{VIP: vip, Protocol: config.TCP, Port: 443})}
	edits := []func(*discovery.Route){func(*discovery.Route) {}, draining, weight(3), weight(0),
		from("10.9.9.9:1"), at(sid(1).String()), doing(srv6.EndDT46),
		serving(discovery.Port{Protocol: config.TCP, Port: 80})}
	same, withdrawn, later := 0, 0, 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 48))
		some := func() (routes []discovery.Route) {
			for range random.IntN(30) {
				routes = append(routes, route([]netip.Addr{peer1, peer2}[random.IntN(2)],
					1+random.IntN(14), edits[random.IntN(len(edits))]))
			}
			return routes
		}
		now := view(t, services, sessions{peer1: discovery.Session(random.IntN(3)),
			peer2: discovery.Session(random.IntN(3))}, some()...)
		before, _ := discovery.Decide(nil, view(t, services, sessions{
			peer1: discovery.Standing, peer2: discovery.Standing}, some()...))
		members, refusals := discovery.Decide(before, now)
		now.Now = now.Now.Add(2 * time.Hour)
		again, refused := discovery.Decide(members, now)
		if slices.ContainsFunc(members,
			func(m discovery.Member) bool { return !m.Withdrawn.IsZero() }) {
			withdrawn++
			if !slices.EqualFunc(members, again, discovery.Member.Equal) {
				later++
			}
			continue
		}
		if same++; !slices.EqualFunc(members, again, discovery.Member.Equal) {
			t.Fatalf("seed %d: members %+v, then %+v", seed, members, again)
		}
		if diff := cmp.Diff(text(nil, refusals), text(nil, refused)); diff != "" {
			t.Fatalf("seed %d: refusals (-first +again):\n%s", seed, diff)
		}
	}
	if same < 100 || withdrawn < 100 || later < 100 {
		t.Errorf("%d views without withdrawn members, %d with, %d of which the time changed: "+
			"too few", same, withdrawn, later)
	}
}
