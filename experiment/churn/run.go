package churn

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sextant/experiment"
	"sextant/lab/loadgen"
)

// downloads is a load: workers fetch a document again and again while servers leave and return.
type downloads struct {
	bytes    int
	workers  int
	duration time.Duration // no download begins after it
	timeout  time.Duration // for one
	interval time.Duration // between changes; 0: none
	seed     uint64        // of the changes: which servers leave and return
	stops    bool          // what is under way at the end does not count, as with the paper's ab
	progress func(done, failed int, left time.Duration)
}

// outcome is what became of a load. It survives JSON, to be kept.
type outcome struct {
	Policy   string            `json:"policy"`
	Requests int               `json:"requests"`
	Failed   int               `json:"failed"`
	Failures loadgen.Failures  `json:"failures"`
	Losses   []loss            `json:"losses,omitempty"`  // the first failed downloads
	Example  map[string]string `json:"example,omitempty"` // an error of each kind
	Changes  int               `json:"changes"`           // servers that left or returned
	// share of the packets that servers received and sent on
	Redirected float64 `json:"redirected"`
	Resets     uint64  `json:"resets"` // that servers sent
	// connections that servers ended because nothing was heard of the client
	GivenUp uint64    `json:"givenUp"`
	Mbps    float64   `json:"megabitPerSecond"`
	Ms      []float64 `json:"ms,omitempty"` // how long good downloads took
}

// loss is a failed download, and when that was, in seconds since the load began.
type loss struct {
	Second float64 `json:"second"`
	loadgen.Fetch
}

// lossesKept is how many are told in detail: enough to see which belong together.
const lossesKept = 50

// rate is the share of downloads that failed.
func (o outcome) rate() float64 { return float64(o.Failed) / float64(max(1, o.Requests)) }

// download runs the load against a policy's VIP, from all servers up.
func (a *arena) download(ctx context.Context, p policy, d downloads) (outcome, error) {
	m, err := a.members(ctx, p)
	if err != nil {
		return outcome{}, err
	}
	before, err := a.traffic(ctx)
	if err != nil {
		return outcome{}, err
	}
	result, changes, err := a.loadAndFlap(ctx, p, m, d, before)
	if err != nil {
		return outcome{}, err
	}
	if err := m.set(ctx, all(servers)); err != nil {
		return outcome{}, err
	}
	after, err := a.traffic(ctx)
	if err != nil {
		return outcome{}, err
	}
	passed := after.minus(before)
	result.Policy, result.Changes, result.Redirected = p.name, changes, passed.share()
	result.Resets, result.GivenUp = passed.resets, passed.givenUp
	return result, nil
}

// loadAndFlap changes the members at every interval as long as downloads begin. Before: what
// servers had until now, for the first interval begins when they take packets.
func (a *arena) loadAndFlap(ctx context.Context, p policy, m members, d downloads,
	before traffic) (o outcome, changes int, err error) {
	if d.interval == 0 {
		o, err = a.load(ctx, p, d)
		return o, 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	flapping, stop := context.WithCancel(ctx)
	defer stop()
	loading, loaded := context.WithCancel(ctx)
	defer loaded()
	var failure error
	var wait sync.WaitGroup
	wait.Go(func() {
		if failure = a.takes(loading, before); failure == nil {
			changes, failure = flap(flapping, m, d)
		}
		if failure != nil {
			cancel(failure)
		}
	})
	if o, err = a.load(ctx, p, d); err != nil {
		stop()
	}
	loaded()
	wait.Wait()
	if failure != nil {
		return o, changes, fmt.Errorf("change the servers of policy %s: %w", p.name, failure)
	}
	return o, changes, err
}

// takes waits until servers take packets, or ctx ends.
func (a *arena) takes(ctx context.Context, before traffic) error {
	for {
		now, err := a.traffic(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil || now.taken > before.taken:
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (a *arena) load(ctx context.Context, p policy, d downloads) (o outcome, err error) {
	var done, failed atomic.Int64
	watched := d.watch(&done, &failed)
	begun := time.Now()
	loading, cancel := ctx, func() {}
	if d.stops {
		loading, cancel = context.WithTimeout(ctx, d.duration)
	}
	defer cancel()
	err = a.fetches(loading, p, d, func(f loadgen.Fetch) {
		if o.take(f, time.Since(begun)); f.Failure == "" {
			done.Add(1)
		} else {
			failed.Add(1)
		}
	})
	watched()
	if err != nil && (ctx.Err() != nil || loading.Err() == nil) {
		return outcome{}, err
	}
	o.Mbps = float64(len(o.Ms)*d.bytes) * 8 / 1e6 / time.Since(begun).Seconds()
	return o, nil
}

// take counts a download.
func (o *outcome) take(f loadgen.Fetch, at time.Duration) {
	o.Requests++
	if f.Failure == "" {
		o.Ms = append(o.Ms, f.Ms)
		return
	}
	o.Failed++
	o.Failures.Add(f.Failure)
	if len(o.Losses) < lossesKept {
		o.Losses = append(o.Losses, loss{at.Seconds(), f})
	}
	if o.Example[f.Failure] == "" {
		if o.Example == nil {
			o.Example = map[string]string{}
		}
		o.Example[f.Failure] = f.Error
	}
}

// fetches runs the generator on the client node.
func (a *arena) fetches(ctx context.Context, p policy, d downloads,
	each func(loadgen.Fetch)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://[%s]/?ms=0&bytes=%d", p.vip, d.bytes)
	cmd := exec.CommandContext(ctx, self, "loadgen", url, "--each",
		"--workers", strconv.Itoa(d.workers), "--duration", d.duration.String(), "--deadline",
		d.timeout.String(),
		"--sources", clientRange)
	err = experiment.ReadLoad(a.Lab, "client", cmd,
		func(r io.Reader) error { return fetched(r, each) })
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	return nil
}

// fetched reads what the generator writes, until its result, which says that this was all.
func fetched(r io.Reader, each func(loadgen.Fetch)) error {
	for lines := json.NewDecoder(r); ; {
		var line loadgen.Line
		if err := lines.Decode(&line); err != nil {
			return fmt.Errorf("read what the downloads tell: %w", err)
		}
		switch {
		case line.Result != nil:
			return nil
		case line.Fetch != nil:
			each(*line.Fetch)
		}
	}
}

// watchInterval is the interval between reports of the progress of a load.
const watchInterval = 250 * time.Millisecond

func (d downloads) watch(done, failed *atomic.Int64) (stop func()) {
	if d.progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	begun := time.Now()
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			d.progress(int(done.Load()), int(failed.Load()), max(0, d.duration-time.Since(begun)))
			select {
			case <-ctx.Done():
			case <-time.After(watchInterval):
			}
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}
