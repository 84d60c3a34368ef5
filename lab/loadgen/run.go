package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"sextant/linux/hrtimer"
	"sextant/sim/workload"
)

const progressInterval = 200 * time.Millisecond

// Config describes an open-loop load.
type Config struct {
	URL         string         // http://host[:port]/path
	Rate        float64        // mean number of requests per second
	Duration    time.Duration  // of the measured part
	WarmUp      time.Duration  // before it: requests are sent, not measured
	Seed        uint64         // of the schedule
	Service     time.Duration  // mean of the service times asked for by ms=...; none if 0
	Timeout     time.Duration  // for a complete answer, from the intended send time; 10 s if 0
	Sources     []netip.Prefix // addresses to send from, each request the next one; any if empty
	MaxInFlight int            // requests beyond are counted as overflow and not sent; 10,000 if 0
	Progress    func(Progress) // called some times per second, if not nil
	Each        func(Response) // called after each measured request, one at a time, if not nil
	// Requests is another load than a Poisson stream of Rate, Service and Seed; it ends after
	// WarmUp and Duration at the latest.
	Requests workload.Stream
}

// Response is what became of one request of an open loop.
type Response struct {
	AtMs   float64        `json:"atMs"` // when it was meant to be sent, since the start
	Ms     float64        `json:"ms"`   // from then until its end, good or bad
	Class  workload.Class `json:"class"`
	Server string         `json:"server,omitempty"` // who answered, by its X-Server header
	// the kind, as Failures has it in JSON; "" for a right answer
	Failure string `json:"failure,omitempty"`
}

// Progress is how far a run has come. Counts include the warm-up.
type Progress struct {
	Elapsed   time.Duration
	Total     time.Duration // warm-up and measured part
	WarmingUp bool
	Sent      uint64
	Done      uint64
	Failed    uint64
	Rate      float64 // answers per second since the last call
	MeanMs    float64 // response time so far: of the measured part once that has begun
}

// Result is what an open-loop load has measured, warm-up left out.
type Result struct {
	URL           string  `json:"url"`
	RatePerSecond float64 `json:"ratePerSecond"` // as asked for
	SentPerSecond float64 `json:"sentPerSecond"` // in the measured part
	// of the measured part, shorter than asked for if the run was cut short
	DurationMs  float64           `json:"durationMs"`
	WarmUpMs    float64           `json:"warmUpMs"` // the same of the warm-up
	Seed        uint64            `json:"seed"`
	ServiceMs   float64           `json:"serviceMs"` // mean asked for
	Sent        uint64            `json:"sent"`
	Done        uint64            `json:"done"`
	Failed      uint64            `json:"failed"`
	Failures    Failures          `json:"failures"`
	FirstErrors map[string]string `json:"firstErrors,omitempty"` // an example for each kind
	// from the intended send time, of right answers
	Latency Distribution `json:"latency"`
	// of the generator itself; part of the latency
	Lateness Distribution `json:"lateness"`
	Servers  []Server     `json:"servers"`
}

func (c Config) withDefaults() (Config, error) {
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 10_000)
	switch {
	case c.Requests == nil && !(c.Rate > 0 && c.Rate <= 1e6):
		return c, fmt.Errorf("loadgen: rate of %g requests per second must be above 0 and at "+
			"most a million", c.Rate)
	case c.Duration <= 0 || c.WarmUp < 0 || c.Service < 0 || c.Timeout < 0:
		return c, fmt.Errorf("loadgen: duration %v must be above 0, warm-up %v, service %v and "+
			"timeout %v at least 0",
			c.Duration, c.WarmUp, c.Service, c.Timeout)
	case c.MaxInFlight < 0:
		return c, fmt.Errorf("loadgen: at most %d requests in flight: at least 1 is needed",
			c.MaxInFlight)
	}
	return c, nil
}

// Run loads the URL as described and returns what it measured. If ctx ends
// before, the result is that of the requests answered so far, and comes
// together with the cause.
func Run(ctx context.Context, c Config) (*Result, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	client, sources, err := newSender(ctx, c.URL, c.Sources)
	if err != nil {
		return nil, err
	}
	timer, err := hrtimer.New()
	if err != nil {
		return nil, fmt.Errorf("loadgen: %w", err)
	}
	defer context.AfterFunc(ctx, func() { timer.Close() })()
	defer timer.Close()
	r := &run{config: c, client: client, sources: sources, timer: timer,
		warmUp: newTally(), measured: newTally(), lateness: newSample()}
	err = r.play(ctx)
	return r.result(), err
}

// run is an open loop under way.
type run struct {
	config  Config
	client  *client
	sources *sources // of the loop alone
	timer   *hrtimer.Timer
	start   time.Time

	cut *time.Duration // since the start, when the loop was ended before its time; nil: it was not

	mu       sync.Mutex
	inFlight int
	prelude  uint64 // requests of the warm-up whose time has come
	sent     uint64 // those of the measured part
	warmUp   *tally
	measured *tally
	lateness *sample
}

