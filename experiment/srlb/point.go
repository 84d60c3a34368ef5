package srlb

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"sextant/lab/loadgen"
	"sextant/packet/lists"
	"sextant/sim/queueing"
	"sextant/sim/workload"
)

// point is what one policy made of one load.
type point struct {
	Policy    string
	Load      float64
	Case      string // of the simulator: which servers
	Requests  uint64
	Failed    uint64
	MeanMs    float64
	HalfWidth float64   // of the confidence interval of the mean, at 0.95
	Quantiles []float64 // of the response time in ms, at i/quantileSteps from 1 on
	Ages      instants
	LateMs    float64 // mean lateness of the generator
	// Took are the places of the servers that took the requests, those of the warm-up first; in the
	// lab.
	Took []uint8
}

// quantileSteps is how finely a distribution is kept.
const quantileSteps = 200

// quantile returns a response time that a share of the requests does not exceed.
func (p point) quantile(share float64) float64 {
	return p.Quantiles[max(1, min(int(share*quantileSteps), quantileSteps))-1]
}

// instants are the loads of the servers over time.
type instants struct {
	Seconds []float64
	Mean    []float64 // connections of a server, in the mean over servers, smoothed as in the paper
	Jain    []float64 // fairness index, smoothed likewise
}

// instantStep is how often the load is looked at. The paper does not say.
const instantStep = 20 * time.Millisecond

// add looks at the servers' connections. The paper smooths with alpha = 1 - exp(-dt), dt in seconds
// (footnote 2): a time constant of a second, in which its servers end ten requests per core; with a
// tenth of the CPU time, that is a tenth of a second here.
func (i *instants) add(seconds float64, connections []float64) {
	const timeConstant = 0.1
	sum, squares := 0.0, 0.0
	for _, x := range connections {
		sum += x
		squares += x * x
	}
	jain := 1.0 // of servers that are all idle
	if squares > 0 {
		jain = sum * sum / (float64(len(connections)) * squares)
	}
	mean := sum / float64(len(connections))
	if n := len(i.Mean); n > 0 {
		alpha := 1 - math.Exp(-(seconds-i.Seconds[n-1])/timeConstant)
		mean = i.Mean[n-1] + alpha*(mean-i.Mean[n-1])
		jain = i.Jain[n-1] + alpha*(jain-i.Jain[n-1])
	}
	i.Seconds, i.Mean, i.Jain = append(i.Seconds, seconds), append(i.Mean, mean),
		append(i.Jain, jain)
}

// measured makes a point of responses.
func measured(name string, load float64, result *loadgen.Result,
	responses []loadgen.Response) point {
	p := point{Policy: name, Load: load, Requests: result.Sent, Failed: result.Failed,
		MeanMs: result.Latency.MeanMs,
		LateMs: result.Lateness.MeanMs}
	right := slices.DeleteFunc(slices.Clone(responses),
		func(r loadgen.Response) bool { return r.Failure != "" })
	slices.SortFunc(right, func(a, b loadgen.Response) int { return cmp.Compare(a.AtMs, b.AtMs) })
	p.HalfWidth = halfWidth(right)
	if name == rr.name {
		p.HalfWidth = widthByServer(right)
	}
	times := lists.Map(right, func(r loadgen.Response) float64 { return r.Ms })
	p.Quantiles = quantiles(times)
	return p
}

// batches is of the method of batch means.
const batches = 32

// halfWidth is that of the mean's confidence interval at 0.95, by the means of batches of
// consecutive requests.
func halfWidth(sorted []loadgen.Response) float64 {
	size := len(sorted) / batches
	if size == 0 {
		return 0
	}
	replicates := make([]queueing.Replicate, batches)
	for i := range replicates {
		for _, r := range sorted[i*size : (i+1)*size] {
			replicates[i].Mean += r.Ms / float64(size)
		}
		replicates[i].Count = uint64(size)
	}
	interval, err := queueing.MeanInterval(0.95, replicates)
	if err != nil {
		return 0
	}
	return interval.HalfWidth
}

// widthByServer is the same by the means of servers, which are independent of each other under
// random choice alone. Batches are not when queues take long to drain.
func widthByServer(responses []loadgen.Response) float64 {
	byServer := map[string]queueing.Replicate{}
	for _, r := range responses {
		s := byServer[r.Server]
		s.Mean = (s.Mean*float64(s.Count) + r.Ms) / float64(s.Count+1)
		s.Count++
		byServer[r.Server] = s
	}
	interval, err := queueing.MeanInterval(0.95, slices.Collect(maps.Values(byServer)))
	if err != nil {
		return 0
	}
	return interval.HalfWidth
}

// quantiles are those of times that need not be sorted.
func quantiles(times []float64) []float64 {
	slices.Sort(times)
	out := make([]float64, quantileSteps)
	for i := range out {
		if len(times) > 0 {
			out[i] = times[max(1, (i+1)*len(times)/quantileSteps)-1]
		}
	}
	return out
}

// loadsOf reconstructs how many connections each server had, from when its requests were sent and
// answered.
func loadsOf(responses []loadgen.Response) (i instants) {
	type event struct {
		atMs   float64
		server string
		change float64
	}
	var events []event
	index := map[string]int{}
	for _, r := range responses {
		if r.Server == "" {
			continue
		}
		if _, known := index[r.Server]; !known {
			index[r.Server] = len(index)
		}
		events = append(events, event{r.AtMs, r.Server, 1}, event{r.AtMs + r.Ms, r.Server, -1})
	}
	if len(events) == 0 {
		return i
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.atMs, b.atMs) })
	connections := make([]float64, len(index))
	step := float64(instantStep) / float64(time.Millisecond)
	first := events[0].atMs
	next := first
	for _, e := range events {
		for ; next < e.atMs; next += step {
			i.add((next-first)/1000, connections)
		}
		connections[index[e.server]] += e.change
	}
	return i
}

// ofClass are the responses of a class.
func ofClass(responses []loadgen.Response, c workload.Class) []loadgen.Response {
	return slices.DeleteFunc(slices.Clone(responses),
		func(r loadgen.Response) bool { return r.Class != c })
}
