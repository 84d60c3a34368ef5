package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckWarns: what fits no machine, or shares nothing fairly, is no fault of a node file, and
// is said.
func TestCheckWarns(t *testing.T) {
	text := func(services, backends int, buckets string) string {
		var b strings.Builder
		b.WriteString("node: e1\n" +
			"domain: {block: \"fcbb:bb00::/32\", infrastructure: [\"fd00:5e::/48\"]}\n" +
			"secret: 00112233445566778899aabbccddeeff\nedge:\n  interfaces: [{name: eth0, side: " +
			"external}]\n" +
			"  source: fd00:5e::e1\n" + buckets + "  services:\n")
		for s := range services {
			fmt.Fprintf(&b, "    - name: s%d\n      vip: 2001:db8::1\n      port: %d\n      "+
				"backends:\n", s, s+1)
			for i := range backends {
				fmt.Fprintf(&b, "        - {name: b%d, sid: \"fcbb:bb00:%x::\"}\n", i, i+1)
			}
		}
		return b.String()
	}
	machine := func(bytes uint64, err error) func() (uint64, error) {
		return func() (uint64, error) { return bytes, err }
	}
	for name, test := range map[string]struct {
		text   string
		memory func() (uint64, error)
		want   string // of a warning; "": none
	}{
		"by need": {text(200, 20, ""), machine(1<<30, nil), ""},
		"65,537 buckets": {text(200, 20, "  buckets: 65537\n"), machine(1<<30, nil),
			"more than half of this machine's 1024 MiB"},
		"on a large machine": {text(200, 20, "  buckets: 65537\n"), machine(1<<36, nil), ""},
		"without a machine": {text(1, 1, ""), machine(0, errors.New("not today")),
			"is not known: not today"},
		"a crowd": {text(1, 600, ""), machine(1<<30, nil), "write maxBackends: 600"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fakeNode)
			file := filepath.Join(t.TempDir(), "node.yaml")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			e := w.env("check", "-f", file)
			e.memory = test.memory
			if code := run(t.Context(), e); code != 0 {
				t.Errorf("exit code %d", code)
			}
			got := w.stderr.String()
			if !strings.Contains(got, "no faults") || !strings.Contains(got, test.want) ||
				strings.Contains(got, "warning") != (test.want != "") {
				t.Errorf("it says %s\nwant a warning with %q", got, test.want)
			}
		})
	}
}
