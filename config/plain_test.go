package config_test

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sextant/config"
)

// plainItems are services as people and programs write them.
var plainItems = []string{
	"    - name: s0\n      vip: 2001:db8:80::80\n      port: 1\n      backends:\n" +
		"        - {name: b0, sid: \"fcbb:bb00:1::\"}\n",
	"- name: web\n  vip: 192.0.2.80\n  protocol: udp\n  port: any\n  policy: offer\n" +
		"  table: rendezvous\n  candidates: 2\n  depth: 6\n  drainTime: 1h0m0s\n" +
		"  slowStart: 0s\n  maxBackends: 10\n  newConnections: {rate: 100, burst: 10}\n" +
		"  path: [\"fcbb:bb00:9::\", \"fcbb:bb00:a::\"]\n" +
		"  check:\n    kind: http\n    path: /healthz\n    interval: 60s\n    timeout: 2s\n" +
		"  backends:\n  - name: b0\n    sid: \"fcbb:bb00:1::\"\n    weight: 10\n" +
		"    state: draining\n    agent: \"[fd00:5e::1]:9477\"\n\n" +
		"  - {name: b1, sid: \"fcbb:bb00:2::\", weight: 0, site: a, path: []}\n",
	"  - name: x.y-z_1\n    vip: \"2001:db8::1\"\n    port: 65535\n    way: {slo: 5ms}\n" +
		"    order: [path, load]\n    quic:\n      - {rotation: 1, key: k}\n",
	"- backends: []\n  port: \"80\"\n  name: null\n  vip: 2001:db8::8:\n",
}

// comparePlain sees that what is read without the library means what it means to the library. It
// is false if the library is to read it.
func comparePlain(t *testing.T, lines string) bool {
	var got config.Service
	values, ok := config.ReadPlain([]byte(lines), &got)
	if !ok || !config.IsItem([]byte(lines)) {
		return false
	}
	want, counted, sound := config.ReadByLibrary([]byte(lines))
	if !sound {
		t.Fatalf("the library refuses\n%s", lines)
	}
	diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}))
	if diff != "" || values != counted {
		t.Fatalf("%d values, want %d; difference %s of\n%s", values, counted, diff, lines)
	}
	return true
}

// TestPlainLines: lines that are read without the library mean the same to it, whatever becomes of
// a few of their octets.
func TestPlainLines(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 9))
	for i, plain := range []bool{true, false, false, false} {
		if comparePlain(t, plainItems[i]) != plain {
			t.Errorf("the library is needed: %v, of\n%s", plain, plainItems[i])
		}
	}
	const octets = "\n\n  --::,,{}[]\"\"'#0189.adefnosx/_~=+<()$;"
	plain := 0
	for range 200_000 {
		text := []byte(plainItems[r.IntN(len(plainItems)-1)])
		for range r.IntN(4) {
			at, octet := r.IntN(len(text)), octets[r.IntN(len(octets))]
			switch r.IntN(4) {
			case 0:
				text[at] = octet
			case 1:
				text = append(text[:at], text[at+1:]...)
			case 2:
				text = append(text[:at], append([]byte{octet}, text[at:]...)...)
			default: // a line once more, or none
				lines := strings.SplitAfter(string(text), "\n")
				line := r.IntN(len(lines))
				lines[line] = strings.Repeat(lines[line], r.IntN(3))
				text = []byte(strings.Join(lines, ""))
			}
			if len(text) == 0 {
				break
			}
		}
		if comparePlain(t, string(text)) {
			plain++
		}
	}
	if plain < 20_000 {
		t.Errorf("%d of 200,000 texts are plain, want 20,000", plain)
	}
}

func FuzzPlainLines(f *testing.F) {
	for _, item := range plainItems {
		f.Add(item)
	}
	f.Fuzz(func(t *testing.T, lines string) { comparePlain(t, lines) })
}
