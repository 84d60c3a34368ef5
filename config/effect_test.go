package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sextant/config"
)

// The page has the lines of the table, in their order.
func TestConsequencesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/howto/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[config.Effect]string{
		config.Keeps: "none end", config.Moves: "those end that chains lead elsewhere",
		config.Ends: "those end that need it",
	}
	var want strings.Builder
	for _, line := range config.Consequences {
		key := "(removed)"
		if line.Field != "" {
			key = "`" + line.Field + "`"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", line.Object, key, words[line.Effect],
			line.Text)
	}
	if !strings.Contains(string(page), "| --- | --- | --- | --- |\n"+want.String()+"\n") {
		t.Errorf("docs/howto/changes.md has not this table:\n%s", want.String())
	}
}

func TestConsequences(t *testing.T) {
	for _, c := range []struct {
		object, field string
		want          config.Effect
	}{
		{"edge", "buckets", config.Moves}, {"service web", "maxBackends", config.Moves},
		{"edge", "source", config.Keeps}, {"edge", "", config.Moves},
		{"edge hmac", "", config.Keeps}, {"edge: peer [::1]:9", "", config.Keeps},
		{"edge interface eth0", "", config.Ends}, {"edge interface eth0", "side", config.Keeps},
		{"node", "secret", config.Moves}, {"node", "name", config.Keeps},
		{"service web", "table", config.Moves}, {"service web", "check", config.Keeps},
		{"service web", "", config.Moves},
		{"service web: backend w1", "sid", config.Moves},
		{"service web: backend w1", "state", config.Moves},
		{"service web: backend w1", "agent", config.Keeps},
		{"service web: backend w1", "", config.Moves},
		{"service web: learned fcbb:bb00:1::", "state", config.Moves},
		{"sid fcbb:bb00:9::/48", "", config.Ends},
		{"sid fcbb:bb00:9::/48", "behavior", config.Ends},
		{"host", "", config.Ends}, {"host", "cgroup", config.Keeps},
		{"host service web", "", config.Keeps},
		{"domain", "block", config.Ends}, {"domain", "mtu", config.Keeps},
		{"domain: locator fd00::/16", "", config.Keeps},
		{"domain: infrastructure fd00::/16", "", config.Ends},
		{"bgp neighbor 10.0.0.1", "", config.Moves},
		{"policy gold: path a", "preference", config.Keeps},
	} {
		line := config.ConsequenceOf(config.Change{Object: c.object, Field: c.field})
		if line.Effect != c.want {
			t.Errorf("%s, %q: %+v, want %d", c.object, c.field, line, c.want)
		}
	}
}
