package hunting_test

import (
	"math"
	"testing"
	"time"

	"sextant/sim/hunting"
	"sextant/sim/queueing"
)

// onPaths is a pool loaded to rho whose requests cross paths.
func onPaths(rho float64, n hunting.Network) hunting.Config {
	c := config(alike(8, 2), rho, 200_000)
	n.News, n.FullQueue = 100*time.Millisecond, 20
	c.Network = &n
	return c
}

// A path is a queue of its own before the servers': with random choice and Poisson arrivals means
// add up (Jackson), and other traffic and other work make them as long as theory says.
func TestPathsAreQueues(t *testing.T) {
	const rho, transfer = 0.5, time.Millisecond
	rate := rho * 16 / service.Seconds() // of requests
	for _, free := range []float64{1, 0.7} {
		c := onPaths(rho, hunting.Network{Transfer: transfer,
			Paths: [][]hunting.Path{{{Free: free}, {Free: free}}, {{Free: free}, {Free: free}}}})
		onPath := transfer.Seconds() / free / (1 - rate/4*transfer.Seconds()/free)
		atServer, err := queueing.MeanResponse(2, rho, service)
		if err != nil {
			t.Fatal(err)
		}
		want := 1000 * (onPath + atServer.Seconds())
		if r := run(t, c); math.Abs(r.Pages.MeanMs-want) > 0.03*want {
			t.Errorf("paths %g free: mean %.3f ms, want %.3f", free, r.Pages.MeanMs, want)
		}
	}
	busy := hunting.Network{Paths: [][]hunting.Path{{{Free: 1}}}}
	for i := range 8 {
		busy.Others = append(busy.Others, hunting.Others{Server: i, Rate: 0.3 * 200, Mean: service})
	}
	want, err := queueing.MeanResponse(2, rho+0.3, service)
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, onPaths(rho, busy)); math.Abs(r.Pages.MeanMs-1000*want.Seconds()) >
		0.04*1000*want.Seconds() {
		t.Errorf("with other work: mean %.3f ms, want %.3f", r.Pages.MeanMs, 1000*want.Seconds())
	}
}

// The edge leaves paths that others fill, and asks servers first whose paths and hosts are free.
func TestNetworkNewsCount(t *testing.T) {
	full, free := hunting.Path{Free: 0.05}, hunting.Path{Free: 1}
	n := hunting.Network{Transfer: time.Millisecond, Paths: [][]hunting.Path{{full, free}}}
	c := onPaths(0.3, n)
	random := run(t, c)
	n.Steers = true
	if steered := run(t, onPaths(0.3, n)); steered.Pages.MeanMs > random.Pages.MeanMs/5 {
		t.Errorf("on the free path %.1f ms, on a random one %.1f", steered.Pages.MeanMs,
			random.Pages.MeanMs)
	}
	n = hunting.Network{Transfer: time.Millisecond, Paths: [][]hunting.Path{{full}, {free}}}
	c = onPaths(0.3, n)
	c.Scheme = hunting.Scheme{Candidates: 2} // the first accepts
	random = run(t, c)
	c = onPaths(0.3, n)
	c.Scheme, c.Network.OrdersByPath = hunting.Scheme{Candidates: 2}, true
	if ordered := run(t, c); ordered.Pages.MeanMs > random.Pages.MeanMs/2 {
		t.Errorf("in order %.1f ms, in the table's %.1f", ordered.Pages.MeanMs,
			random.Pages.MeanMs)
	}
}
