package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/loadgen"
)

// loadFlags are those of both kinds of load.
type loadFlags struct {
	open    loadgen.Config
	closed  loadgen.DownloadConfig
	sources string
	want    string
	each    bool
}

func (a *app) loadCommand() *cobra.Command {
	f := &loadFlags{}
	cmd := &cobra.Command{
		Use: "load URL", Short: "Load a web server and measure its response times",
		Long: `Load a web server and measure its response times.

With --rate the load is open: requests are sent at the times of a Poisson stream, each on a connection of its own,
whether or not earlier ones have been answered, and a response time counts from the time at which the request was
meant to be sent. With --workers it is closed: that many workers fetch the document again and again, and with --want
compare every byte.

The exit code is 1 if there was no right answer at all.`,
		Example: `  sextant lab exec quickstart client -- sextant load "http://[2001:db8:80::80]/" --rate 50 --service 20ms --duration 10s
  sextant lab exec quickstart client -- sextant load "http://[2001:db8:80::80]/?bytes=1000000" --workers 4`,
		Annotations:       seeAlso("sextant emulate", "sextant lab exec"),
		Args:              takes("URL"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.open.Rate, "rate", 0, "open: mean number of requests per second")
	flags.IntVar(&f.closed.Workers, "workers", 0, "closed: fetches at the same time")
	flags.DurationVar(&f.open.Duration, "duration", 10*time.Second, "of the measured part")
	flags.DurationVar(&f.open.WarmUp, "warm-up", 0, "open: time before it, not measured")
	flags.DurationVar(&f.open.Service, "service", 0, "open: mean CPU time to ask for, as ms=...; 0 is none")
	flags.Uint64Var(&f.open.Seed, "seed", 1, "open: of arrivals and CPU times; the same seed is the same load")
	flags.DurationVar(&f.open.Timeout, "deadline", 0, "for one complete answer (default 10s open, 1m closed)")
	flags.StringVar(&f.sources, "sources", "", "addresses and prefixes to send from, separated by commas, in turn")
	flags.IntVar(&f.open.MaxInFlight, "max-in-flight", 0,
		"open: requests beyond are not sent, and counted (default 10000)")
	flags.StringVar(&f.want, "want", "", "closed: file with the content that every answer must have")
	flags.BoolVar(&f.each, "each", false, "closed: write a line of JSON when a fetch ends, and the result as the last one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.settle(args[0]); err != nil {
			return err
		}
		if f.each && f.closed.Workers > 0 {
			return a.eachLoad(cmd.Context(), f.closed)
		}
		if f.closed.Workers > 0 {
			return a.closedLoad(cmd.Context(), f.closed)
		}
		return a.openLoad(cmd.Context(), f.open)
	}
	return cmd
}

// settle reads what the flags name and copies what both kinds share.
func (f *loadFlags) settle(url string) error {
	if f.open.Rate > 0 && f.closed.Workers > 0 {
		return usageErrorf("both kinds of load are given; choose --rate (open) or --workers (closed)")
	}
	if f.open.Rate <= 0 && f.closed.Workers <= 0 {
		return usageErrorf("how much load is not said; give --rate (open) or --workers (closed)")
	}
	if f.sources != "" {
		sources, err := loadgen.ParseSources(f.sources)
		if err != nil {
			return usageErrorf("--sources: %w", err)
		}
		f.open.Sources, f.closed.Sources = sources, sources
	}
	if f.want != "" {
		want, err := os.ReadFile(f.want)
		if err != nil {
			return fmt.Errorf("read --want %s: %w; name a file that this user can read", f.want, withoutPath(err))
		}
		f.closed.Want = want
	}
	f.open.URL, f.closed.URL = url, url
	f.closed.Duration, f.closed.Timeout = f.open.Duration, f.open.Timeout
	return nil
}

func (a *app) openLoad(ctx context.Context, c loadgen.Config) error {
	if a.progress && !a.quiet {
		c.Progress = func(p loadgen.Progress) { a.progressLine(loadProgress(p)) }
		defer a.progressLine("")
	}
	result, err := loadgen.Run(ctx, c)
	if result == nil {
		return err
	}
	return a.showLoad(err, result.Done, view{
		value: result,
		prose: fmt.Sprintf("%d requests in %s, %g per second: %d right, %d failed%s\n",
			result.Sent, milliseconds(result.DurationMs), result.RatePerSecond,
			result.Done, result.Failed, failureText(result.Failures)),
		tables: tables{
			timingTable(timing{"response", result.Latency}, timing{"lateness", result.Lateness}),
			serverTable(result.Servers, result.Done),
		},
	})
}

