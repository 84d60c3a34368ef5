package agent_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sextant/agent/api"
)

// guardText is nodeText with more backends than a chain has places.
func guardText() string {
	var backends strings.Builder
	for i := 1; i <= 12; i++ {
		fmt.Fprintf(&backends, "        - {name: web%d, sid: \"fcbb:bb00:1%02d::\", weight: 1}\n",
			i, i)
	}
	begin, end := strings.Index(nodeText, "        - {name: web1"),
		strings.Index(nodeText, "    - {name: dns")
	text := nodeText[:begin] + backends.String() + nodeText[end:]
	return strings.Replace(text, "      backends:\n", "      returnHold: 0s\n      backends:\n", 1)
}

const (
	backend5 = "        - {name: web5, sid: \"fcbb:bb00:105::\", weight: 1}\n"
	draining = "        - {name: web5, sid: \"fcbb:bb00:105::\", weight: 1, state: draining}\n"
	someEnd  = `about \d+ % of those of service web`
)

// What would end connections is refused with their share and the change that does it, and leaves
// all as it is; it is done if that is said. What ends none is done.
func TestSettingsThatEndConnections(t *testing.T) {
	m := newMachine(t)
	text := m.text(guardText(), "  source: fd", "  formerTime: 0s\n  source: fd")
	a := m.start(text)
	defer a.stop()
	for _, c := range []struct {
		name  string
		pairs []string
		ends  string // "": none
		why   string
	}{
		{"fewer buckets", []string{"  source: fd", "  buckets: 1021\n  source: fd"}, someEnd,
			"~ edge: buckets none -> 1021"},
		{"more buckets", []string{"  source: fd", "  buckets: 131071\n  source: fd"}, "", ""},
		{"secret", []string{"ddeeff", "ddeefe"}, someEnd,
			"~ node: secret (not shown) -> (another, not shown)"},
		{"policy", []string{"      port: 80\n", "      port: 80\n      policy: ecmp\n"}, someEnd,
			"policy offer -> ecmp"},
		{"exact", []string{"      port: 80\n", "      port: 80\n      table: exact\n"}, "", ""},
		{"ecmp with another table", []string{"      port: 80\n",
			"      port: 80\n      policy: ecmp\n      table: modulo\n"},
			someEnd, "~ service web: table rendezvous -> modulo"},
		{"VIP", []string{"vip: 2001:db8:80::80", "vip: 2001:db8:80::8f"},
			"all of those of service web", "~ service web: vip "},
		{"port", []string{"port: 80\n", "port: 81\n"}, "all of those of service web",
			"~ service web: port 80 -> 81"},
		{"a backend is gone", []string{backend5, ""}, someEnd, "- service web: backend web5 "},
		{"another SID", []string{"bb00:105", "bb00:115"}, someEnd,
			"~ service web: backend web5: sid "},
		{"down", []string{backend5, strings.Replace(draining, "draining", "down", 1)}, someEnd,
			"state up -> down"},
		{"weight 0", []string{backend5, strings.Replace(backend5, "weight: 1", "weight: 0", 1)}, "",
			""},
		{"draining", []string{backend5, draining}, "", ""},
		{"another backend", []string{backend5, backend5 +
			"        - {name: web20, sid: \"fcbb:bb00:120::\"}\n"}, "", ""},
		{"a SID of the host", []string{`sids: [{prefix: "fcbb:bb00:9::/48"`,
			`sids: [{prefix: "fcbb:bb00:a::/48"`},
			"those that need what is changed", "- sid fcbb:bb00:9::/48"},
		{"what the host's SID does", []string{"behavior: End.OFFER", "behavior: End.DT46"},
			"those that need what is changed", "behavior End.OFFER -> End.DT46"},
		{"another candidate", []string{"      port: 80\n", "      port: 80\n      candidates: 3\n"},
			"", ""},
		{"no edge", []string{text[strings.Index(text, "edge:\n"):strings.Index(text, "host:\n")],
			""},
			"all of those of service web", "- edge"},
	} {
		t.Run(c.name, func(t *testing.T) {
			was := m.state()
			next := []byte(m.text(text, c.pairs...))
			_, err := a.Apply(t.Context(), "node.yaml", next, false)
			if c.ends == "" {
				must(t, err)
			} else {
				refused(t, err, c.ends, c.why)
				same(t, "after a refusal", was, m.state())
				_, err = a.Apply(t.Context(), "node.yaml", next, true)
				refused(t, err, c.ends, c.why)
				_, err = a.BreakingConnections().Apply(t.Context(), "node.yaml", next, false)
				must(t, err)
			}
			_, err = a.BreakingConnections().Apply(t.Context(), "node.yaml", []byte(m.text(text)),
				false)
			must(t, err)
		})
	}
}

