package churn

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"sextant/lab"
)

// DemonstrationOptions say how long the demonstration takes and who is told about it.
type DemonstrationOptions struct {
	Duration time.Duration     // for each policy, until no further download begins
	Say      func(text string) // what happens; nil: nobody listens
	// a line that replaces the one before, "" removes it; nil: nobody looks
	Progress func(line string)
	Events   func(lab.Event) // of the lab; nil: nobody listens
}

// Demonstration is what became of the same downloads under each policy, while the same servers left
// and returned.
type Demonstration struct {
	Servers         int       `json:"servers"`
	Parallel        int       `json:"parallel"` // downloads at a time
	Bytes           int       `json:"bytes"`    // of one
	IntervalSeconds float64   `json:"intervalSeconds"`
	Policies        []outcome `json:"policies"`
}

// Of the demonstration: the paper's worst case.
const (
	demoInterval = time.Second
	demoPatience = 10 * time.Second
	demoSeed     = 1
)

// Demonstrate builds the lab, lets servers leave and return every second under downloads, by ecmp,
// by shadow and by offer, and takes the lab down again, whatever happens. If ctx ends before, the
// error wraps its cause.
func Demonstrate(ctx context.Context, o DemonstrationOptions) (*Demonstration, error) {
	d := &Demonstration{Servers: servers, Parallel: parallel, Bytes: large,
		IntervalSeconds: demoInterval.Seconds()}
	err := within(ctx, setting{name: "demo", observer: o.Events},
		func(ctx context.Context, a *arena) error {
			for _, p := range []policy{ecmp, shadow, offer} {
				outcome, err := a.demonstrate(ctx, p, o)
				if err != nil {
					return err
				}
				d.Policies = append(d.Policies, outcome)
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (a *arena) demonstrate(ctx context.Context, p policy,
	o DemonstrationOptions) (outcome, error) {
	if o.Say != nil {
		o.Say(fmt.Sprintf("%s: a server leaves or returns every %s, %d downloads at a time, %s",
			p.name, demoInterval, parallel, o.Duration))
	}
	load := downloads{
		bytes: large, workers: parallel, duration: o.Duration, timeout: demoPatience,
		interval: demoInterval, seed: demoSeed,
	}
	if o.Progress != nil {
		load.progress = func(done, failed int, left time.Duration) {
			o.Progress(fmt.Sprintf("%-6s %4.0f s left   downloads: %4d complete, %4d failed",
				p.name, left.Seconds(), done, failed))
		}
		defer o.Progress("")
	}
	result, err := a.download(ctx, p, load)
	result.Ms = nil // a summary is enough
	return result, err
}

// Write prints the demonstration for people.
func (d *Demonstration) Write(w io.Writer) error {
	fmt.Fprintf(w, "Downloads while one of %d servers leaves or returns every second, %d at a "+
		"time, the same changes in each row:\n\n",
		d.Servers, d.Parallel)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "POLICY\tDOWNLOADS\tFAILED\tSHARE\tRESETS\tPACKETS SENT ON\t")
	for _, p := range d.Policies {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f %%\t%d\t%.1f %%\t\n", p.Policy, p.Requests, p.Failed,
			100*p.rate(), p.Resets, 100*p.Redirected)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", d.verdict())
	return err
}

// verdict says what the last policy, offer, has made of it.
func (d *Demonstration) verdict() string {
	last := d.Policies[len(d.Policies)-1]
	if last.Failed > 0 {
		return fmt.Sprintf("Warning: %d downloads of %s failed, and none should: %v.", last.Failed,
			last.Policy, last.Example)
	}
	return fmt.Sprintf("With %s each packet carries who may have its connection: no download "+
		"failed, "+
		"and a server that leaves finishes its own.", last.Policy)
}
