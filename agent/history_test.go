package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sextant/agent"
	"sextant/agent/api"
)

const (
	weight1 = `{name: web1, sid: "fcbb:bb00:1::"}`
	weight3 = `{name: web1, sid: "fcbb:bb00:1::", weight: 3}`
)

func (m *machine) heavier() string {
	return m.text(strings.Replace(nodeText, weight1, weight3, 1))
}

// weight reads that of web1.
func (r *running) weight() int {
	r.t.Helper()
	backends, err := r.Backends(r.t.Context(), "web")
	must(r.t, err)
	for _, b := range backends {
		if b.Name == "web1" {
			return b.Weight
		}
	}
	r.t.Fatal("there is no web1")
	return 0
}

// warnsOfUndoing looks at what the status says first.
func (r *running) warnsOfUndoing() bool {
	r.t.Helper()
	s, err := r.Status(r.t.Context())
	must(r.t, err)
	return len(s.Warnings) > 0 && strings.HasPrefix(s.Warnings[0],
		"the configuration that runs is undone at ")
}

// What is applied on condition is undone when its time is over, and kept if it was confirmed.
func TestUnconfirmedConfigurationIsUndone(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	ctx := t.Context()
	_, err := a.ApplyUnconfirmed(ctx, "node.yaml", []byte(m.heavier()), time.Second)
	must(t, err)
	if w := a.weight(); w != 3 {
		t.Fatalf("the weight is %d after applying", w)
	}
	if !a.warnsOfUndoing() {
		t.Error("the status does not warn of what waits for a confirmation")
	}
	weight := 5
	if _, err := a.PutBackend(ctx, api.Update, "web", "web2",
		api.BackendSpec{Weight: &weight}); err == nil ||
		!strings.Contains(err.Error(), "unless it is confirmed") {
		t.Errorf("a change of what waits for a confirmation: %v", err)
	}
	for a.weight() != 1 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := a.Confirm(ctx); err == nil {
		t.Error("what is undone was confirmed")
	}
	_, err = a.ApplyUnconfirmed(ctx, "node.yaml", []byte(m.heavier()), time.Hour)
	must(t, err)
	must(t, a.Confirm(ctx))
	if a.warnsOfUndoing() {
		t.Error("the status warns of what was confirmed")
	}
	list, err := a.History(ctx)
	must(t, err)
	if last := list[len(list)-1]; a.weight() != 3 || last.ConfirmUntil != nil || !last.Current {
		t.Errorf("after the confirmation: weight %d, %+v", a.weight(), last)
	}
	_, err = a.ApplyUnconfirmed(ctx, "node.yaml", []byte(m.text(nodeText)), time.Hour)
	must(t, err)
	if _, err := a.Rollback(ctx, 0, false); err != nil || a.weight() != 3 {
		t.Errorf("undone at once: weight %d, error %v", a.weight(), err)
	}
}

// An agent that is killed leaves the undoing to the next one: at its start if the time is over,
// when it is over otherwise.
func TestUnconfirmedConfigurationIsUndoneAfterARestart(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	_, err := a.ApplyUnconfirmed(t.Context(), "node.yaml", []byte(m.heavier()), time.Hour)
	must(t, err)
	a.stop()
	a = m.start(nodeText)
	if w := a.weight(); w != 3 {
		t.Errorf("before the time is over the next agent has the weight %d", w)
	}
	a.stop()
	file := filepath.Join(m.dir, "state", "both1.json")
	text, err := os.ReadFile(file)
	must(t, err)
	var state map[string]any
	must(t, json.Unmarshal(text, &state))
	state["unconfirmed"].(map[string]any)["until"] = time.Now().Add(-time.Second)
	text, err = json.Marshal(state)
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
	a = m.start(nodeText)
	if w := a.weight(); w != 1 {
		t.Errorf("after the time is over the next agent has the weight %d", w)
	}
	if text, err = os.ReadFile(file); err != nil || bytes.Contains(text, []byte("unconfirmed")) {
		t.Errorf("the state still waits for a confirmation, or %v", err)
	}
	a.stop()
	a = m.start(nodeText)
	defer a.stop()
	if w := a.weight(); w != 1 {
		t.Errorf("the agent after that has the weight %d", w)
	}
}

