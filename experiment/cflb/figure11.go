package cflb

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/lab"
)

var figure11 = experiment.Experiment{
	Name: "cflb-fig11", Title: "Subflows that it takes to fill two of seven links",
	Source: "Detal et al., figures 11 and 12",
	Shows: "Of seven next hops of a router, one leads to the server by a link of its own (A), " +
		"the other six to a router with one link to the server (B). A and B have 20 Mbit/s (the " +
		"source's have 100). Connections of the kernel's Multipath TCP have 1 to 10 subflows: by " +
		"ports that take A and B in turn, and by random ones. Congestion control is Reno's.",
	Paper: experiment.CFLB, Needs: []string{"root"}, Lasts: "18 min",
	Run: runFigure11,
}

const (
	subflowsMost = 10
	eachGoodput  = 8    // connections of each number of subflows; the paper has 100
	directLink   = "l7" // of the router, to the server itself
)

// watchedGoodput begins behind the slow start. The application reads in order, and the kernel holds
// up to 9 MB of what came in behind a gap, two seconds of both links: in one second it may read
// nothing, or more than the links carry.
var watchedGoodput = watched{after: 2 * time.Second, lasts: 4 * time.Second}

// congestionControl is the sender's. Linux has none that couples subflows, as the paper's has; BBR,
// the default of some machines, sends up to 18 % again where subflows share a queue.
var congestionControl = lab.Sysctl{Name: "net.ipv4.tcp_congestion_control", Value: "reno"}

// twoLinks makes the network of figure 12: the last link leads to the server, at the same cost as
// the others, and the server's other link is the bottleneck of these.
func twoLinks(spec *lab.Spec) {
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; n.Name == "client" {
			n.Sysctls = append(n.Sysctls, congestionControl)
		}
	}
	for i := range spec.Links {
		link := &spec.Links[i]
		for side, end := range link.Ends {
			switch {
			case end.Node == "near" && end.Interface == directLink:
				link.Ends[1-side] = lab.Endpoint{Node: "server", Interface: "near"}
				link.Weights = [2]uint32{2, 2}
			case end.Node == "near" && end.Interface != "client":
				link.RateBits = 0
			case end.Node == "server" && end.Interface == "far":
				link.RateBits = linkBits
			}
		}
	}
}

// measured are connections of a number of subflows.
type measured struct {
	Megabits []float64 // per second
	Open     int       // subflows that the server has had, of all connections
}

// goodputs are what connections reached, in Mbit/s, by the number of subflows, from 1.
type goodputs [subflowsMost][]float64

func runFigure11(ctx context.Context, r *experiment.Recorder) error {
	each := eachGoodput
	if r.Quick() {
		each = 1
	}
	spec, err := parallel("cflb-fig11", twoLinks)
	if err != nil {
		return err
	}
	var chosen, random goodputs
	open, asked := 0, 0
	err = within(ctx, spec, func(a *arena) error {
		direct := slices.Index(a.hops, directLink)
		for n := 1; n <= subflowsMost; n++ {
			for _, kind := range []struct {
				name string
				into *goodputs
				hops func() []int
			}{{"chosen", &chosen, inTurn(n, direct)}, {"random", &random, randomHops(n)}} {
				r.Progress("%d subflows by %s ports", n, kind.name)
				part, err := experiment.Part(r, fmt.Sprintf("%s-%d", kind.name, n),
					func() (m measured, err error) {
						for range each {
							o, err := a.connect(ctx, kind.hops(), watchedGoodput)
							if err != nil {
								return m, err
							}
							m.Megabits = append(m.Megabits, o.Megabits)
							m.Open += o.Subflows
						}
						return m, nil
					})
				if err != nil {
					return err
				}
				kind.into[n-1] = part.Megabits
				open, asked = open+part.Open, asked+n*each
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.Compare(experiment.Comparison{What: "subflows that the server has had, of those asked for",
		Source: "-", Ours: fmt.Sprintf("%d of %d", open, asked),
		Says: "path managers in user space at both ends admit any number"})
	return reportFigure11(r, chosen, random)
}

// inTurn takes the link of its own, and the others' one, in turn.
func inTurn(n, direct int) func() []int {
	return func() (hops []int) {
		for i := range n {
			hop := direct
			if i%2 == 1 {
				hop = (direct + 1 + i/2%(links-1)) % links
			}
			hops = append(hops, hop)
		}
		return hops
	}
}

// bothLinks is the probability that random subflows are on both of the server's links.
func bothLinks(subflows int) float64 {
	n := float64(subflows)
	return 1 - math.Pow(float64(links-1)/links, n) - math.Pow(1./links, n)
}

func reportFigure11(r *experiment.Recorder, chosen, random goodputs) error {
	const rate = linkBits / 1e6
	table := experiment.Table{Name: "fig11", Title: "Mean goodput, Mbit/s of 40",
		Columns: []string{"Subflows", "Chosen ports", "Random ports", "Random, by the law"}}
	series := []chart.Series{{Name: "chosen ports", Marks: true}, {Name: "random ports",
		Marks: true}, {Name: "random, by the law", Dashed: true}}
	for i := range subflowsMost {
		law := rate * (1 + bothLinks(i+1))
		row := []string{fmt.Sprint(i + 1)}
		for s, y := range []float64{mean(chosen[i]), mean(random[i]), law} {
			row = append(row, fmt.Sprintf("%.1f", y))
			series[s].Points = append(series[s].Points, chart.Point{X: float64(i + 1), Y: y})
		}
		table.Rows = append(table.Rows, row)
	}
	r.Table(table)
	two, says := mean(chosen[1])/(2*rate), "both links are full"
	if two < filled {
		says = "the links are not full"
	}
	r.Compare(experiment.Comparison{What: "two subflows by chosen ports, of both links",
		Source: "200 of 200 Mbit/s", Ours: fmt.Sprintf("%.0f of %.0f Mbit/s", mean(chosen[1]),
			2*rate), Says: says})
	r.Compare(experiment.Comparison{What: "most that random ports reach, of both links",
		Source: "less, with any number", Ours: fmt.Sprintf("%.1f of %.0f Mbit/s with %d subflows",
			mean(random[subflowsMost-1]), 2*rate, subflowsMost),
		Says: fmt.Sprintf("both links are used by %.0f %%", 100*bothLinks(subflowsMost))})
	return r.Chart("fig11", chart.Chart{Title: "Goodput over two of seven links",
		X: "subflows", Y: "Mbit/s", Series: series, FromX: 1, ToX: subflowsMost,
		ToY: 2 * rate})
}

// filled is the part of the links' rates that counts as all: of a frame of 1514 octets, MPTCP has
// 1428 for data.
const filled = 0.97 * 1428 / 1514
