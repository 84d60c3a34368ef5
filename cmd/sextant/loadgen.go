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

	"sextant/lab/loadgen"
	"sextant/sim/workload"
)

// loadFlags are those of both kinds of load.
type loadFlags struct {
	open    loadgen.Config
	closed  loadgen.DownloadConfig
	sources string
	want    string
	each    bool
	replay  string
	speed   float64
	whole   bool // no duration is given: all of the log
	day     bool
}

// loadCommand is the former name, which reads like the opposite of unload. It ends with 0.2.0.
func (a *app) loadCommand() *cobra.Command {
	cmd := a.loadgenCommand()
	cmd.Use, cmd.Hidden = "load URL", true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.say("\"sextant load\" is now \"sextant loadgen\"; that name ends with version 0.2.0")
		return run(cmd, args)
	}
	return cmd
}

func (a *app) loadgenCommand() *cobra.Command {
	f := &loadFlags{}
	cmd := &cobra.Command{
		Use: "loadgen URL", Short: "Load a web server and measure its response times",
		Long: `Load a web server and measure its response times.

With --rate the load is open: requests are sent at the times of a Poisson stream, each on a connection of its own,
whether or not earlier ones have been answered, and a response time counts from the time at which the request was
meant to be sent. --day makes it a synthetic day of a wiki: --rate pages per second at the busiest hour, one static file
of a millisecond for each, and the 24 hours compressed into --duration. --replay sends the GET requests of an access log
(common or combined log format), --speed times as fast as they came. With --workers it is closed: that many workers fetch
the document again and again, and with --want compare every byte.

Interrupted, it prints what it has measured until then, with the time that has passed. The exit code is 1 if there was no
right answer at all.`,
		Example: `  sextant lab exec quickstart client -- sextant loadgen "http://[2001:db8:80::80]/" --rate 50 --service 20ms --duration 10s
  sextant lab exec quickstart client -- sextant loadgen "http://[2001:db8:80::80]/?bytes=1000000" --workers 4
  sextant loadgen http://web.example/ --replay access.log --speed 10 --duration 5m`,
		Annotations: seeAlso("sextant emulate", "sextant lab exec"),
		Args:        takes("URL"),
	}
	flags := cmd.Flags()
	flags.Float64Var(&f.open.Rate, "rate", 0, "open: mean number of requests per second")
	flags.IntVar(&f.closed.Workers, "workers", 0, "closed: fetches at the same time")
	flags.DurationVar(&f.open.Duration, "duration", 10*time.Second, "of the measured part")
	flags.DurationVar(&f.open.WarmUp, "warm-up", 0, "open: time before it, not measured")
	flags.DurationVar(&f.open.Service, "service", 0,
		"open: mean CPU time to ask for, as ms=...; 0 is none")
	flags.Uint64Var(&f.open.Seed, "seed", 1,
		"open: of arrivals and CPU times; the same seed is the same load")
	flags.DurationVar(&f.open.Timeout, "deadline", 0,
		"for one complete answer (default 10s open, 1m closed)")
	flags.StringVar(&f.sources, "sources", "",
		"addresses and prefixes to send from, separated by commas, in turn")
	flags.IntVar(&f.open.MaxInFlight, "max-in-flight", 0,
		"open: requests beyond are not sent, and counted (default 10000)")
	flags.StringVar(&f.want, "want", "",
		"closed: file with the content that every answer must have")
	flags.BoolVar(&f.each, "each", false,
		"write a line of JSON when a request ends, and the result as the last one")
	flags.BoolVar(&f.day, "day", false,
		"open: a synthetic day of a wiki, with --rate at its busiest hour, in --duration")
	flags.StringVar(&f.replay, "replay", "",
		"open: access log whose requests are sent, for --duration if that is given")
	flags.Float64Var(&f.speed, "speed", 1, "with --replay: how much faster than they came")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.whole = !cmd.Flags().Changed("duration")
		if err := f.settle(args[0]); err != nil {
			return err
		}
		switch closed := f.closed.Workers > 0; {
		case closed && f.each:
			return a.eachFetch(cmd.Context(), f.closed)
		case closed:
			return a.closedLoad(cmd.Context(), f.closed)
		case f.each:
			return a.eachResponse(cmd.Context(), f.open)
		default:
			return a.openLoad(cmd.Context(), f.open)
		}
	}
	return cmd
}

// settle reads what the flags name and copies what both kinds share.
func (f *loadFlags) settle(url string) error {
	switch open := f.open.Rate > 0 || f.replay != ""; {
	case open && f.closed.Workers > 0:
		return usageErrorf("both kinds of load are given; choose --rate or --replay (open), or " +
			"--workers (closed)")
	case !open && f.closed.Workers <= 0:
		return usageErrorf("how much load is not said; give --rate or --replay (open), or " +
			"--workers (closed)")
	case f.replay != "" && (f.open.Rate > 0 || f.day):
		return usageErrorf("a log has its own rate; give --replay, or --rate with or without --day")
	}
	if err := f.stream(); err != nil {
		return err
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
			return fmt.Errorf("read --want %s: %w; name a file that this user can read", f.want,
				withoutPath(err))
		}
		f.closed.Want = want
	}
	f.open.URL, f.closed.URL = url, url
	f.closed.Duration, f.closed.Timeout = f.open.Duration, f.open.Timeout
	return nil
}

