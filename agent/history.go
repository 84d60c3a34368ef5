package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// Bounds of the history: entries, octets of their files in all, and changes that each lists.
const (
	maxHistory      = 50
	maxHistoryBytes = 64 << 20
	maxListed       = 20
)

// history keeps the configurations that ran in a folder beside the node's state, a file each.
type history struct {
	dir  string
	list []pastConfig // the latest last
}

// pastConfig is what a file of the history has. Its Node is read when it is wanted.
type pastConfig struct {
	api.Applied
	Node string `json:"node,omitempty"` // YAML
	size int    // of the file
}

func (p pastConfig) file(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%06d.json", p.Number))
}

// openHistory reads what is there. Files that can't be read are left alone.
func openHistory(dir string) *history {
	h := &history{dir: dir}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		var p pastConfig
		if err != nil || json.Unmarshal(text, &p) != nil || p.Node == "" ||
			p.file(dir) != name {
			continue
		}
		p.Node, p.size = "", len(text)
		h.list = append(h.list, p)
	}
	slices.SortFunc(h.list, func(a, b pastConfig) int { return cmp.Compare(a.Number, b.Number) })
	return h
}

// add writes down a configuration that runs now, unless it is the latest one anyway, and forgets
// the oldest ones.
func (h *history) add(by, action, node string, changes []config.Change, now time.Time) error {
	if latest, err := h.text(0); err == nil && latest == node {
		return nil
	}
	p := pastConfig{Node: node, Applied: api.Applied{Number: 1, Time: now.UTC(), By: by,
		Action: action, ChangeCount: len(changes), Changes: []string{}}}
	for _, c := range changes[:min(len(changes), maxListed)] {
		p.Changes = append(p.Changes, c.String())
	}
	if n := len(h.list); n > 0 {
		p.Number = h.list[n-1].Number + 1
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		err = os.MkdirAll(h.dir, 0o700)
	}
	if err == nil {
		err = writeFile(p.file(h.dir), text)
	}
	if err != nil {
		return fmt.Errorf("keep the history of configurations: %w", err)
	}
	p.Node, p.size = "", len(text)
	h.list = append(h.list, p)
	h.prune()
	return nil
}

// prune forgets the oldest configurations beyond the bounds, but never the latest two.
func (h *history) prune() {
	bytes := 0
	for _, p := range h.list {
		bytes += p.size
	}
	for len(h.list) > 2 && (len(h.list) > maxHistory || bytes > maxHistoryBytes) {
		_ = os.Remove(h.list[0].file(h.dir)) // what stays is pruned again after the next start
		bytes -= h.list[0].size
		h.list = h.list[1:]
	}
}

// text is the configuration of a number, in YAML; 0: the latest.
func (h *history) text(number int) (string, error) {
	i := len(h.list) - 1
	if number != 0 {
		i = slices.IndexFunc(h.list, func(p pastConfig) bool { return p.Number == number })
	}
	if i < 0 {
		return "", &api.Error{Code: api.NotFound, Message: fmt.Sprintf(
			"the history has no configuration %d; sextant config history lists them", number)}
	}
	name := h.list[i].file(h.dir)
	text, err := os.ReadFile(name)
	var p pastConfig
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return "", fmt.Errorf("read configuration %d of the history: %w", number, err)
	}
	return p.Node, nil
}

// before is the number of the configuration that ran before the latest.
func (h *history) before() (int, error) {
	if len(h.list) < 2 {
		return 0, &api.Error{Code: api.NotFound,
			Message: "there is no earlier configuration; sextant config history lists all"}
	}
	return h.list[len(h.list)-2].Number, nil
}

// remember adds what runs now to the history.
func (a *Agent) remember(by, action string, changes []config.Change) {
	err := a.store.look(a.node)
	if err == nil {
		err = a.store.history.add(by, action, a.store.text, changes, time.Now())
	}
	if err != nil {
		a.options.Log.Warn("a configuration is missing in the history", "error", err)
	}
}

// History is what api.Historian says.
func (a *Agent) History(ctx context.Context) ([]api.Applied, error) {
	return ask(ctx, &a.loop, func() (list []api.Applied, err error) {
		for _, p := range a.store.history.list {
			list = append(list, p.Applied)
		}
		if n := len(list); n > 0 {
			list[n-1].Current = true
			if u := a.store.kept.Unconfirmed; u != nil {
				list[n-1].ConfirmUntil = &u.Until
			}
		}
		return list, nil
	})
}

// PastConfig is what api.Historian says.
func (a *Agent) PastConfig(ctx context.Context, number int) (*config.Node, error) {
	return ask(ctx, &a.loop, func() (*config.Node, error) { return a.past(number) })
}

// past reads a configuration of the history, without the secrets that have files of their own.
func (a *Agent) past(number int) (*config.Node, error) {
	text, err := a.store.history.text(number)
	if err != nil {
		return nil, err
	}
	return config.ParseOwn(fmt.Sprintf("configuration %d", number), []byte(text))
}

// Rollback is what api.Historian says.
func (a *Agent) Rollback(ctx context.Context, number int, dryRun bool) (changes []config.Change,
	err error) {
	doErr := a.do(ctx, func() { changes, err = a.rollback(ctx, number, dryRun) })
	return changes, counted(ctx, errors.Join(doErr, err))
}

