package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

// errEnough ends a stream when as many samples are there as were wanted.
var errEnough = errors.New("enough")

// watch are the flags of commands that follow the counters.
type watch struct {
	interval time.Duration
	times    int
}

func watchFlags(cmd *cobra.Command) *watch {
	w := &watch{}
	cmd.Flags().DurationVar(&w.interval, "interval", time.Second,
		"time between two lines, 100ms to 1m")
	cmd.Flags().IntVar(&w.times, "count", 0, "end after this many; 0 is never")
	return w
}

// streams says whether the output is JSON Lines. A stream has no other format than these and
// tables.
func (a *app) streams() (asJSON bool, err error) {
	if a.output == formatYAML || a.output == formatName {
		return false, usageErrorf("a stream has no --output %s; write table, wide or json",
			a.output)
	}
	return a.output == formatJSON, nil
}

// follow calls each for every interval, with the samples at its ends.
func (a *app) follow(cmd *cobra.Command, w *watch,
	each func(before, after api.Sample) error) error {
	var before *api.Sample
	seen := 0
	err := a.agent().Monitor(cmd.Context(), w.interval, func(after api.Sample) error {
		if before != nil {
			if err := each(*before, after); err != nil {
				return err
			}
			if seen++; seen == w.times {
				return errEnough
			}
		}
		before = &after
		return nil
	})
	if errors.Is(err, errEnough) || cmd.Context().Err() != nil {
		return nil
	}
	return err
}

func (a *app) monitorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "monitor", Short: "Print packet rates and drops, a line per interval",
		Long: `Print what happens to packets, per second: a line per role and interval, with the reasons of drops, and a line for
each event, as when a backend fails. The line of role telemetry says what became of packets with in-band telemetry, and why
the sink reported some. In JSON it is one object per line, with the counters themselves.`,
		Example: "  sextant lab exec quickstart edge -- sextant monitor --interval " +
			"500ms --count 4",
		Annotations: seeAlso("sextant top", "sextant status"),
	}
	w := watchFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.streams()
		if err != nil {
			return err
		}
		if asJSON {
			return a.follow(cmd, w, func(_,
				after api.Sample) error {
				return json.NewEncoder(a.stdout).Encode(after)
			})
		}
		headed := false
		return a.follow(cmd, w, func(before, after api.Sample) error {
			if !headed {
				fmt.Fprintf(a.stdout, monitorLine, "TIME", "ROLE", "FORWARDED/s", "TAKEN/s",
					"PASSED/s", "DROPPED/s", "REASONS")
				headed = true
			}
			for i, c := range after.Counters {
				if i < len(before.Counters) {
					fmt.Fprint(a.stdout, monitorText(after.Time, before.Counters[i],
						c, after.Time.Sub(before.Time)))
				}
			}
			for _, e := range after.Events {
				fmt.Fprintf(a.stdout, "%s  %s\n", e.Time.Format(time.TimeOnly), e)
			}
			return nil
		})
	}
	return cmd
}

// monitorLine has fixed columns, for lines that come one by one.
const monitorLine = "%-8s  %-7s  %11s  %9s  %9s  %9s  %s\n"

func monitorText(at time.Time, before, after api.Counters, interval time.Duration) string {
	r := func(before, after uint64) string { return rate(before, after, interval) }
	return fmt.Sprintf(monitorLine, at.Format(time.TimeOnly), after.Role,
		r(before.ForwardedPackets(), after.ForwardedPackets()),
		r(before.TakenPackets, after.TakenPackets),
		r(before.PassedPackets, after.PassedPackets),
		r(before.DroppedPackets(), after.DroppedPackets()),
		reasons(namedOf(before), namedOf(after)))
}

// named is a counter with its name.
type named struct {
	name  string
	count uint64
}

// namedOf are the counters of a role that have names: reasons of drops, what became of packets with
// telemetry, and why the sink reported some.
func namedOf(c api.Counters) (list []named) {
	for _, d := range c.Drops {
		list = append(list, named{d.Reason, d.Packets})
	}
	if c.Telemetry == nil {
		return list
	}
	for _, p := range c.Telemetry.Packets {
		list = append(list, named{p.Outcome, p.Packets})
	}
	for _, r := range c.Telemetry.Reported {
		list = append(list, named{"reported " + r.Reason, r.Packets})
	}
	return list
}

// reasons lists the counters with names that rose in an interval, and by how much.
func reasons(before, after []named) string {
	earlier := map[string]uint64{}
	for _, t := range before {
		earlier[t.name] = t.count
	}
	var texts []string
	for _, t := range after {
		if t.count > earlier[t.name] {
			texts = append(texts, fmt.Sprintf("%s %d", t.name, t.count-earlier[t.name]))
		}
	}
	if len(texts) == 0 {
		return "-"
	}
	return strings.Join(texts, ", ")
}