// dayFiles and dayStatic are the static files per page, and what one costs.
const (
	dayFiles  = 1
	dayStatic = time.Millisecond
)

// stream makes the requests of an open load that are no Poisson stream.
func (f *loadFlags) stream() error {
	if f.day {
		f.open.Requests = workload.NewDay(workload.DayConfig{Length: f.open.WarmUp +
			f.open.Duration, Peak: f.open.Rate,
			Service: f.open.Service, Static: dayStatic, Files: dayFiles, Seed: f.open.Seed})
	}
	if f.replay == "" {
		return nil
	}
	file, err := os.Open(f.replay)
	if err != nil {
		return fmt.Errorf("read --replay %s: %w; name a file that this user can read", f.replay,
			withoutPath(err))
	}
	defer file.Close()
	log, err := workload.ReadLog(file, f.speed, f.open.Seed)
	if err != nil {
		return fmt.Errorf("--replay %s: %w", f.replay, err)
	}
	if f.open.Requests = log; f.whole {
		f.open.Duration = log.Length() + time.Nanosecond
	}
	f.open.Rate = float64(log.Requests()) / max(log.Length().Seconds(), 1)
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
		prose: fmt.Sprintf("%d requests in %s, %.1f per second: %d right, %d failed%s\n",
			result.Sent, milliseconds(result.DurationMs), result.SentPerSecond,
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
			result.Done+result.Failed, milliseconds(result.ElapsedMs), result.Workers,
			result.MegabitPerSecond,
			result.Done, result.Failed, failureText(result.Failures)),
		tables: tables{timingTable(timing{"fetch", result.Latency}),
			serverTable(result.Servers, result.Done)},
	})
}

// lineWriter writes lines of JSON for a program that wants to know how a load goes, and stops the
// load when it is gone.
type lineWriter struct {
	lines *json.Encoder
	stop  context.CancelCauseFunc
	deaf  error
}

func (a *app) lineWriter(ctx context.Context) (context.Context, *lineWriter) {
	ctx, stop := context.WithCancelCause(ctx)
	return ctx, &lineWriter{lines: json.NewEncoder(a.stdout), stop: stop}
}

func (w *lineWriter) write(l loadgen.Line) {
	if w.deaf = w.lines.Encode(l); w.deaf != nil {
		w.stop(w.deaf)
	}
}

// end writes the result, of a load that ended with err.
func (w *lineWriter) end(result loadgen.Line, err error) error {
	defer w.stop(nil)
	if w.deaf != nil {
		return err
	}
	return errors.Join(w.lines.Encode(result), err)
}

// eachFetch is a closed load for programs that want to know how it goes.
func (a *app) eachFetch(ctx context.Context, c loadgen.DownloadConfig) error {
	ctx, w := a.lineWriter(ctx)
	c.Each = func(f loadgen.Fetch) { w.write(loadgen.Line{Fetch: &f}) }
	result, err := loadgen.Download(ctx, c)
	if result == nil {
		return err
	}
	return w.end(loadgen.Line{Result: result}, err)
}

// eachResponse is the same of an open load.
func (a *app) eachResponse(ctx context.Context, c loadgen.Config) error {
	ctx, w := a.lineWriter(ctx)
	c.Each = func(r loadgen.Response) { w.write(loadgen.Line{Response: &r}) }
	result, err := loadgen.Run(ctx, c)
	if result == nil {
		return err
	}
	return w.end(loadgen.Line{Open: result}, err)
}

// showLoad prints what was measured, also when the run was cut short.
func (a *app) showLoad(cut error, done uint64, v view) error {
	if a.progress && !a.quiet {
		a.progressLine("")
	}
	if err := a.show(v); err != nil {
		return err
	}
	if errors.Is(cut, context.Canceled) {
		cut = nil // who interrupted it has the result
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
		p.Elapsed.Round(time.Second), p.Total.Round(time.Second), phase, p.Sent, p.Rate, p.MeanMs,
		p.Failed)
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
		{"short body", f.ShortBody}, {"wrong body", f.WrongBody}, {"overflow", f.Overflow},
		{"other", f.Other},
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
	t := table{columns: []string{"TIME", "COUNT", "MEAN", "P50", "P90", "P99", "MAX"},
		wide: []string{"MIN", "P99.9"}}
	ms := func(v float64) string { return fmt.Sprintf("%.2f ms", v) }
	for _, d := range timings {
		t.add(d.what, d.times.Count, ms(d.times.MeanMs), ms(d.times.P50Ms), ms(d.times.P90Ms),
			ms(d.times.P99Ms), ms(d.times.MaxMs), ms(d.times.MinMs), ms(d.times.P999Ms))
	}
	return t
}

func serverTable(servers []loadgen.Server, done uint64) table {
	t := table{columns: []string{"SERVER", "ANSWERS", "SHARE", "MEAN"}}
	for _, s := range servers {
		t.add(orDash(s.Name), s.Count, share(s.Count, done), fmt.Sprintf("%.2f ms", s.MeanMs))
	}
	return t
}
