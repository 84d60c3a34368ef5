package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// firstSign is after what time a command that computes says so for the first time; each further
// time is double as long.
const firstSign = 10 * time.Second

// computing makes commands end with their context, which Ctrl-C ends, and say meanwhile that they
// are at work. What they compute is left as it is: the process ends.
func (a *app) computing(commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		work := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			return a.compute(cmd, firstSign, func() error { return work(cmd, args) })
		}
	}
	return commands
}

func (a *app) compute(cmd *cobra.Command, sign time.Duration, work func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- work() }()
	begun := time.Now()
	for {
		select {
		case err := <-ended:
			return err
		case <-cmd.Context().Done():
			return fmt.Errorf("interrupted after %v; a smaller topology takes less",
				time.Since(begun).Round(time.Second))
		case <-time.After(sign):
			if !a.quiet {
				a.say("%s: at work since %v; Ctrl-C ends it", cmd.CommandPath(),
					time.Since(begun).Round(time.Second))
			}
			sign *= 2
		}
	}
}