func (a *app) closedLoad(ctx context.Context, c loadgen.DownloadConfig) error {
	result, err := loadgen.Download(ctx, c)
	if result == nil {
		return err
	}
	return a.showLoad(err, result.Done, view{
		value: result,
		prose: fmt.Sprintf("%d fetches in %s by %d workers, %.1f Mbit/s: %d right, %d failed%s\n",
			result.Done+result.Failed, milliseconds(result.ElapsedMs), result.Workers, result.MegabitPerSecond,
			result.Done, result.Failed, failureText(result.Failures)),
		tables: tables{timingTable(timing{"fetch", result.Latency}), serverTable(result.Servers, result.Done)},
	})
}

// eachLoad is a closed load for programs that want to know how it goes.
func (a *app) eachLoad(ctx context.Context, c loadgen.DownloadConfig) error {
	lines := json.NewEncoder(a.stdout)
	var deaf error // who listened is gone
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.Each = func(f loadgen.Fetch) {
		if deaf = lines.Encode(loadgen.Line{Fetch: &f}); deaf != nil {
			stop(deaf)
		}
	}
	result, err := loadgen.Download(ctx, c)
	if result == nil || deaf != nil {
		return err
	}
	return errors.Join(lines.Encode(loadgen.Line{Result: result}), err)
}

// showLoad prints what was measured, also when the run was cut short.
func (a *app) showLoad(cut error, done uint64, v view) error {
	if a.progress && !a.quiet {
		a.progressLine("")
	}
	if err := a.show(v); err != nil {
		return err
	}
	if cut == nil && done == 0 {
		return errors.New("there was no right answer; see the failures above")
	}
	return cut
}

func loadProgress(p loadgen.Progress) string {
	phase := ""
	if p.WarmingUp {
		phase = " (warming up)"
	}
	return fmt.Sprintf("%s of %s%s: %d sent, %.0f answers/s, mean %.1f ms, %d failed",
		p.Elapsed.Round(time.Second), p.Total.Round(time.Second), phase, p.Sent, p.Rate, p.MeanMs, p.Failed)
}

func milliseconds(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(10 * time.Millisecond).String()
}

// failureText lists the kinds that happened.
func failureText(f loadgen.Failures) string {
	kinds := []struct {
		name string
		n    uint64
	}{
		{"refused", f.Refused}, {"reset", f.Reset}, {"timeout", f.Timeout}, {"status", f.Status},
		{"short body", f.ShortBody}, {"wrong body", f.WrongBody}, {"overflow", f.Overflow}, {"other", f.Other},
	}
	var texts []string
	for _, k := range kinds {
		if k.n > 0 {
			texts = append(texts, fmt.Sprintf("%s %d", k.name, k.n))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// timing is a set of times and what was timed.
type timing struct {
	what  string
	times loadgen.Distribution
}

func timingTable(timings ...timing) table {
	t := table{columns: []string{"TIME", "COUNT", "MEAN", "P50", "P90", "P99", "MAX"}, wide: []string{"MIN", "P99.9"}}
	ms := func(v float64) string { return fmt.Sprintf("%.2f ms", v) }
	for _, d := range timings {
		t.rows = append(t.rows, []string{
			d.what, count(d.times.Count), ms(d.times.MeanMs), ms(d.times.P50Ms), ms(d.times.P90Ms), ms(d.times.P99Ms),
			ms(d.times.MaxMs), ms(d.times.MinMs), ms(d.times.P999Ms),
		})
	}
	return t
}

func serverTable(servers []loadgen.Server, done uint64) table {
	t := table{columns: []string{"SERVER", "ANSWERS", "SHARE", "MEAN"}}
	for _, s := range servers {
		t.rows = append(t.rows, []string{orDash(s.Name), count(s.Count), share(s.Count, done),
			fmt.Sprintf("%.2f ms", s.MeanMs)})
	}
	return t
}
