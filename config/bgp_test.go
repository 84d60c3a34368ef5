package config_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/config"
)

func drawBGP(t *rapid.T) *config.BGP {
	b := &config.BGP{
		ASN: rapid.IntRange(1, 1<<32-2).Draw(t, "asn"), RouterID: netip.MustParseAddr("192.0.2.1"),
		Listen: netip.MustParseAddrPort("[::]:179"), RouteTarget: "64512:80",
		RouteDistinguisher: "192.0.2.1:65535",
		GracefulRestart:    time.Duration(rapid.IntRange(1, 4095).Draw(t, "restart")) * time.Second,
		OnStop:             pick(t, config.Withdraw, config.Keep),
		Announce: pick(t, config.AnnounceUp, config.AnnounceDraining,
			config.AnnounceNothing),
		Weight:       rapid.IntRange(0, 65535).Draw(t, "weight"),
		Startup:      time.Duration(rapid.IntRange(0, 600).Draw(t, "startup")) * time.Second,
		AnnounceVIPs: pick(t, config.WhileAny, config.WhileHealthy),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "neighbors") {
		n := config.Neighbor{
			Address: netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i+1)), ASN: b.ASN,
			Port:    rapid.IntRange(1, 65535).Draw(t, "port"),
			Passive: rapid.Bool().Draw(t, "passive"), Families: []config.Family{config.VPNv6,
				config.IPv4Unicast},
			HoldTime: time.Duration(rapid.IntRange(3, 65535).Draw(t, "hold time")) * time.Second,
		}
		if rapid.Bool().Draw(t, "named") {
			n.Name = fmt.Sprint("leaf", i)
		}
		if rapid.Bool().Draw(t, "bfd") {
			n.BFD = config.BFD{Interval: 50 * time.Millisecond,
				Multiplier: rapid.IntRange(1, 255).Draw(t, "multiplier")}
		}
		if rapid.Bool().Draw(t, "local") {
			n.Local, n.PasswordFile = netip.MustParseAddr("2001:db8::ff"), "/key"
		}
		b.Neighbors = append(b.Neighbors, n)
	}
	return b
}

func TestBGPDefaults(t *testing.T) {
	b := load(t, "bgp").BGP
	if b.RouteTarget != "64512:1" || b.RouteDistinguisher != "192.0.2.1:1" {
		t.Errorf("route target %s and distinguisher %s; want those made of asn and routerID",
			b.RouteTarget, b.RouteDistinguisher)
	}
	want := []config.Family{config.IPv4Unicast, config.IPv6Unicast, config.VPNv4, config.VPNv6}
	if diff := cmp.Diff(want, b.Neighbors[0].Families); diff != "" {
		t.Errorf("families of a neighbor that names none (-want +got):\n%s", diff)
	}
	if got, want := b.Neighbors[1].BFD,
		(config.BFD{Interval: 50 * time.Millisecond, Multiplier: 3}); got != want {
		t.Errorf("bfd = %v, want %v", got, want)
	}
}

// A host's connections go on when its agent stops, so its edges keep it, unless the file says
// otherwise.
func TestOnStopDefault(t *testing.T) {
	const text = `
node: host1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
host: {interfaces: [{name: eth0}], sids: [{prefix: "fcbb:bb00:1::/48", behavior: End.OFFER}]}
bgp: {asn: 64512, routerID: 192.0.2.1, neighbors: [{address: 192.0.2.2, asn: 64512}], gracefulRestart: 9s}
`
	for _, test := range []struct {
		from, to string
		want     config.OnStop
	}{
		{"", "", config.Keep},
		{"9s", "0", config.Withdraw},
		{"9s", "9s, onStop: withdraw", config.Withdraw},
	} {
		n, err := config.Parse("host.yaml", []byte(strings.Replace(text, test.from, test.to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if n.BGP.OnStop != test.want {
			t.Errorf("with %s in place of %s, onStop is %s, want %s", test.to, test.from,
				n.BGP.OnStop, test.want)
		}
	}
}

func TestDiffBGP(t *testing.T) {
	a := load(t, "bgp")
	b := a.Clone()
	b.BGP.Announce = config.AnnounceDraining
	b.BGP.Neighbors[1].Families[0] = config.VPNv4
	b.BGP.Neighbors = b.BGP.Neighbors[:2]
	without := a.Clone()
	without.BGP = nil
	golden(t, "testdata/diff-bgp.txt", diffText(a, b)+"--- taken out\n"+diffText(a,
		without)+"--- put in\n"+diffText(without, a))
}

func diffText(a, b *config.Node) (text string) {
	for _, c := range config.Diff(a, b) {
		text += c.String() + "\n"
	}
	return text
}

func TestSetAnnounce(t *testing.T) {
	edge, host := load(t, "bgp"), load(t, "host")
	if _, err := config.SetAnnounce(edge, config.AnnounceDraining); !errors.Is(err,
		config.ErrConflict) {
		t.Errorf("on an edge: %v", err)
	}
	if _, err := config.SetAnnounce(host, config.AnnounceDraining); !errors.Is(err,
		config.ErrNotFound) {
		t.Errorf("without bgp: %v", err)
	}
	host.BGP = edge.BGP
	if _, err := config.SetAnnounce(host, "loudly"); !errors.Is(err, config.ErrInvalid) {
		t.Errorf("an unknown word: %v", err)
	}
	next, err := config.SetAnnounce(host, config.AnnounceDraining)
	if err != nil || next.BGP.Announce != config.AnnounceDraining ||
		host.BGP.Announce != config.AnnounceUp {
		t.Errorf("announces %v, %v; the node itself %s", next, err, host.BGP.Announce)
	}
}
