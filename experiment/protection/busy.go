package protection

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"sextant/agent/api"
	"sextant/experiment"
)

// Of the time without a cut.
const (
	busyProcesses = 8
	busyLasts     = time.Minute
	busyQuick     = 3 * time.Second
	busyCopies    = 3
)

// calmness is what a protection did while nothing was cut, and the machine was busy.
type calmness struct {
	Lasts        time.Duration
	Stream       stream
	Replacements uint64
	Silent       int     // how often a list was seen to be silent
	RTTMs, Loss  float64 // of probes, the worst of all lists
}

// busy protects the stream beside processes that take all the time they get, and cuts nothing.
func (c *cutting) busy(ctx context.Context, lasts time.Duration) (calm calmness, err error) {
	calm.Lasts = lasts
	if err := c.protect(ctx, busyCopies); err != nil {
		return calm, err
	}
	before, err := c.await(ctx, func(x api.Protection) bool {
		return len(waysOf(x,
			true)) == busyCopies
	})
	if err != nil {
		return calm, err
	}
	end, err := occupy(busyProcesses)
	if err != nil {
		return calm, errors.Join(err, end())
	}
	ended := make(chan struct{})
	watched := make(chan error, 1)
	go func() { watched <- c.watchCalm(ctx, &calm, ended) }()
	calm.Stream, err = c.telemetry(ctx, lasts, func() error { return nil })
	close(ended)
	err = errors.Join(err, <-watched, end())
	if err != nil {
		return calm, err
	}
	after, err := c.headend.Protection(ctx, cutName)
	if err != nil {
		return calm, err
	}
	calm.Replacements = after.Replacements - before.Replacements
	_, err = c.headend.DeleteProtection(ctx, cutName)
	return calm, err
}

// watchCalm looks at the lists until ended is closed.
func (c *cutting) watchCalm(ctx context.Context, calm *calmness, ended <-chan struct{}) error {
	const often = 50 * time.Millisecond
	for {
		select {
		case <-ended:
			return nil
		case <-time.After(often):
		}
		x, err := c.headend.Protection(ctx, cutName)
		if err != nil {
			return err
		}
		for _, p := range x.Paths {
			calm.RTTMs, calm.Loss = max(calm.RTTMs, p.RTTMs), max(calm.Loss, p.Loss)
		}
		if slices.ContainsFunc(x.Paths,
			func(p api.ProtectedPath) bool { return p.Probes == "silent" }) {
			calm.Silent++
		}
	}
}

// occupy starts processes that take all the time they get, at the usual priority, and returns what
// ends them.
func occupy(count int) (end func() error, err error) {
	var running []*exec.Cmd
	end = func() (err error) {
		for _, p := range running {
			err = errors.Join(err, p.Process.Kill())
			_ = p.Wait() // it was killed
		}
		return err
	}
	for range count {
		p := exec.Command("sh", "-c", "while :; do :; done")
		if err := p.Start(); err != nil {
			return end, fmt.Errorf("keep the machine busy: %w", err)
		}
		running = append(running, p)
	}
	return end, nil
}

func reportBusy(r *experiment.Recorder, c calmness) {
	r.Table(experiment.Table{
		Name: "busy", Title: fmt.Sprintf(
			"Nothing is cut, beside %d processes that take all the time they get", busyProcesses),
		Columns: []string{
			"Copies", "Seconds", "Replacements", "Looks at which a path was silent", "Datagrams",
			"Lost", "Twice",
			"RTT of probes at most, ms", "Lost probes at most, %", "Faults of the machine",
		},
		Rows: [][]string{{
			strconv.Itoa(busyCopies), strconv.FormatFloat(c.Lasts.Seconds(), 'f', 0, 64),
			strconv.FormatUint(c.Replacements, 10),
			strconv.Itoa(c.Silent), strconv.Itoa(c.Stream.Sent), strconv.Itoa(c.Stream.Lost),
			strconv.Itoa(c.Stream.Duplicates),
			milliseconds(c.RTTMs), fmt.Sprintf("%.1f", 100*c.Loss),
			strconv.FormatUint(c.Stream.Faults, 10),
		}},
	})
	says := "no path is taken for silent that is not"
	switch {
	case c.Replacements > 0:
		says = "paths were replaced that had not failed"
	case c.Silent > 0:
		says = "a path counted as silent at a look, and nothing followed"
	}
	r.Compare(experiment.Comparison{
		What: fmt.Sprintf("nothing is cut for %.0f s on a busy machine: replacements",
			c.Lasts.Seconds()), Source: "0",
		Ours: strconv.FormatUint(c.Replacements, 10), Says: says,
	})
}
