package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sextant/agent/api"
	"sextant/agent/edge"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
)

// remember adds what runs now to the history.
func (a *Agent) remember(by, action string, changes []config.Change) {
	err := a.Store.Look(a.Node)
	if err == nil {
		err = a.Store.Remember(by, action, changes, time.Now())
	}
	if err != nil {
		a.Log.Warn("a configuration is missing in the history", "error", err)
	}
}

// History is what api.Historian says.
func (a *Agent) History(ctx context.Context) ([]api.Applied, error) {
	return role.Ask(ctx, &a.Loop, func() (list []api.Applied, err error) {
		for _, p := range a.Store.History.List {
			list = append(list, p.Applied)
		}
		if n := len(list); n > 0 {
			list[n-1].Current = true
			if u := a.Store.Kept.Unconfirmed; u != nil {
				list[n-1].ConfirmUntil = &u.Until
			}
		}
		return list, nil
	})
}

// PastConfig is what api.Historian says.
func (a *Agent) PastConfig(ctx context.Context, number int) (*config.Node, error) {
	return role.Ask(ctx, &a.Loop, func() (*config.Node, error) { return a.past(number) })
}

// past reads a configuration of the history, without the secrets that have files of their own.
func (a *Agent) past(number int) (*config.Node, error) {
	text, err := a.Store.History.Text(number)
	if err != nil {
		return nil, err
	}
	return a.Store.Parse(fmt.Sprintf("configuration %d", number), text)
}

// Rollback is what api.Historian says.
func (a *Agent) Rollback(ctx context.Context, number int, dryRun bool) (changes []config.Change,
	err error) {
	doErr := a.Do(ctx, func() { changes, err = a.rollback(ctx, number, dryRun) })
	return changes, edge.Counted(ctx, errors.Join(doErr, err))
}

func (a *Agent) rollback(ctx context.Context, number int, dryRun bool) ([]config.Change, error) {
	if err := a.isMeant(api.OnlyChanges(ctx)); err != nil {
		return nil, err
	}
	if a.Store.Kept.Unconfirmed != nil {
		if number != 0 || dryRun {
			return nil, errUnconfirmed(a.Store.Kept.Unconfirmed)
		}
		return a.undo(api.CallerOf(ctx))
	}
	if number == 0 {
		var err error
		if number, err = a.Store.History.Before(); err != nil {
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
		by: api.CallerOf(ctx), action: fmt.Sprintf("rollback to %d", number), trace: ctx})
}

// errUnconfirmed refuses a change of what waits for a confirmation.
func errUnconfirmed(u *state.Unconfirmed) error {
	return &api.Error{Code: api.Conflict, Message: "the configuration that runs is " +
		undoneUnless(u)}
}

// undoneUnless says when what waits for a confirmation is undone, and what can be done before.
func undoneUnless(u *state.Unconfirmed) string {
	return fmt.Sprintf("undone at %s unless it is confirmed; first keep it (sextant config "+
		"confirm), or undo it (sextant config rollback)", u.Until.UTC().Format(time.RFC3339))
}

// Confirm is what api.Historian says.
func (a *Agent) Confirm(ctx context.Context) error {
	_, err := role.Ask(ctx, &a.Loop, func() (none struct{}, err error) {
		if err := a.isMeant(api.OnlyChanges(ctx)); err != nil {
			return none, err
		}
		u := a.Store.Kept.Unconfirmed
		if u == nil {
			return none, &api.Error{Code: api.Conflict,
				Message: "nothing waits for a confirmation"}
		}
		a.Store.Kept.Unconfirmed = nil
		if err := a.Store.Write(); err != nil {
			a.Store.Kept.Unconfirmed = u
			return none, err
		}
		a.Log.Info("configuration confirmed", "by", api.CallerOf(ctx))
		return none, nil
	})
	return err
}

