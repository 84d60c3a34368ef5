package config_test

import (
	"fmt"
	"strings"
	"testing"

	"sextant/config"
)

// A mapping with very many keys is refused before the parser takes minutes for it; lists of as many
// items as a file has room for are not.
func TestManyKeys(t *testing.T) {
	many := func(item string, n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, item, i)
		}
		return text.String()
	}
	const refused = "a mapping has more than 1000 keys"
	for name, text := range map[string]string{
		"block":         "node: x\n" + many("k%d: 1\n", 100_000),
		"indented":      "node: x\nedge:\n" + many("  k%d: 1\n", 100_000),
		"in an item":    "edge:\n  services:\n    - name: x\n" + many("      k%d: 1\n", 100_000),
		"flow":          "{node: x, " + many("k%d: 1, ", 100_000) + "z: 1}",
		"flow in lists": "a: [[{" + many("k%d: 1, ", 100_000) + "z: 1}]]",
	} {
		if _, err := config.Parse("x.yaml", []byte(text)); err == nil ||
			!strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	for name, text := range map[string]string{
		"items":         "edgee:\n  services:\n" + many("    - name: s%d\n      port: 1\n", 5000),
		"flow items":    "edgee:\n  services:\n" + many("    - {name: s%d, port: 1}\n", 5000),
		"not indented":  "edgee:\n  services:\n" + many("  - name: s%d\n    port: 1\n", 5000),
		"list in flow":  "edgee: {services: [" + many("{name: s%d}, ", 5000) + "{}]}\n",
		"lists of maps": "edgee:\n" + many("- a:\n  - b: %d\n", 5000),
	} {
		if _, err := config.Parse("x.yaml", []byte(text)); err == nil ||
			strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