// Each configuration that ran is in the history, with who asked for it; each can run again.
func TestHistoryOfConfigurations(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	ctx := t.Context()
	for _, text := range []string{m.heavier(), m.heavier(), m.text(nodeText)} {
		_, err := a.Apply(ctx, "node.yaml", []byte(text), false)
		must(t, err)
	}
	see := func(want ...string) {
		t.Helper()
		list, err := a.History(ctx)
		must(t, err)
		var got []string
		for _, one := range list {
			by, _, _ := strings.Cut(one.By, " (")
			got = append(got, strings.Join(append([]string{one.Action, by}, one.Changes...), "|"))
		}
		same(t, "the history", want, got)
	}
	start := "start|the agent"
	up, down := "apply|root|~ service web: backend web1: weight 1 -> 3",
		"apply|root|~ service web: backend web1: weight 3 -> 1"
	see(start, up, down)
	_, err := a.Rollback(ctx, 2, true)
	must(t, err)
	see(start, up, down)
	_, err = a.Rollback(ctx, 2, false)
	must(t, err)
	back := "rollback to 2|root|~ service web: backend web1: weight 1 -> 3"
	see(start, up, down, back)
	if a.weight() != 3 {
		t.Errorf("after going back the weight is %d", a.weight())
	}
	a.stop()
	a = m.start(nodeText)
	defer a.stop()
	see(start, up, down, back)
	text, err := a.PastConfig(ctx, 1)
	must(t, err)
	if !strings.Contains(string(text), "web1") || strings.Contains(string(text), "00112233") {
		t.Errorf("the first configuration is\n%s", text)
	}
	if _, err := a.PastConfig(ctx, 99); err == nil {
		t.Error("there is a configuration 99")
	}
}

// A dry run refuses what apply would: an interface that is not there.
func TestDryRunLooksForInterfaces(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	for role, text := range map[string]string{
		"edge":      strings.Replace(nodeText, "{name: edge0}", "{name: edge0}, {name: eth99}", 1),
		"telemetry": nodeText + "\ntelemetry: {node: 7, transit: [eth99]}\n",
	} {
		_, dry := a.apply(m.text(text), true)
		_, real := a.apply(m.text(text), false)
		if dry == nil || real == nil || !strings.Contains(dry.Error(),
			"interface eth99: no such interface") {
			t.Errorf("%s: the dry run says %v, apply %v", role, dry, real)
		}
	}
}

// A drain of the last backend that takes new connections is made, with a warning.
func TestDrainOfTheLastBackendWarns(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	draining := api.BackendSpec{}
	must(t, json.Unmarshal([]byte(`{"state": "draining"}`), &draining))
	for i, name := range []string{"web1", "web2", "web3"} {
		changes, err := a.PutBackend(t.Context(), api.Update, "web", name, draining)
		must(t, err)
		if warns := len(changes.Warnings) == 1; warns != (i == 2) {
			t.Errorf("draining %s warns %q", name, changes.Warnings)
		}
	}
}

// lines collects what a logger writes.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// The log has a line for each change, with keys for what it is about and who asked.
func TestChangesAreLoggedWithKeys(t *testing.T) {
	m := newMachine(t)
	log := &lines{}
	node := m.parse(nodeText)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- m.ns.Do(func() error {
			return agent.Run(ctx, agent.Options{Node: node, PinDirectory: m.pins, Version: "test",
				Log: slog.New(slog.NewJSONHandler(log, nil))})
		})
	}()
	client := api.NewClient(node.API.Socket)
	for {
		if _, err := client.Status(ctx); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	_, err := client.Apply(ctx, "node.yaml", []byte(m.heavier()), false)
	must(t, err)
	cancel()
	must(t, <-ended)
	want := map[string]string{"msg": "configuration changed", "service": "web", "backend": "web1",
		"field": "weight", "from": "1", "to": "3", "action": "apply", "operation": "modify"}
	for line := range strings.Lines(log.text.String()) {
		var entry map[string]any
		must(t, json.Unmarshal([]byte(line), &entry))
		if entry["msg"] != want["msg"] {
			continue
		}
		for key, value := range want {
			if entry[key] != value {
				t.Errorf("%s is %v, not %q", key, entry[key], value)
			}
		}
		if by, _ := entry["by"].(string); !strings.HasPrefix(by, "root (process ") {
			t.Errorf("by is %q", by)
		}
		return
	}
	t.Errorf("no change was logged:\n%s", log.text.String())
}
