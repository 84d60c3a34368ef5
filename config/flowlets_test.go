package config_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/config"
)

// drawFlowlets makes a valid role.
func drawFlowlets(t *rapid.T) *config.Flowlets {
	f := &config.Flowlets{Interfaces: []string{"f0", "f1"},
		Source:        netip.MustParseAddr("2001:db8:a::1"),
		FlowletsOuter: config.FlowletsOuter{HopLimit: rapid.IntRange(1, 255).Draw(t, "hop limit")},
		Gap:           time.Duration(rapid.IntRange(0, 1000).Draw(t, "gap")) * time.Millisecond,
		Choice:        pick(t, config.Measured, config.Random, config.OfFlow),
		Flows:         rapid.IntRange(64, 1<<24).Draw(t, "flows")}
	if rapid.Bool().Draw(t, "flowlet probes") {
		f.Probe = &config.Probe{Interval: 10 * time.Millisecond, Missed: 3,
			Good: rapid.IntRange(1, 1000).Draw(t, "good")}
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "flowlet groups") {
		g := config.FlowletGroup{Name: fmt.Sprint("group", i), Destinations: []netip.Prefix{
			netip.MustParsePrefix(fmt.Sprintf("2001:db8:%d::/48", i))}}
		for j := range rapid.IntRange(1, 16).Draw(t, "flowlet paths") {
			g.Paths = append(g.Paths, config.FlowletPath{Name: fmt.Sprint("path", j),
				SID: netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%d:d6::", j+1))})
		}
		f.Groups = append(f.Groups, g)
	}
	return f
}

const flowletsText = `node: h1
domain: {block: fcbb:bb00::/32, infrastructure: ["fd00:5e::/32"]}
secret: 000102030405060708090a0b0c0d0e0f
flowlets:
  interfaces: [eth0]
  source: 2001:db8:a::1
  groups:
    - name: rack2
      destinations: [2001:db8:2::/48]
      paths: [{name: left, sid: "fcbb:bb00:1:d6::"}, {name: right, sid: "fcbb:bb00:2:d6::"}]
    - {name: rack3, destinations: [192.0.2.0/24], paths: [{name: a, sid: "fcbb:bb00:3:d6::"}]}
`

// What no host can use is refused, with what would do.
func TestFlowletsRefusals(t *testing.T) {
	if _, err := config.Parse("h1.yaml", []byte(flowletsText)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ from, to, want string }{
		{"[eth0]", "[]", "there is none by which packets leave"},
		{"[eth0]", "[eth0, eth0]", "given twice"},
		{"2001:db8:a::1", "192.0.2.1", "no IPv6 address"},
		{"192.0.2.0/24", `"2001:db8:2::/48"`, "group rack2 has 2001:db8:2::/48, too"},
		{"name: rack3", "name: rack2", "is there twice"},
		{"name: right", "name: left", "is there twice"},
		{"bb00:2:d6", "bb00:1:d6", "path left has it, too"},
		{"source:", "gap: 11s\n  source:", "0s to 10s"},
		{"source:", "choice: best\n  source:", "measured"},
		{"source:", "flows: 1\n  source:", "64 to 16777216"},
	} {
		_, err := config.Parse("h1.yaml",
			[]byte(strings.Replace(flowletsText, test.from, test.to, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s in place of %s: %v, want %q", test.to, test.from, err, test.want)
		}
	}
}
