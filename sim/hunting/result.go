package hunting

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"sextant/sim/queueing"
	"sextant/sim/workload"
)

// Result is what became of the measured requests.
type Result struct {
	Requests uint64 // measured
	Overflow uint64 // of these, refused because a server's queue was full
	Pages    Times  // of pages
	Static   Times  // of static files
	// of pages, in milliseconds, at the level 0.95, by the method of batch means
	Mean    queueing.Interval
	Batches int               // of Mean; below 2 they do not tell its half width
	Places  [maxPlaces]uint64 // requests that the first, second, ... candidate has taken
}

// maxPlaces is how many candidates a chain has at most.
const maxPlaces = 6

// Times are response times.
type Times struct {
	Count     uint64
	MeanMs    float64
	histogram *hdrhistogram.Histogram // in microseconds
}

// QuantileMs returns the response time that the share of the requests does not exceed, to three
// digits.
func (t Times) QuantileMs(share float64) float64 {
	return float64(t.histogram.ValueAtPercentile(100*share)) / 1000
}

// recorder takes down what happens.
type recorder struct {
	requests, overflows uint64
	times               [2]*hdrhistogram.Histogram // by class
	sums                [2]float64                 // in nanoseconds
	places              [maxPlaces]uint64
	batches             []queueing.Replicate // of pages
	batch               float64              // sum of the last one, in nanoseconds
	size                uint64               // of a batch
	filled              uint64               // of the last one
}

// The method of batch means: between batchesMin and twice as many batches of consecutive pages,
// whose size doubles as the run gets longer.
const (
	batchesMin = 32
	batchFirst = 64
	level      = 0.95
)

func newRecorder() *recorder {
	r := &recorder{size: batchFirst}
	for i := range r.times {
		r.times[i] = hdrhistogram.New(1, never.Microseconds(), 3)
	}
	return r
}

func (r *recorder) overflow(j job) {
	if j.measured {
		r.requests++
		r.overflows++
	}
}

func (r *recorder) accepted(place int, measured bool) {
	if measured {
		r.places[place]++
	}
}

func (r *recorder) done(j job, at time.Duration) {
	if !j.measured {
		return
	}
	r.requests++
	took := at - j.at
	_ = r.times[j.class].RecordValue(took.Microseconds()) // no time is beyond its bounds
	r.sums[j.class] += float64(took)
	if j.class == workload.Page {
		r.intoBatch(float64(took))
	}
}

func (r *recorder) intoBatch(took float64) {
	r.batch += took
	if r.filled++; r.filled < r.size {
		return
	}
	r.batches = append(r.batches, queueing.Replicate{Count: r.size,
		Mean: r.batch / float64(r.size) / float64(time.Millisecond)})
	r.batch, r.filled = 0, 0
	if len(r.batches) < 2*batchesMin {
		return
	}
	for i := range batchesMin {
		a, b := r.batches[2*i], r.batches[2*i+1]
		r.batches[i] = queueing.Replicate{Count: a.Count + b.Count, Mean: (a.Mean + b.Mean) / 2}
	}
	r.batches, r.size = r.batches[:batchesMin], 2*r.size
}

func (r *recorder) result() *Result {
	out := &Result{Requests: r.requests, Overflow: r.overflows, Places: r.places,
		Batches: len(r.batches)}
	out.Pages, out.Static = r.timesOf(workload.Page), r.timesOf(workload.Static)
	out.Mean = queueing.Interval{Mean: out.Pages.MeanMs}
	if interval, err := queueing.MeanInterval(level,
		r.batches); err == nil { // else it was too short to tell
		out.Mean.HalfWidth = interval.HalfWidth
	}
	return out
}

func (r *recorder) timesOf(c workload.Class) Times {
	t := Times{Count: uint64(r.times[c].TotalCount()), histogram: r.times[c]}
	if t.Count > 0 {
		t.MeanMs = r.sums[c] / float64(t.Count) / float64(time.Millisecond)
	}
	return t
}

// Shares returns which part of the requests the first, the second and each further candidate has
// taken; of a Choice that asks nobody, nothing.
func (r *Result) Shares() (shares []float64) {
	var all uint64
	for _, n := range r.Places {
		all += n
	}
	for i, n := range r.Places {
		if n > 0 {
			shares = append(shares, make([]float64, i-len(shares))...)
			shares = append(shares, float64(n)/float64(all))
		}
	}
	return shares
}
