package e2e_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sextant/linux"
)

const (
	directPasses = 5
	directLasts  = 4 * time.Second
)

// A way is how requests get to the two pods: the addresses that the two halves of the clients ask.
type way struct {
	name string
	urls [2]string
}

// Requests to two pods on two nodes: direct is by their own addresses, which the network routes,
// one half of the clients each; srv6 by the Service's address over the edges, whose packets the
// pods' agents take by the policy average. Passes of both ways take turns.
func BenchmarkDirect(b *testing.B) {
	w := newWorld(b)
	w.startController()
	w.startNode(1)
	w.startNode(2)
	pods := []*pod{w.newPod(1).web(), w.newPod(2).web()}
	w.slices("web", 8080, ready(pods...))
	w.eventually("the controller serves", time.Minute, w.edgesReady)
	w.service("web", 80, nil)
	w.eventually("the Service has addresses", time.Minute,
		func() bool { return len(w.ingress("web")) == 2 })
	w.eventually("edges offer to both pods", time.Minute, func() bool {
		return isOffered(w.declared("edge1"), "web", pods[:1]) &&
			isOffered(w.declared("edge1"), "web", pods[1:])
	})
	time.Sleep(10 * time.Second) // the second pod is up when edges have waited for others
	vip := w.urls("web")[slices.IndexFunc(w.ingress("web"),
		func(in corev1.LoadBalancerIngress) bool { return strings.Contains(in.IP, ":") })]
	own := func(p *pod) string { return fmt.Sprintf("http://[%s]:8080/", p.v6) }
	ways := []way{{"srv6", [2]string{vip, vip}},
		{"direct", [2]string{own(pods[0]), own(pods[1])}}}
	for _, kind := range []struct {
		name    string
		clients int // of each half
		close   bool
	}{{"connection-each/clients=64", 32, true}, {"connection-each/clients=2", 1, true},
		{"kept/clients=64", 32, false}, {"kept/clients=2", 1, false}} {
		measured := map[string][]asked{}
		for range directPasses {
			for _, way := range ways {
				measured[way.name] = append(measured[way.name],
					w.ask(way, kind.clients, kind.close))
			}
		}
		for _, way := range ways {
			b.Run(kind.name+"/"+way.name, func(b *testing.B) {
				middle := func(of func(asked) float64) float64 {
					var list []float64
					for _, one := range measured[way.name] {
						list = append(list, of(one))
					}
					slices.Sort(list)
					return list[len(list)/2]
				}
				b.ReportMetric(middle(func(a asked) float64 { return a.rate }), "requests/s")
				b.ReportMetric(middle(func(a asked) float64 { return a.p50 }), "µs-p50")
				b.ReportMetric(middle(func(a asked) float64 { return a.p99 }), "µs-p99")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// asked is what a pass measured: requests per second, and quantiles of their times in µs, of which
// the greater of the two halves.
type asked struct{ rate, p50, p99 float64 }

// ask runs a pass.
func (w *world) ask(by way, clients int, close bool) (sum asked) {
	w.t.Helper()
	args := []string{"-t", "1", "-c", strconv.Itoa(clients), "-d",
		fmt.Sprintf("%ds", int(directLasts.Seconds())), "--latency"}
	if close {
		args = append(args, "-H", "Connection: close")
	}
	var halves []*exec.Cmd
	var outs [2]strings.Builder
	for i, url := range by.urls {
		cmd := exec.Command("wrk", append(slices.Clone(args), url)...)
		cmd.Stdout, cmd.Stderr = &outs[i], &outs[i]
		must(w.t, linux.Start(cmd, w.netns("client"), nil))
		halves = append(halves, cmd)
	}
	for i, cmd := range halves {
		err, text := cmd.Wait(), outs[i].String()
		if err != nil || strings.Contains(text, "Socket errors") ||
			strings.Contains(text, "Non-2xx") {
			w.t.Fatalf("wrk %s: %v: %s", by.urls[i], err, text)
		}
		sum.rate += w.number(text, `Requests/sec:\s+([\d.]+)()`)
		sum.p50 = max(sum.p50, w.number(text, `\s50%\s+([\d.]+)(us|ms|s)`))
		sum.p99 = max(sum.p99, w.number(text, `\s99%\s+([\d.]+)(us|ms|s)`))
	}
	return sum
}

// number is one that wrk prints; times in µs.
func (w *world) number(text, pattern string) float64 {
	w.t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		w.t.Fatalf("wrk says no %s: %s", pattern, text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	must(w.t, err)
	return value * map[string]float64{"": 1, "us": 1, "ms": 1e3, "s": 1e6}[found[2]]
}
