package config_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
	"sextant/packet/cflb"
)

// drawPathSource makes a valid role.
func drawPathSource(t *rapid.T) *config.PathSource {
	p := &config.PathSource{KeyFile: "/etc/cflb.key",
		IPv4:      &config.Selector{Fields: "source-port", Radix: 4, Cipher: "feistel"},
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")},
		Ports:     config.PortRange{First: 20000, Last: 30000}}
	switch pick(t, "", "ports", "flow-label") {
	case "ports":
		p.IPv6 = &config.Selector{Fields: "ports", Radix: 4, Cipher: "feistel"}
		p.Addresses = append(p.Addresses, netip.MustParseAddr("2001:db8::1"))
	case "flow-label":
		p.IPv6 = &config.Selector{Fields: "flow-label", Radix: 4, Cipher: "feistel"}
		p.Interfaces = []string{"eth0", "eth1"}[:rapid.IntRange(1, 2).Draw(t, "interfaces")]
	}
	for i := range rapid.IntRange(1, 16).Draw(t, "rules") {
		p.Rules = append(p.Rules, config.PathRule{Name: fmt.Sprint("rule", i),
			Cgroup: pick(t, "", "/sys/fs/cgroup/a"), User: pick(t, config.AnyUser, 0, 1000),
			Command: pick(t, "", "curl"), Protocol: pick(t, 0, 6, 17),
			Destination: pick(t, netip.Prefix{}, netip.MustParsePrefix("10.0.0.0/8")),
			Via:         pick[config.Via](t, "any", "1,0", "-,3"), HopLimit: pick(t, 64, 2)})
	}
	return p
}

// Rules that no program can carry out, or that lead nowhere, are refused, with what would do.
func TestPathSourceRefusals(t *testing.T) {
	const head = `node: h1
domain: {block: fcbb:bb00::/32, infrastructure: ["fd00:5e::/32"]}
secret: 000102030405060708090a0b0c0d0e0f
pathSource:
  keyFile: /etc/sextant/cflb.key
`
	const sound = "  ipv4: {fields: source-port, radix: 4}\n  addresses: [10.0.0.1]\n"
	for text, want := range map[string]string{
		"  addresses: [10.0.0.1]\n  rules: [{name: a, via: any}]\n": "no family is steered",
		"  ipv4: {fields: source-port}\n  addresses: [\"2001:db8::1\"]\n" +
			"  rules: [{name: a, via: any}]\n": "none of the IP version",
		"  ipv4: {fields: source-port}\n  addresses: [10.0.0.1, 10.0.0.2]\n" +
			"  rules: [{name: a, via: any}]\n": "several of one IP version",
		"  ipv6: {fields: flow-label}\n  addresses: [\"2001:db8::1\"]\n" +
			"  rules: [{name: a, via: any}]\n": "none whose packets get flow labels",
		"  ipv6: {fields: flow-label}\n  interfaces: [a/b]\n" +
			"  rules: [{name: a, via: any}]\n": "no name of a network interface",
		"  ipv4: {fields: flow-label}\n  interfaces: [eth0]\n" +
			"  rules: [{name: a, via: any}]\n": "no flow label",
		"  ipv6: {fields: flow-label, radix: 4}\n  interfaces: [eth0]\n" +
			"  rules: [{name: a, via: \"4\"}]\n": "no selector holds 4",
		sound + "  rules: [{name: a, via: \"-\"}]\n": "has a choice",
		sound +
			"  rules: [{name: a, via: \"1;2\"}]\n": "is no way through routers",
		sound +
			"  rules: [{name: a, via: \"4\"}]\n": "no selector holds 4",
		sound + "  rules: [{name: a, via: \"1,1,1\", hopLimit: 2}]\n": "packets live for 2",
		sound + "  rules: [{name: a, via: any}, " +
			"{name: a, via: any}]\n": "is there twice",
		sound + "  rules: [{name: a, via: any, protocol: 58}]\n": "TCP and UDP",
		sound +
			"  rules: [{name: a, via: any, cgroup: b}]\n": "not an absolute path",
		sound + "  rules: [{name: a, via: any, command: a-very-long-name}]\n": "more than 15",
		sound + "  rules: [{name: a}]\n":                                      "next hop for each",
	} {
		_, err := config.Parse("node.yaml", []byte(head+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestViaHops(t *testing.T) {
	want := []cflb.Hop{{HopLimit: 64, Index: 3}, {HopLimit: 62, Index: 0}}
	if got := config.Via("3,-,0").Hops(64); !slices.Equal(got, want) {
		t.Errorf("hops %v, want %v", got, want)
	}
	if got := config.LeaveAlone.Hops(64); got != nil {
		t.Errorf("hops of connections that are left alone: %v", got)
	}
}
