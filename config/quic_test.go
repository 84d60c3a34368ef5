package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sextant/config"
)

const quicNode = `
node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  services:
    - name: h3
      vip: 2001:db8:80::80
      port: 443
      protocol: udp
      quic:
        configs:
          - {rotation: 0, serverIDLength: 2, nonceLength: 6, keyFile: /etc/sextant/quic.0}
          - {rotation: 1, serverIDLength: 2, nonceLength: 14, keyFile: /etc/sextant/quic.1}
          - {rotation: 2, serverIDLength: 2, nonceLength: 6}
`

// withKeys is the node with the keys that its files hold: 16 times an octet.
func withKeys(t *testing.T, octets ...string) *config.Node {
	t.Helper()
	n, err := config.Parse("node.yaml", []byte(quicNode))
	if err != nil {
		t.Fatal(err)
	}
	for i, octet := range octets {
		if n.Edge.Services[0].QUIC.Configs[i].Key, err = config.ParseQUICKey(strings.Repeat(octet,
			16) + "\n"); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// A key that was changed within its file is a change, in whichever rotation, and is told without
// being shown.
func TestDiffQUIC(t *testing.T) {
	a := withKeys(t, "a5", "b6")
	for _, test := range []struct {
		b    *config.Node
		want string
	}{
		{withKeys(t, "a5", "b6"), ""},
		{withKeys(t, "b6", "b6"),
			"~ service h3: quic rotation 0: key (not shown) -> (another, not shown)\n"},
		{withKeys(t, "a5", "a5"),
			"~ service h3: quic rotation 1: key (not shown) -> (another, not shown)\n"},
	} {
		if got := diffText(a, test.b); got != test.want {
			t.Errorf("diff:\n%s\nwant:\n%s", got, test.want)
		}
		x, errX := config.Fingerprint(a)
		y, errY := config.Fingerprint(test.b)
		if errX != nil || errY != nil || (x == y) != (test.want == "") {
			t.Errorf("fingerprints %s and %s (%v, %v) of nodes with these differences: %q", x, y,
				errX, errY, test.want)
		}
		for i, q := range test.b.Edge.Services[0].QUIC.Configs {
			if same := fmt.Sprintf("quic rotation %d:",
				i); q.Equal(a.Edge.Services[0].QUIC.Configs[i]) == strings.Contains(test.want,
				same) {
				t.Errorf("configuration %d: equal %v, and the diff is %q", i,
					q.Equal(a.Edge.Services[0].QUIC.Configs[i]), test.want)
			}
		}
	}
	moved := withKeys(t, "a5", "b6")
	moved.Edge.Services[0].QUIC.Configs[1].KeyFile = "/etc/sextant/quic.new"
	if got := diffText(a, moved); strings.Count(got, "\n") != 1 || !strings.Contains(got,
		"keyFile /etc/sextant/quic.1 -> /etc/sextant/quic.new") {
		t.Errorf("another file:\n%s", got)
	}
}

// Nothing that prints or encodes a node shows what its files hold, and what is in the node file
// itself only if it is asked for.
func TestNodeHidesItsSecrets(t *testing.T) {
	n := withKeys(t, "a5", "b6")
	text, err := config.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := config.MarshalAsJSON(n)
	if err != nil {
		t.Fatal(err)
	}
	for form, written := range map[string]string{"YAML": string(text), "JSON": string(whole)} {
		if !strings.Contains(written, "c3c3") {
			t.Errorf("the node file as %s has lost its secret:\n%s", form, written)
		}
	}
	implied, err := json.Marshal(map[string]any{"node": n, "services": n.Edge.Services})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %x %s %+v %#v", *n, *n, *n, n.Edge.Services[0].QUIC, implied,
		n.Edge.Services, n.Edge.Services)
	for _, leak := range []string{"c3c3", "0xc3", "195 195"} {
		if strings.Contains(shown, leak) {
			t.Errorf("the secret is shown as %q: %s", leak, shown)
		}
	}
	shown += string(text) + string(whole)
	for _, leak := range []string{"a5a5", "0xa5", "165 165", "paWl", "\xa5", "b6b6", "0xb6",
		"182 182", "trat", "\xb6"} {
		if strings.Contains(shown, leak) {
			t.Errorf("a key is shown as %q: %s", leak, shown)
		}
	}
	for _, wrong := range []string{"", "a5a5a5", strings.Repeat("a5", 15) + "x5",
		strings.Repeat("a5", 17)} {
		if _, err := config.ParseQUICKey(wrong); err == nil || strings.Contains(err.Error(), "a5") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
