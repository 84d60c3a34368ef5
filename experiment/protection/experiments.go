package protection

import (
	"fmt"
	"strconv"
	"time"

	"sextant/experiment"
)

// source is what all experiments repeat.
const source = "F. Aubry, D. Lebrun, Y. Deville, O. Bonaventure, Traffic duplication through " +
	"segmentable disjoint paths"

// All lists the experiments.
func All() []experiment.Experiment {
	return []experiment.Experiment{figure4, tables1And2, figure5, telemetry, cut}
}

// paperRequests are made in each setting.
const paperRequests = 1000

// algorithms of TCP: what the paper's Linux 3.14 had, and one that does not take loss for
// congestion.
var algorithms = []string{"cubic", "bbr"}

// both is a setting with both paths alike in loss, and the second one slower.
func both(m mode, algorithm string, base, delta time.Duration, loss float64) setting {
	return setting{Mode: m, Congestion: algorithm, Delay: [2]time.Duration{base, base + delta},
		Loss: [2]float64{loss, loss}}
}

func setUpNote(r *experiment.Recorder) {
	r.Note("Delay, loss and rate are those of the lab's user-space wire "+
		"(docs/tutorial/lab.md): 100 "+
		"Mbit/s, a queue of 1,000 packets, the delay "+
		"and the loss in each direction. A document has %d bytes; each request opens a "+
		"connection, and its time counts from before that "+
		"until the last byte. The server is Debian's lighttpd. Both routers send over both "+
		"paths, so acknowledgements are duplicated too.",
		documentBytes)
	r.Note("Up to %d labs ran side by side; the losses of a setting's chunk of %d requests are "+
		"the same in all settings.",
		lanesPerWorker*r.Workers(), chunkRequests)
}

// milliseconds writes a time.
func milliseconds(ms float64) string { return strconv.FormatFloat(ms, 'f', 2, 64) }

// shortName is a setting's part of a file's name.
func shortName(s setting) string {
	return fmt.Sprintf("%s-%s-%d-%d-%g", s.Mode, s.Congestion, s.Delay[0].Milliseconds(),
		s.Delay[1].Milliseconds(), 100*s.Loss[0])
}

// statisticsColumns are those of row.
var statisticsColumns = []string{
	"Requests", "Failed", "Min, ms", "Mean, ms", "Std dev, ms", "Median, ms", "90 %, ms",
	"99 %, ms", "Max, ms",
	"Duplicates seen by TCP", "Retransmissions", "Timeouts",
}

// row is a measurement behind what tells it.
func row(r requests, before ...string) []string {
	s := statisticsOf(r.Ms)
	cells := append(before, strconv.Itoa(len(r.Ms)+r.Failed), strconv.Itoa(r.Failed))
	for _, ms := range []float64{s.least, s.mean, s.deviation, s.median, s.p90, s.p99, s.most} {
		cells = append(cells, milliseconds(ms))
	}
	for _, n := range []uint64{r.TCP.Duplicates, r.TCP.Retransmissions, r.TCP.Timeouts} {
		cells = append(cells, strconv.FormatUint(n, 10))
	}
	return cells
}

// compareDuplicates says what elimination leaves for TCP to see.
func compareDuplicates(r *experiment.Recorder, cells []cell, outcomes []requests) {
	sums := map[mode]counters{}
	for i, c := range cells {
		sums[c.setting.Mode] = sums[c.setting.Mode].plus(outcomes[i].TCP)
	}
	for _, m := range []mode{duplicated, eliminated} {
		says := "each packet that comes twice is one"
		if m == eliminated {
			says = "none of them a copy: a segment comes twice only if the server has sent it twice"
			if sums[m].Duplicates > sums[m].Retransmissions {
				says = "copies came through, and none should"
			}
		}
		r.Compare(experiment.Comparison{
			What: string(m) + ": segments that the client's TCP had already", Source: "-",
			Ours: fmt.Sprintf("%d, with %d retransmissions", sums[m].Duplicates,
				sums[m].Retransmissions), Says: says,
		})
	}
}
