package main

import (
	"context"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// History has a configuration for each change.
func (f *fakeAgent) History(context.Context) (list []api.Applied, err error) {
	for i := range len(f.past) + 1 {
		list = append(list, api.Applied{Number: i + 1,
			Time: time.Date(2026, 11, 5, 12, i, 0, 0, time.UTC), By: "root (process 12)",
			Action: "change", Current: i == len(f.past)})
	}
	list[0].Action, list[0].By = "start", "the agent"
	return list, nil
}

func (f *fakeAgent) PastConfig(_ context.Context, number int) (*config.Node, error) {
	if number > len(f.past) {
		return nil, &api.Error{Code: api.NotFound, Message: "the history has no such configuration"}
	}
	return f.past[number-1], nil
}

func (f *fakeAgent) Rollback(ctx context.Context, number int, dryRun bool) ([]config.Change,
	error) {
	if number == 0 {
		number = len(f.past)
	}
	return f.Replace(ctx, func() (*config.Node, error) { return f.PastConfig(ctx, number) }, dryRun)
}

func (f *fakeAgent) Confirm(context.Context) error {
	if f.kept {
		return &api.Error{Code: api.Conflict, Message: "nothing waits for a confirmation"}
	}
	f.kept = true
	return nil
}
