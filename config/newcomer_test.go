package config_test

import (
	"strings"
	"testing"

	"sextant/config"
)

const plainNode = `node: edge1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
edge:
  interfaces: [{name: eth0}]
  source: fd00:5e::e1
  services:
    - {name: web, vip: 2001:db8::80, port: 80, backends: [{name: a, sid: "fcbb:bb00:1::"}, {name: b, sid: "fcbb:bb00:2::"}]}
`

// Editors that begin a file with a byte order mark do no harm.
func TestByteOrderMark(t *testing.T) {
	if _, err := config.Parse("node.yaml", []byte("\ufeff"+plainNode)); err != nil {
		t.Error(err)
	}
}

// One mistake gives one message, which says what to write, and is not longer than a screen.
func TestMistakesHaveOneShortMessage(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"2001:db8::80", "::ffff:192.0.2.80", "write 192.0.2.80"},
		{`"fcbb:bb00:1::"}, {name: b, sid: "fcbb:bb00:2::"`, `nosid}, {name: b, sid: nosid`,
			"is not a SID"},
		{"name: web", "name: " + strings.Repeat("x", 100_000), "..."},
	} {
		_, err := config.Parse("node.yaml", []byte(strings.Replace(plainNode, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 ||
			strings.Contains(err.Error(), "invalid IP") {
			t.Errorf("%.40q: %.2000v", c.to, err)
		}
	}
}
