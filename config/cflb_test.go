package config_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/config"
)

// drawCFLB makes a valid role.
func drawCFLB(t *rapid.T) *config.CFLB {
	c := &config.CFLB{Interfaces: []config.XDPInterface{{Name: "r0", Mode: config.Auto}},
		Router: rapid.IntRange(0, 1<<32-1).Draw(t, "router"), KeyFile: "/etc/cflb.key",
		Forwarding: pick(t, config.ByKernel, config.ByXDP)}
	if rapid.Bool().Draw(t, "ipv4") {
		c.IPv4 = &config.Selector{Fields: pick[config.SelectorFields](t, "source-port", "ports"),
			Radix: rapid.IntRange(2, 256).Draw(t, "radix"), Cipher: "feistel",
			Modulo: rapid.Bool().Draw(t, "modulo")}
	}
	if c.IPv4 == nil || rapid.Bool().Draw(t, "ipv6") {
		c.IPv6 = &config.Selector{Fields: "flow-label", Radix: 8, Cipher: "feistel",
			Length: rapid.IntRange(0, 6).Draw(t, "length")}
	}
	return c
}

const cflbText = `node: r1
domain: {block: fcbb:bb00::/32, infrastructure: ["fd00:5e::/32"]}
secret: 000102030405060708090a0b0c0d0e0f
cflb:
  interfaces: [{name: eth0}]
  router: 7
  keyFile: /etc/sextant/cflb.key
`

// What no network can use is refused, with what would do.
func TestCFLBRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no family is controlled",
		"  ipv4: {fields: flow-label}\n": "IPv4 packets have no flow label",
		"  ipv4: {fields: source-port, radix: 1}\n":              "radix",
		"  ipv4: {fields: source-port, radix: 4, length: 9}\n":   "1 to 8 digits of radix 4",
		"  ipv4: {fields: source-port, cipher: rc5}\n":           "rc5 has blocks of 32 bits",
		"  ipv6: {fields: label}\n":                              "flow-label",
		"  ipv6: {fields: flow-label}\n  forwarding: hardware\n": "kernel or xdp",
	} {
		_, err := config.Parse("node.yaml", []byte(cflbText+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The key decides the fingerprint of what runs, and is in no text.
func TestCFLBKey(t *testing.T) {
	read := func(key string) *config.Node {
		n, err := config.Parse("node.yaml", []byte(cflbText+"  ipv4: {fields: source-port}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if n.CFLB.Key, err = config.ParseCFLBKey(key); err != nil {
			t.Fatal(err)
		}
		return n
	}
	a, b := read(strings.Repeat("5a", 16)+"\n"), read(strings.Repeat("5b", 16))
	if fingerprint(t, a) == fingerprint(t, b) {
		t.Error("another key is no other configuration")
	}
	if changes := config.Diff(a, b); len(changes) != 1 || strings.Contains(changes[0].String(),
		"5b5b") {
		t.Errorf("changes %v, want one that hides the key", changes)
	}
	if text := marshalled(t, a); strings.Contains(text, "5a5a") {
		t.Error("the key is in the node file")
	}
	if _, err := config.ParseCFLBKey("5a5a"); err == nil || strings.Contains(err.Error(), "5a5a") {
		t.Errorf("a short key: %v", err)
	}
}

func fingerprint(t *testing.T, n *config.Node) string {
	t.Helper()
	print, err := config.Fingerprint(n)
	if err != nil {
		t.Fatal(err)
	}
	return print
}

func marshalled(t *testing.T, n *config.Node) string {
	t.Helper()
	text, err := config.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
