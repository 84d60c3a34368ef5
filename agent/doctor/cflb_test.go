package doctor_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/linux/facts"
)

const cflbText = `
node: router1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
cflb:
  interfaces: [{name: eth0}]
  router: 9
  keyFile: /etc/sextant/cflb.key
  ipv4: {fields: source-port, radix: 4}
`

func TestControllableLoadBalancing(t *testing.T) {
	gateway := netip.MustParseAddr("10.0.0.2")
	all := netip.MustParsePrefix("0.0.0.0/0")
	for _, test := range []struct {
		name string
		with func(*facts.Facts)
		want []string
	}{
		{"nothing is wrong", func(f *facts.Facts) {
			f.Followers = []facts.Follower{{Prefix: all, Gateway: gateway, Interface: "eth1",
				Follows: true}}
		}, nil},
		{"a router with another key", func(f *facts.Facts) {
			f.Followers = []facts.Follower{{Prefix: all, Gateway: gateway, Interface: "eth1"}}
		}, []string{"risk cflb_not_followed 10.0.0.2 via eth1"}},
		{"a radix that is too small", func(f *facts.Facts) {
			f.Running.Unnameable = []facts.Unnameable{{Prefix: all, NextHops: 5}}
		}, []string{"risk cflb_radix 0.0.0.0/0"}},
		{"another family", func(f *facts.Facts) {
			f.Running.Unnameable = []facts.Unnameable{{Prefix: netip.MustParsePrefix("::/0"),
				NextHops: 5}}
		}, nil},
	} {
		f := facts.Facts{Kernel: facts.Kernel{Release: "6.12.1", BPFFS: true, ClockSource: "tsc"},
			Interfaces: map[string]facts.Interface{"eth0": device()},
			Running:    &facts.Running{Node: "router1", Version: "v1"}}
		test.with(&f)
		got := diagnosed(t, parseText(t, cflbText), f)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// An address of pathSource that the machine does not have is told; no agent, and other addresses,
// are no reason to.
func TestPathSourceAddress(t *testing.T) {
	node := parseText(t, `
node: source1
domain: {block: "fcbb:bb00::/32", infrastructure: ["fd00:5e::/48"]}
secret: 00112233445566778899aabbccddeeff
pathSource:
  keyFile: /etc/sextant/cflb.key
  ipv4: {fields: source-port, radix: 4}
  addresses: [10.0.0.1]
  rules: [{name: all, via: "1,0"}]
`)
	address := netip.MustParseAddr("10.0.0.1")
	for local, want := range map[bool][]string{true: nil, false: {"broken path_address 10.0.0.1"}} {
		f := facts.Facts{Kernel: facts.Kernel{Release: "6.12.1", BPFFS: true, ClockSource: "tsc"},
			Interfaces: map[string]facts.Interface{"eth0": device()},
			Local:      map[netip.Addr]bool{address: local},
			Running:    &facts.Running{Node: "source1", Version: "v1"}}
		if diff := cmp.Diff(want, diagnosed(t, node, f)); diff != "" {
			t.Errorf("local %v (-want +got):\n%s", local, diff)
		}
	}
}
