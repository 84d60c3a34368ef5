package linkemu

import (
	"time"

	"sextant/lab/netem"
)

// LinkStatus is what a link does and has done.
type LinkStatus struct {
	Directions [2]DirectionStatus `json:"directions"`
}

// DirectionStatus is what happens to packets from one end of a link.
type DirectionStatus struct {
	From     string         `json:"from"` // the end, like "edge1:eth0"
	To       string         `json:"to"`
	Profile  netem.Profile  `json:"profile"`
	Counters netem.Counters `json:"counters"`
	UnderWay int            `json:"underWay"` // packets that have come and not yet arrived
	// Faults of the emulation: packets for which it had no memory, that were longer than the MTU,
	// that the kernel did not take.
	Overruns uint64 `json:"overruns"`
	TooLong  uint64 `json:"tooLong"`
	Unsent   uint64 `json:"unsent"`
	// How much later than decided packets left, ns.
	LateMedian time.Duration `json:"lateMedian"`
	LateP99    time.Duration `json:"lateP99"`
	LateMost   time.Duration `json:"lateMost"`
}

// status tells of all links.
func (p *pump) status(links []Link) []LinkStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]LinkStatus, len(links))
	for i, link := range links {
		for side := range link.Ends {
			d := p.directions[2*i+side]
			d.overruns += overruns(d.in)
			all[i].Directions[side] = DirectionStatus{
				From: link.Ends[side], To: link.Ends[1-side], Profile: d.stream.Profile(),
				Counters: d.stream.Counters(),
				UnderWay: d.waiting, Overruns: d.overruns, TooLong: d.tooLong, Unsent: d.unsent,
				LateMedian: time.Duration(d.late.ValueAtQuantile(50)),
				LateP99:    time.Duration(d.late.ValueAtQuantile(99)),
				LateMost:   time.Duration(d.late.Max()),
			}
		}
	}
	return all
}

// set changes a direction.
func (p *pump) set(link, side int, profile netem.Profile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.directions[2*link+side].stream.Set(profile)
}