// changeUnconfirmed is change of a configuration that is undone unless it is confirmed in time.
// What ran before is on the disk before anything changes, so that the next agent can undo it, too.
func (a *Agent) changeUnconfirmed(next *config.Node, on terms) ([]config.Change, error) {
	if err := a.Store.Look(a.Node); err != nil {
		return nil, err
	}
	u := &state.Unconfirmed{Until: time.Now().Add(on.confirm), Within: on.confirm,
		Text: state.Text{Node: a.Store.Text}}
	a.Store.Kept.Unconfirmed = u
	changes, err := a.change(next, on)
	if err != nil || len(changes) == 0 {
		a.Store.Kept.Unconfirmed = nil
		return changes, err
	}
	a.awaitConfirmation()
	return changes, nil
}

// undoRetry is how long after a failure a configuration without confirmation is undone again.
const undoRetry = 5 * time.Second

// awaitConfirmation undoes what runs when the time for its confirmation is over.
func (a *Agent) awaitConfirmation() {
	u := a.Store.Kept.Unconfirmed
	if u == nil {
		return
	}
	wait := time.AfterFunc(time.Until(u.Until), func() {
		// else the agent ends, and the next one undoes it
		_ = a.Do(a.Life, func() { a.undoLate(u) })
	})
	context.AfterFunc(a.Life, func() { wait.Stop() })
}

// undoLate undoes what runs if it still waits for that confirmation.
func (a *Agent) undoLate(u *state.Unconfirmed) {
	if a.Store.Kept.Unconfirmed != u {
		return
	}
	if _, err := a.undo("nobody: no confirmation came in time"); err != nil {
		a.Log.Error("what was not confirmed could not be undone; trying again", "error",
			err, "after", undoRetry)
		time.AfterFunc(undoRetry, func() { _ = a.Do(a.Life, func() { a.undoLate(u) }) })
	}
}

// undo brings back what ran before the configuration that waits for a confirmation.
func (a *Agent) undo(by string) ([]config.Change, error) {
	u := a.Store.Kept.Unconfirmed
	node, err := a.Store.Parse("the previous configuration", u.Node)
	if err == nil {
		err = api.ReadSecrets(node)
	}
	if err != nil {
		return nil, err
	}
	a.Store.Kept.Unconfirmed = nil
	changes, err := a.change(node, terms{breaks: true, by: by, action: "rollback"})
	if err != nil {
		a.Store.Kept.Unconfirmed = u
	}
	return changes, err
}

// logChanges writes a line for each change, with keys for what it is about, or one for many.
func (a *Agent) logChanges(changes []config.Change, on terms) {
	attributes := func(c config.Change) []any {
		list := []any{"action", on.action, "by", on.by, "operation", string(c.Operation)}
		for part := range strings.SplitSeq(c.Object, ": ") {
			if kind, name, named := strings.Cut(part, " "); named {
				list = append(list, kind, name)
			}
		}
		for _, pair := range [][2]string{{"field", c.Field}, {"from", c.From}, {"to", c.To}} {
			if pair[1] != "" {
				list = append(list, pair[0], pair[1])
			}
		}
		return list
	}
	object := func(c config.Change) string { return c.Object }
	role.LogSeveral(a.Log, "configuration changed", changes, attributes, object, func() []any {
		counts := map[config.Operation]int{}
		objects := map[string]bool{}
		for _, c := range changes {
			counts[c.Operation]++
			of, _, _ := strings.Cut(c.Object, ": ")
			objects[of] = true
		}
		return []any{"action", on.action, "by", on.by, "added", counts[config.Add], "modified",
			counts[config.Modify], "removed", counts[config.Remove], "objects", len(objects)}
	})
	for _, c := range changes {
		if e, ok := stateEvent(c, on.by); ok {
			a.Tell(e)
		}
	}
}

// stateEvent is what those who follow events learn of a backend whose state was set.
func stateEvent(c config.Change, by string) (api.Event, bool) {
	service, backend, ok := strings.Cut(strings.TrimPrefix(c.Object, "service "), ": backend ")
	return api.Event{Service: service, Backend: backend, Status: c.To, Reason: "set by " + by},
		ok && c.Field == "state"
}
