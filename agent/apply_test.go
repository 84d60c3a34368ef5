package agent_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"sextant/agent/api"
)

var passAll = asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()} // XDP_PASS

const reloaded = "sextant_config_last_reload_successful"

// A dry run and a second apply of the same file leave every program, link, map and entry as it is.
func TestApplyTwice(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	was := m.state()
	changed := m.text(nodeText, "{name: edge0}", "{name: edge0, side: external}",
		"infrastructure: [", `mtu: 9000, infrastructure: ["fd00:5f::/48", `,
		"workers: 32", "workers: 1, initial: 0", "name: dns1", "name: dns2", "port: 80\n",
		"port: 81\n")
	would, err := a.apply(changed, true)
	must(t, err)
	same(t, "after a dry run", was, m.state())
	did, err := a.apply(changed, false)
	must(t, err)
	if len(did) != 7 || !slices.Equal(would, did) {
		t.Errorf("the dry run said\n%v\nthe change was\n%v", would, did)
	}
	was = m.state()
	if again, err := a.apply(changed, false); err != nil || len(again) > 0 {
		t.Errorf("the second time changed %v, error %v", again, err)
	}
	same(t, "after the second time", was, m.state())
}

// When one role refuses after the other has been switched, both are what they were, and the metric
// says it.
func TestRollBack(t *testing.T) {
	for _, c := range []struct {
		name     string
		newLinks bool // an old one was gone before the fault was met
		pairs    []string
	}{
		{"new programs", false, []string{"source: fd00:5e::e1", "source: fd00:5e::e2"}},
		{"new services", false, []string{"name: dns, vip: 192.0.2.53", "name: dns, vip: 192.0.2.54",
			"name: web3", "name: web4", `bb00:3::"`, `bb00:5::"`}},
		{"another interface", true, []string{"{name: edge0}", "{name: edge0-peer}"}},
		{"no edge", true, []string{nodeText[strings.Index(nodeText,
			"edge:\n"):strings.Index(nodeText, "host:\n")], ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			a := m.start(nodeText)
			defer a.stop()
			was, chains, before := m.state(), m.chains(), m.numbers(a)
			_, err := a.apply(m.text(nodeText, append(c.pairs, "CGROUP", "/sys/fs/cgroup/none")...),
				false)
			if err == nil || !strings.Contains(err.Error(), "name a directory of a cgroup2 file "+
				"system") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v", err)
			}
			if got := a.metric(reloaded); got != "0" {
				t.Errorf("%s is %q after a failure", reloaded, got)
			}
			is := m.state()
			if c.newLinks {
				was, is = withoutLinks(was), withoutLinks(is)
			}
			same(t, "after the failure", was, is)
			if !slices.Equal(chains, m.chains()) || !slices.Equal(before, m.numbers(a)) {
				t.Error("chains or counters are not what they were")
			}
			did, err := a.apply(m.text(nodeText, c.pairs...), false)
			if err != nil || len(did) == 0 {
				t.Errorf("the same without the fault changed %v, error %v", did, err)
			}
			if got := a.metric(reloaded); got != "1" {
				t.Errorf("%s is %q after a success", reloaded, got)
			}
		})
	}
}

// withoutLinks leaves the numbers of links out of a state.
func withoutLinks(state []string) []string {
	list := slices.Clone(state)
	for i, line := range list {
		if name, rest, ok := strings.Cut(line, ": link "); ok {
			_, program, _ := strings.Cut(rest, ", ")
			list[i] = name + ": " + program
		}
	}
	return list
}

// What only a restart can change is refused with the mend, as a conflict.
func TestUnchangeable(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	for _, c := range []struct {
		pairs []string
		want  string
	}{
		{[]string{"both1", "both2"},
			"node can't change from both1 to both2 while the agent runs; apply the file of node " +
				"both1, or start another agent for node both2"},
		{[]string{"DIR/state", "/other"},
			"state can't change from DIR/state to /other while the agent runs; " +
				"restart the agent with this file (packets are forwarded on meanwhile), or write " +
				"DIR/state"},
		{[]string{"DIR/agent", "/other"},
			"api.socket can't change from DIR/agent.sock to /other.sock while the agent runs; " +
				"restart the agent with this file (packets are forwarded on meanwhile), or write " +
				"DIR/agent.sock"},
		{[]string{"sock}", `sock, metrics: "[::1]:1"}`},
			"api.metrics can't change from none to [::1]:1 while the agent runs; " +
				"restart the agent with this file (packets are forwarded on meanwhile), or write " +
				"none"},
	} {
		_, err := a.apply(m.text(nodeText, c.pairs...), false)
		var refusal *api.Error
		if !errors.As(err, &refusal) || refusal.Code != api.Conflict ||
			refusal.Message != m.text(c.want) {
			t.Errorf("error %v, want a conflict: %s", err, m.text(c.want))
		}
		if got := a.metric(reloaded); got != "0" {
			t.Errorf("%s is %q after a refusal", reloaded, got)
		}
		_, err = a.apply(m.text(nodeText), false)
		must(t, err)
		if got := a.metric(reloaded); got != "1" {
			t.Errorf("%s is %q after a success", reloaded, got)
		}
	}
	if _, err := a.apply("node: both1\n", false); err == nil || a.metric(reloaded) != "0" {
		t.Errorf("a file with faults: error %v, %s %q", err, reloaded, a.metric(reloaded))
	}
}