func refused(t *testing.T, err error, ends, why string) {
	t.Helper()
	var refusal *api.Error
	switch {
	case !errors.As(err, &refusal) || refusal.Code != api.Conflict:
		t.Fatalf("error %v, want a conflict", err)
	case !regexp.MustCompile("would end connections: .*" + ends).MatchString(refusal.Message),
		!strings.Contains(refusal.Message, why),
		!strings.Contains(refusal.Message, "--break-connections"):
		t.Errorf("%q; want %q, %q and what would do it", refusal.Message, ends, why)
	}
}

// A backend that was drained goes without a word; one that is put down or deleted by its name too,
// for that is the word.
func TestNamedEndsAreNotRefused(t *testing.T) {
	m := newMachine(t)
	a := m.start(guardText())
	defer a.stop()
	_, err := a.Apply(t.Context(), "node.yaml", []byte(m.text(guardText(), backend5, draining)),
		false)
	must(t, err)
	_, err = a.Apply(t.Context(), "node.yaml", []byte(m.text(guardText(), backend5, "")), false)
	must(t, err)
	_, err = a.DeleteBackend(t.Context(), "web", "web6")
	must(t, err)
	_, err = a.DeleteService(t.Context(), "web", api.Edge)
	must(t, err)
}

// Policy ecmp keeps no connections over a change of backends, so none is refused for them; another
// number of buckets is.
func TestPoliciesThatKeepNone(t *testing.T) {
	m := newMachine(t)
	ecmp := strings.Replace(guardText(), "      port: 80\n", "      port: 80\n      policy: ecmp\n",
		1)
	a := m.start(ecmp)
	defer a.stop()
	for _, backend := range []string{draining, ""} {
		_, err := a.Apply(t.Context(), "node.yaml", []byte(m.text(ecmp, backend5, backend)), false)
		must(t, err)
	}
	_, err := a.Apply(t.Context(), "node.yaml",
		[]byte(m.text(ecmp, backend5, "", "  source: fd", "  buckets: 1021\n  source: fd")), false)
	refused(t, err, someEnd, "~ edge: buckets none -> 1021")
}

// An agent that starts beside programs of another secret, or another number of buckets, leaves
// them as they are.
func TestStartThatEndsConnections(t *testing.T) {
	for _, pairs := range [][]string{
		{"  source: fd", "  buckets: 1021\n  source: fd"}, {"ddeeff", "ddeefe"},
		{"node:", "flowHash: siphash\nnode:"}, {backend5, ""},
	} {
		m := newMachine(t)
		text := guardText()
		a := m.start(text)
		a.stop()
		was := m.state()
		changed := strings.NewReplacer(pairs...).Replace(text)
		if err := m.fails(changed); !regexp.MustCompile("would end connections: "+
			someEnd).MatchString(err) ||
			!strings.Contains(err, "start the agent with --break-connections") {
			t.Errorf("the agent refuses: %s", err)
		}
		same(t, "after an agent that refused", was, m.state())
		m.start(text).stop()
		m.breaks = true
		m.start(changed).stop()
		m.breaks = false
		m.start(changed).stop()
	}
}