func (a *Agent) rollback(ctx context.Context, number int, dryRun bool) ([]config.Change, error) {
	if a.store.kept.Unconfirmed != nil {
		if number != 0 || dryRun {
			return nil, errUnconfirmed(a.store.kept.Unconfirmed)
		}
		return a.undo(api.CallerOf(ctx))
	}
	if number == 0 {
		var err error
		if number, err = a.store.history.before(); err != nil {
			return nil, err
		}
	}
	node, err := a.past(number)
	if err == nil {
		err = api.ReadSecrets(node)
	}
	if err != nil {
		return nil, err
	}
	return a.change(node, terms{dryRun: dryRun, breaks: api.MayBreakConnections(ctx),
		by: api.CallerOf(ctx), action: fmt.Sprintf("rollback to %d", number)})
}

// unconfirmed is a configuration that is undone unless it is confirmed.
type unconfirmed struct {
	Until time.Time `json:"until"`
	Node  string    `json:"node"` // that ran before, in YAML
}

func errUnconfirmed(u *unconfirmed) error {
	return &api.Error{Code: api.Conflict, Message: fmt.Sprintf("the configuration that runs is "+
		"undone at %s unless it is confirmed; first keep it (sextant config confirm), or undo it "+
		"(sextant config rollback)", u.Until.UTC().Format(time.RFC3339))}
}

// Confirm is what api.Historian says.
func (a *Agent) Confirm(ctx context.Context) error {
	_, err := ask(ctx, &a.loop, func() (none struct{}, err error) {
		u := a.store.kept.Unconfirmed
		if u == nil {
			return none, &api.Error{Code: api.Conflict,
				Message: "nothing waits for a confirmation"}
		}
		a.store.kept.Unconfirmed = nil
		if err := a.store.write(); err != nil {
			a.store.kept.Unconfirmed = u
			return none, err
		}
		a.options.Log.Info("configuration confirmed", "by", api.CallerOf(ctx))
		return none, nil
	})
	return err
}

// changeUnconfirmed is change of a configuration that is undone unless it is confirmed in time.
// What ran before is on the disk before anything changes, so that the next agent can undo it, too.
func (a *Agent) changeUnconfirmed(next *config.Node, on terms) ([]config.Change, error) {
	if err := a.store.look(a.node); err != nil {
		return nil, err
	}
	u := &unconfirmed{Until: time.Now().Add(on.confirm), Node: a.store.text}
	a.store.kept.Unconfirmed = u
	changes, err := a.change(next, on)
	if err != nil || len(changes) == 0 {
		a.store.kept.Unconfirmed = nil
		return changes, err
	}
	a.awaitConfirmation()
	return changes, nil
}

// undoRetry is how long after a failure a configuration without confirmation is undone again.
const undoRetry = 5 * time.Second

// awaitConfirmation undoes what runs when the time for its confirmation is over.
func (a *Agent) awaitConfirmation() {
	u := a.store.kept.Unconfirmed
	if u == nil {
		return
	}
	wait := time.AfterFunc(time.Until(u.Until), func() {
		// else the agent ends, and the next one undoes it
		_ = a.do(a.life, func() { a.undoLate(u) })
	})
	context.AfterFunc(a.life, func() { wait.Stop() })
}

// undoLate undoes what runs if it still waits for that confirmation.
func (a *Agent) undoLate(u *unconfirmed) {
	if a.store.kept.Unconfirmed != u {
		return
	}
	if _, err := a.undo("nobody: no confirmation came in time"); err != nil {
		a.options.Log.Error("what was not confirmed could not be undone; trying again", "error",
			err, "after", undoRetry)
		time.AfterFunc(undoRetry, func() { _ = a.do(a.life, func() { a.undoLate(u) }) })
	}
}

// undo brings back what ran before the configuration that waits for a confirmation.
func (a *Agent) undo(by string) ([]config.Change, error) {
	u := a.store.kept.Unconfirmed
	node, err := config.ParseOwn("the previous configuration", []byte(u.Node))
	if err == nil {
		err = api.ReadSecrets(node)
	}
	if err != nil {
		return nil, err
	}
	a.store.kept.Unconfirmed = nil
	changes, err := a.change(node, terms{breaks: true, by: by, action: "rollback"})
	if err != nil {
		a.store.kept.Unconfirmed = u
	}
	return changes, err
}

// logChanges writes a line for each change, with keys for what it is about.
func (a *Agent) logChanges(changes []config.Change, on terms) {
	for _, c := range changes {
		attributes := []any{"action", on.action, "by", on.by, "operation", string(c.Operation)}
		for part := range strings.SplitSeq(c.Object, ": ") {
			if kind, name, named := strings.Cut(part, " "); named {
				attributes = append(attributes, kind, name)
			}
		}
		for _, pair := range [][2]string{{"field", c.Field}, {"from", c.From}, {"to", c.To}} {
			if pair[1] != "" {
				attributes = append(attributes, pair[0], pair[1])
			}
		}
		a.options.Log.Info("configuration changed", attributes...)
	}
}
