package loadgen

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// DownloadConfig describes a closed-loop load.
type DownloadConfig struct {
	URL      string        // http://host[:port]/path
	Workers  int           // fetch at the same time; 1 if 0
	Duration time.Duration // no fetch begins after it; every worker makes one at least
	// the content that every body must have; any of the announced length if nil
	Want    []byte
	Timeout time.Duration  // for one fetch; 60 s if 0
	Sources []netip.Prefix // addresses to send from, each fetch the next one; any if empty
	Each    func(Fetch)    // called after each fetch, one at a time, if not nil
}

// Fetch is what became of one fetch of a closed loop.
type Fetch struct {
	Ms float64 `json:"ms"` // until its end, good or bad
	// the kind, as Failures has it in JSON; "" for a right answer
	Failure string `json:"failure,omitempty"`
	// of a failure, with the client's address and port once there is a connection
	Error string `json:"error,omitempty"`
}

// Line is a line of a load's report in JSON Lines: a fetch of a closed loop or a response of an
// open one, or at the end the result.
type Line struct {
	Fetch    *Fetch          `json:"fetch,omitempty"`
	Result   *DownloadResult `json:"result,omitempty"`
	Response *Response       `json:"response,omitempty"`
	Open     *Result         `json:"open,omitempty"` // result of an open loop
}

// DownloadResult is what a closed-loop load has measured.
type DownloadResult struct {
	URL         string            `json:"url"`
	Workers     int               `json:"workers"`
	ElapsedMs   float64           `json:"elapsedMs"`
	Done        uint64            `json:"done"`
	Failed      uint64            `json:"failed"`
	Failures    Failures          `json:"failures"`
	FirstErrors map[string]string `json:"firstErrors,omitempty"` // an example for each kind
	// of all bodies, wrong ones up to their first fault
	Bytes            uint64       `json:"bytes"`
	MegabitPerSecond float64      `json:"megabitPerSecond"`
	Latency          Distribution `json:"latency"` // of right answers
	Servers          []Server     `json:"servers"`
}

func (c DownloadConfig) withDefaults() (DownloadConfig, error) {
	c.Workers = cmp.Or(c.Workers, 1)
	c.Timeout = cmp.Or(c.Timeout, time.Minute)
	if c.Workers < 0 || c.Duration < 0 || c.Timeout < 0 {
		return c, fmt.Errorf("loadgen: %d workers, duration %v and timeout %v: none may be "+
			"negative", c.Workers, c.Duration, c.Timeout)
	}
	return c, nil
}

// Download fetches the URL as described and returns what it measured. If ctx
// ends before, the result is that of the fetches so far, and comes together
// with the cause.
func Download(ctx context.Context, c DownloadConfig) (*DownloadResult, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	client, sources, err := newSender(ctx, c.URL, c.Sources)
	if err != nil {
		return nil, err
	}
	d := &download{config: c, client: client, sources: sources, tally: newTally(),
		start: time.Now()}
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Go(func() { d.work(ctx) })
	}
	workers.Wait()
	return d.result(), context.Cause(ctx)
}

// download is a closed loop under way.
type download struct {
	config DownloadConfig
	client *client
	start  time.Time

	mu      sync.Mutex
	sources *sources
	tally   *tally
	bytes   uint64
}

func (d *download) work(ctx context.Context) {
	for ctx.Err() == nil {
		d.fetch(ctx)
		if time.Since(d.start) >= d.config.Duration {
			return
		}
	}
}

func (d *download) fetch(ctx context.Context) {
	d.mu.Lock()
	source := d.sources.take()
	d.mu.Unlock()
	check := comparison{want: d.config.Want, any: d.config.Want == nil}
	begin := time.Now()
	got := d.client.get(ctx, source, d.client.path, begin.Add(d.config.Timeout), &check)
	if got.err == nil {
		got.err = check.end()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes += uint64(check.offset)
	switch {
	case got.err == nil:
		d.tally.succeed(got.server, got.at.Sub(begin))
		d.tell(Fetch{Ms: milliseconds(got.at.Sub(begin))})
	case ctx.Err() == nil: // else it was us who ended it
		d.tell(Fetch{Ms: milliseconds(time.Since(begin)), Failure: d.tally.fail(got.err),
			Error: got.err.Error()})
	}
}

func (d *download) tell(f Fetch) {
	if d.config.Each != nil {
		d.config.Each(f)
	}
}

func (d *download) result() *DownloadResult {
	elapsed := time.Since(d.start)
	return &DownloadResult{
		URL:              d.config.URL,
		Workers:          d.config.Workers,
		ElapsedMs:        milliseconds(elapsed),
		Done:             d.tally.done(),
		Failed:           d.tally.failures.Total(),
		Failures:         d.tally.failures,
		FirstErrors:      d.tally.examples,
		Bytes:            d.bytes,
		MegabitPerSecond: float64(d.bytes) * 8 / 1e6 / elapsed.Seconds(),
		Latency:          d.tally.latency.distribution(),
		Servers:          d.tally.byServer(),
	}
}

// comparison is a writer that compares what it is given with what it wants.
type comparison struct {
	want   []byte
	any    bool
	offset int64
}

// Write fails at the first byte that is not wanted.
func (c *comparison) Write(p []byte) (int, error) {
	if !c.any {
		want := c.want[min(c.offset, int64(len(c.want))):]
		if !bytes.HasPrefix(want, p) {
			return 0, c.difference(want, p)
		}
	}
	c.offset += int64(len(p))
	return len(p), nil
}

func (c *comparison) difference(want, got []byte) error {
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	c.offset += int64(same)
	if same == len(want) {
		return wrongBodyError{c.offset, "goes on"}
	}
	return wrongBodyError{c.offset, "differs"}
}

// end returns an error if something is missing.
func (c *comparison) end() error {
	if !c.any && c.offset < int64(len(c.want)) {
		return wrongBodyError{c.offset, "ends"}
	}
	return nil
}
