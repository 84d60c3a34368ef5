package config_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sextant/config"
)

// fileOf is a node file whose services stand in lines of their own.
func fileOf(services int, r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("# a comment that isn't an item\nnode: wide1\n" +
		"domain: {block: \"fcbb:bb00::/32\", infrastructure: [\"fd00:5e::/48\"]}\n" +
		"secret: 00112233445566778899aabbccddeeff\n\nedge:\n  source: fd00:5e::e1\n" +
		"  interfaces: [{name: edge0}]\n  services:\n")
	for s := range services {
		fmt.Fprintf(&b, "    - name: s%d\n      vip: 2001:db8:80::80\n      port: %d\n", s, 1+s)
		if r.IntN(4) == 0 {
			b.WriteString("      check: {kind: tcp}\n")
		}
		b.WriteString("      backends:\n")
		for i := range 1 + r.IntN(2) {
			fmt.Fprintf(&b, "        - {name: b%d, sid: \"fcbb:bb00:%x::\"}\n", i, 1+i+s)
		}
	}
	if r.IntN(2) == 0 {
		b.WriteString("  hopLimit: 40\n")
	}
	b.WriteString("state: /var/lib/sextant\n")
	return b.String()
}

// disturbances are lines that end a list, begin another one, are not YAML, or mean something else
// where they stand.
var disturbances = []string{
	"", "# - name: x", "    - name: more", "    - {name: more, vip: 2001:db8::9, port: 9}",
	"   - name: less", "  services:", "edge:", "edge: {}", "  hopLimit: 7", "---", "...", "\t",
	"- x",
	"      table: exact", "        table: exact", "      table: >", "      name: &a x", "    - *a",
	"      name: \"s", "      name: 's", "    - name: \"s", "\"", "'", "  ]", "    [",
	"    {", "}",
	"      port: 0x10", "      name: s1", "      vip: 2001:db8:80::80", "host:", "unknown: 1",
	"      -", "    -", "    - ", "      check: !t {kind: tcp}", "      check: {kind: tcp,",
	"        interval: 5s}",
	"      port: 1 # it's", "    ? a", "    : b", "      quic: {configs: []}", " x", "x",
}

func disturb(r *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	for range r.IntN(3) {
		at := r.IntN(len(lines))
		switch line := disturbances[r.IntN(len(disturbances))]; r.IntN(4) {
		case 0:
			lines = slices.Delete(lines, at, at+1)
		case 1:
			lines[at] = line
		case 2:
			lines[at] = strings.Replace(lines[at], " ", "", 1)
		default:
			lines = slices.Insert(lines, at, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestParseInParts: a file that is read in parts, some of which were read before, means what it
// means when it is read whole, and has the same faults.
func TestParseInParts(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 2))
	inParts, sound := 0, 0
	text := fileOf(70, r)
	for round := range 300 {
		if round%20 == 0 {
			text = fileOf(70, r)
		}
		disturbed := disturb(r, text)
		if config.InParts([]byte(disturbed)) {
			inParts++
		}
		want, wantErr := config.ParseWhole("node.yaml", []byte(disturbed))
		got, err := config.Parse("node.yaml", []byte(disturbed))
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("round %d: error %v, want %v, of\n%s", round, err, wantErr, disturbed)
		}
		if err != nil {
			continue
		}
		sound++
		if text, wanted := textOfNode(t, got), textOfNode(t, want); text != wanted {
			t.Fatalf("round %d:\n%s\nread as\n%s\nwant\n%s", round, disturbed, text, wanted)
		}
	}
	if inParts < 100 || sound < 100 {
		t.Errorf("%d of 300 files were read in parts, and %d are sound; want 100 of each", inParts,
			sound)
	}
}

func textOfNode(t *testing.T, n *config.Node) string {
	t.Helper()
	text, err := config.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPartsAreShared: a file that differs from the one before in a service shares the others with
// it, so that a change costs what it changes.
func TestPartsAreShared(t *testing.T) {
	text := fileOf(70, rand.New(rand.NewPCG(20, 3)))
	before, err := config.Parse("node.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	after, err := config.Parse("node.yaml", []byte(strings.Replace(text, "name: s7\n",
		"name: s7\n      table: exact\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if !config.SharesAllButServices(before, after) {
		t.Error("the nodes share not even what is no service")
	}
	for i := range after.Edge.Services {
		shared := config.SharesService(&before.Edge.Services[i], &after.Edge.Services[i])
		if name := after.Edge.Services[i].Name; shared != (name != "s7") {
			t.Errorf("service %s is shared: %v", name, shared)
		}
	}
	if changes := config.Diff(before, after); len(changes) != 1 {
		t.Errorf("changes %v, want one", changes)
	}
}

// TestMarshalledServicesAreReadInParts: what is kept on the disk is.
func TestMarshalledServicesAreReadInParts(t *testing.T) {
	n, err := config.Parse("node.yaml", []byte(fileOf(70, rand.New(rand.NewPCG(20, 4)))))
	if err != nil {
		t.Fatal(err)
	}
	if text := textOfNode(t, n); !config.InParts([]byte(text)) {
		t.Errorf("it is read whole:\n%s", text[:min(len(text), 3000)])
	}
}