// play sends all requests and waits for their answers.
func (r *run) play(ctx context.Context) error {
	r.start = time.Now()
	defer r.reportProgress()()
	var requests sync.WaitGroup
	defer requests.Wait()
	stream := r.config.Requests
	if stream == nil {
		stream = workload.NewPoisson(r.config.Rate, r.config.Service, r.config.Seed)
	}
	total := r.config.WarmUp + r.config.Duration
	for next, ok := stream.Next(); ok && next.At < total; next, ok = stream.Next() {
		intended := r.start.Add(next.At)
		if err := r.waitUntil(intended); err != nil || ctx.Err() != nil {
			elapsed := time.Since(r.start)
			r.cut = &elapsed
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return fmt.Errorf("loadgen: %w", err)
		}
		source := r.sources.take()
		if r.begin(next, time.Since(intended)) {
			requests.Go(func() { r.request(ctx, source, next, intended) })
		}
	}
	requests.Wait()
	return context.Cause(ctx)
}

// waitUntil returns at once if the loop is late already.
func (r *run) waitUntil(intended time.Time) error {
	if time.Until(intended) <= 0 {
		return nil
	}
	if err := r.timer.Set(intended); err != nil {
		return err
	}
	return r.timer.Wait()
}

// begin counts a request and reports whether it may be sent.
func (r *run) begin(a workload.Request, late time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isWarmUp(a) {
		r.prelude++
	} else {
		r.sent++
		r.lateness.add(late)
	}
	if r.inFlight >= r.config.MaxInFlight {
		r.tell(a, Response{Ms: milliseconds(late), Failure: r.tallyOf(a).fail(errOverflow)})
		return false
	}
	r.inFlight++
	return true
}

func (r *run) request(ctx context.Context, source netip.Addr, a workload.Request,
	intended time.Time) {
	got := r.client.get(ctx, source, r.client.pathOf(a), intended.Add(r.config.Timeout), io.Discard)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	switch {
	case got.err == nil:
		r.tallyOf(a).succeed(got.server, got.at.Sub(intended))
		r.tell(a, Response{Ms: milliseconds(got.at.Sub(intended)), Server: got.server})
	case ctx.Err() == nil: // else it was us who ended it
		r.tell(a, Response{Ms: milliseconds(time.Since(intended)),
			Failure: r.tallyOf(a).fail(got.err)})
	}
}

func (r *run) tell(a workload.Request, what Response) {
	if r.config.Each != nil && !r.isWarmUp(a) {
		what.AtMs, what.Class = milliseconds(a.At), a.Class
		r.config.Each(what)
	}
}

func (r *run) isWarmUp(a workload.Request) bool {
	return a.At < r.config.WarmUp
}

func (r *run) tallyOf(a workload.Request) *tally {
	if r.isWarmUp(a) {
		return r.warmUp
	}
	return r.measured
}

// lengths of the warm-up and of the measured part, as far as the run went through them.
func (r *run) lengths() (warmUp, measured time.Duration) {
	warmUp, measured = r.config.WarmUp, r.config.Duration
	if r.cut != nil {
		warmUp, measured = min(warmUp, *r.cut), min(measured, max(*r.cut-warmUp, 0))
	}
	return warmUp, measured
}

func (r *run) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	warmUp, duration := r.lengths()
	sentPerSecond := 0.
	if duration > 0 {
		sentPerSecond = float64(r.sent) / duration.Seconds()
	}
	return &Result{
		URL:           r.config.URL,
		RatePerSecond: r.config.Rate,
		SentPerSecond: sentPerSecond,
		DurationMs:    milliseconds(duration),
		WarmUpMs:      milliseconds(warmUp),
		Seed:          r.config.Seed,
		ServiceMs:     milliseconds(r.config.Service),
		Sent:          r.sent,
		Done:          r.measured.done(),
		Failed:        r.measured.failures.Total(),
		Failures:      r.measured.failures,
		FirstErrors:   r.measured.examples,
		Latency:       r.measured.latency.distribution(),
		Lateness:      r.lateness.distribution(),
		Servers:       r.measured.byServer(),
	}
}

// reportProgress calls Config.Progress regularly until the returned function is called.
func (r *run) reportProgress() (stop func()) {
	if r.config.Progress == nil {
		return func() {}
	}
	var reporting sync.WaitGroup
	end := make(chan struct{})
	reporting.Go(func() {
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		var last Progress
		for {
			select {
			case <-ticker.C:
				last = r.progress(last)
				r.config.Progress(last)
			case <-end:
				return
			}
		}
	})
	return func() {
		close(end)
		reporting.Wait()
	}
}

func (r *run) progress(last Progress) Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Progress{
		Elapsed: time.Since(r.start),
		Total:   r.config.WarmUp + r.config.Duration,
		Sent:    r.prelude + r.sent,
		Done:    r.warmUp.done() + r.measured.done(),
		Failed:  r.warmUp.failures.Total() + r.measured.failures.Total(),
		MeanMs:  r.measured.latency.mean(),
	}
	if p.WarmingUp = p.Elapsed < r.config.WarmUp; p.WarmingUp {
		p.MeanMs = r.warmUp.latency.mean()
	}
	p.Rate = float64(p.Done-last.Done) / (p.Elapsed - last.Elapsed).Seconds()
	return p
}
