package config_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
)

// drawSubflows makes a valid role.
func drawSubflows(t *rapid.T) *config.Subflows {
	s := &config.Subflows{AfterBytes: pick(t, 0, 1, 1<<20)}
	if rapid.Bool().Draw(t, "computed") {
		s.KeyFile = "/etc/cflb.key"
		s.IPv4 = &config.Selector{Fields: pick[config.SelectorFields](t, "source-port", "ports"),
			Radix: 4, Cipher: "feistel"}
	}
	switch pick(t, "", "socket", "address") {
	case "socket":
		s.Controller = &config.Scheduler{Socket: "/run/c"}
	case "address":
		s.Controller = &config.Scheduler{Address: "c:1", TokenFile: "/t",
			TLS: config.TLSFiles{CA: "/ca"}}
	default:
		if s.IPv4 == nil {
			s.Controller = &config.Scheduler{Socket: "/s"}
		}
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "rules") {
		r := config.SubflowRule{Name: fmt.Sprint("rule", i)}
		if s.IPv4 != nil {
			r.NextHops = pick[config.HopCounts](t, "4", "2,2", "1,4,2")
			r.Destination = pick(t, netip.Prefix{}, netip.MustParsePrefix("10.0.0.0/8"))
		} else {
			r.Scheduled = rapid.IntRange(1, 8).Draw(t, "scheduled")
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

// What can't be done is refused, with what would do.
func TestSubflowsRefusals(t *testing.T) {
	const head = `node: h1
domain: {block: fcbb:bb00::/32, infrastructure: ["fd00:5e::/32"]}
secret: 000102030405060708090a0b0c0d0e0f
subflows:
`
	const sound = "  keyFile: /k\n  ipv4: {fields: source-port, radix: 4}\n"
	for text, want := range map[string]string{
		"  ipv4: {fields: source-port}\n" +
			"  rules: [{name: a, nextHops: \"2\"}]\n": "no file with the network's key",
		"  keyFile: k\n  ipv4: {fields: source-port}\n" +
			"  rules: [{name: a, nextHops: \"2\"}]\n": "not an absolute path",
		"  keyFile: /k\n  ipv6: {fields: flow-label}\n" +
			"  rules: [{name: a, nextHops: \"2\"}]\n": "write source-port or ports",
		sound:                                `add "rules:"`,
		sound + "  rules: [{name: a}]\n":     "write either nextHops",
		sound + "  rules: [{nextHops: a}]\n": `add "name: "`,
		sound + "  rules: [{name: a, nextHops: \"2\", scheduled: 2}]\n": "write either nextHops",
		sound + "  rules: [{name: a, nextHops: \"2;2\"}]\n":             "number of each router",
		sound + "  rules: [{name: a, nextHops: \"0\"}]\n":               "number of each router",
		sound + "  rules: [{name: a, nextHops: \"3,3\"}]\n":             "more paths than",
		sound + "  rules: [{name: a, nextHops: \"5\"}]\n":               "radix 4 name 4",
		sound + "  rules: [{name: a, scheduled: 2}]\n":                  "no controller is named",
		sound + "  rules: [{name: a, scheduled: 9}]\n":                  "out of range",
		sound + "  rules: [{name: a, nextHops: \"2\"}, " +
			"{name: a, nextHops: \"2\"}]\n": "is there twice",
		sound + "  rules: [{name: a, destination: \"2001:db8::/32\", " +
			"nextHops: \"2\"}]\n": "no selector is there",
		"  controller: {}\n  rules: [{name: a, scheduled: 2}]\n": "not said where",
		"  controller: {socket: /s, address: \"c:1\"}\n" +
			"  rules: [{name: a, scheduled: 2}]\n": "leave one of the two",
		"  controller: {address: \"c:1\"}\n  rules: [{name: a, scheduled: 2}]\n": "have tokens",
		"  controller: {address: c}\n  rules: [{name: a, scheduled: 2}]\n":       "host and port",
	} {
		_, err := config.Parse("node.yaml", []byte(head+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	n, err := config.Parse("node.yaml", []byte(head+sound+
		"  rules: [{name: a, destination: 10.0.0.0/8, nextHops: \"2,1,4\"}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := n.Subflows.Rules[0].NextHops.Counts(); fmt.Sprint(got) != "[2 1 4]" {
		t.Errorf("next hops are %v", got)
	}
}
