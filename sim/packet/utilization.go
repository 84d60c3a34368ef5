package packet

import "math"

// meter estimates the utilization of a link, as the discounting rate estimator of CONGA does
// (Alizadeh et al., SIGCOMM 2014, section 3.2): work decays with a time constant. Work counts when
// it enters the queue, so that a queue that grows shows as more than 1.
type meter struct {
	work   float64 // ps
	at     Time
	fabric bool // the link joins nodes that forward
}

const defaultMeter = 160 * Microsecond

// prepareMeters begins to measure the utilization of links, for schemes that look at it.
func (s *Simulation) prepareMeters() {
	if s.paths.Meter == 0 {
		s.paths.Meter = defaultMeter
	}
	n := s.network
	s.meters = make([]meter, len(s.links))
	for v, out := range n.out {
		for _, l := range out {
			s.meters[l].fabric = n.relay[v] && n.links[l].relay
		}
	}
}

// utilization of a link is about its rate as a part of what it can carry.
func (s *Simulation) utilization(link int32) float64 {
	m := &s.meters[link]
	return m.work * math.Exp(-float64(s.now-m.at)/float64(s.paths.Meter)) / float64(s.paths.Meter)
}

// meter counts a packet that enters the queue of a link, and writes the utilization of the busiest
// link of its path into it, in the unit of the scheme.
func (s *Simulation) meter(e *packet, link int32, takes Time) {
	m, used := &s.meters[link], s.utilization(link)
	m.work, m.at = used*float64(s.paths.Meter)+float64(takes), s.now
	if !m.fabric {
		return
	}
	switch s.paths.Scheme {
	case CONGA:
		t := unpackTag(e.via)
		t.congestion = max(t.congestion, quantize(used))
		e.via = t.pack()
	case CloveINT:
		if e.kind == data && e.via != none {
			e.via = e.via&^utilizationMask | max(e.via&utilizationMask, coarse(used))
		}
	}
}

// The low bits of packet.via under CloveINT are the utilization, the others the path.
const (
	utilizationBits = 8
	utilizationMask = 1<<utilizationBits - 1
)

// coarse is a utilization in 1/128.
func coarse(utilization float64) int32 { return int32(min(128*utilization, utilizationMask)) }
