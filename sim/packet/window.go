package packet

import "math"

// Control is a congestion control.
type Control uint8

// The congestion controls.
const (
	Reno  Control = iota // RFC 5681 and 6582
	Cubic                // RFC 9438
	DCTCP                // RFC 8257
	LIA                  // RFC 6356, coupled over the subflows of a connection
	OLIA                 // Khalili et al., "MPTCP Is Not Pareto-Optimal", CoNEXT 2012
)

// window is the congestion window of a subflow, in segments.
type window struct {
	control   Control
	reducing  bool // it was reduced for marks in this window of data
	lossless  bool // of CUBIC: no loss has shown yet how large it may be
	cwnd      float64
	ssthresh  float64
	reducedTo uint32 // marks on segments below are of the window that was reduced already

	// CUBIC.
	wMax, k, estimate float64
	epoch             Time

	hystart hystart // of CUBIC

	// DCTCP.
	alpha          float64
	acked, ackedCE uint32
	windowEnd      uint32

	// OLIA: segments between the last two losses, and since the last.
	between, since float64
}

func (w *window) reset(t *Transport) {
	*w = window{control: t.Control, cwnd: float64(t.InitialWindow), ssthresh: math.Inf(1), alpha: 1,
		lossless: t.Linux}
	if t.InitialSSThresh > 0 {
		w.ssthresh = float64(t.InitialSSThresh)
	}
}

// allowed is how many segments may be under way.
func (w *window) allowed() int32 { return int32(w.cwnd) }

func (w *window) slowStart() bool { return w.cwnd < w.ssthresh }

const minWindow = 2

// loss reduces the window because segments were lost.
func (w *window) loss(s *Simulation, f *subflow) {
	w.between, w.since = w.since, 0
	switch w.control {
	case Cubic:
		w.cubicReduce()
	default:
		w.ssthresh = max(w.cwnd/2, minWindow)
	}
	w.cwnd = w.ssthresh
	s.uncouple(f)
}

// timeout begins again with one segment.
func (w *window) timeout(s *Simulation, f *subflow) {
	if w.cwnd > 1 { // not again for the same segment
		w.between, w.since = w.since, 0
		if w.control == Cubic {
			w.cubicReduce()
		} else {
			w.ssthresh = max(w.cwnd/2, minWindow)
		}
	}
	w.cwnd = 1
	s.uncouple(f)
	w.epoch, w.hystart = 0, hystart{}
	if s.transport.Linux {
		w.wMax, w.lossless = 0, true
	}
}

// undo restores what a window was before it was reduced.
func (w *window) undo(before *window) {
	w.cwnd, w.ssthresh = max(w.cwnd, before.cwnd), max(w.ssthresh, before.ssthresh)
	w.wMax, w.k, w.estimate, w.epoch = before.wMax, before.k, before.estimate, before.epoch
	w.between, w.since = before.between, before.since
}

// marks takes ECN marks into account. It reports whether the window was reduced.
func (w *window) marks(s *Simulation, f *subflow, e *packet, newly uint32) bool {
	if !s.transport.ECN {
		return false
	}
	ce := e.flags&echo != 0
	if w.control == DCTCP {
		w.acked += newly
		if ce {
			w.ackedCE += newly
		}
		if int32(f.una-w.windowEnd) >= 0 {
			if w.acked > 0 {
				const gain = 1.0 / 16
				w.alpha += gain * (float64(w.ackedCE)/float64(w.acked) - w.alpha)
			}
			w.acked, w.ackedCE, w.windowEnd = 0, 0, f.nxt
		}
	}
	// The acknowledgement of exactly that window speaks of a segment sent before the reduction;
	// Linux waits for one beyond it, too.
	if !ce || f.recovery || w.reducing && int32(f.una-w.reducedTo) <= 0 {
		return false
	}
	w.reducing, w.reducedTo = true, f.nxt
	switch w.control {
	case DCTCP:
		w.ssthresh = max(w.cwnd*(1-w.alpha/2), minWindow)
	case Cubic:
		w.cubicReduce()
	default:
		w.ssthresh = max(w.cwnd/2, minWindow)
	}
	w.cwnd = w.ssthresh
	s.uncouple(f)
	return true
}

// grow lets the window grow for segments that arrived.
func (w *window) grow(s *Simulation, f *subflow, newly uint32) {
	n := float64(newly)
	w.since += n
	if w.slowStart() {
		if w.control == Cubic {
			w.leaveSlowStart(s, f)
		}
		step := min(n, w.ssthresh-w.cwnd)
		w.cwnd += step
		s.uncouple(f)
		if n -= step; n <= 0 {
			return
		}
	}
	switch w.control {
	case Cubic:
		w.cubicGrow(s, f, n)
	case LIA:
		s.growLIA(f, n)
	case OLIA:
		w.cwnd = max(w.cwnd+n*s.increaseOLIA(f), 1)
	default:
		w.cwnd += n / w.cwnd
	}
}

// The constants of CUBIC (RFC 9438, section 4.1).
const (
	cubicC    = 0.4
	cubicBeta = 0.7
)

// cubicLossless is by how much of what arrives the window of Linux grows at least as long as it met
// no loss: by 5 % in a round trip.
const cubicLossless = 1.0 / 20

func (w *window) cubicReduce() {
	w.lossless = false
	if w.cwnd < w.wMax {
		w.wMax = w.cwnd * (1 + cubicBeta) / 2 // fast convergence
	} else {
		w.wMax = w.cwnd
	}
	w.ssthresh = max(w.cwnd*cubicBeta, minWindow)
	w.epoch = 0
}

func (w *window) cubicGrow(s *Simulation, f *subflow, n float64) {
	if w.epoch == 0 {
		w.epoch = s.now
		w.estimate = w.cwnd
		w.k = 0
		if w.wMax > w.cwnd {
			w.k = math.Cbrt((w.wMax - w.cwnd) / cubicC)
		} else {
			w.wMax = w.cwnd
		}
	}
	rtt := f.srtt.Seconds()
	t := (s.now - w.epoch).Seconds()
	target := cubicC*math.Pow(t+rtt-w.k, 3) + w.wMax
	target = min(max(target, w.cwnd), 1.5*w.cwnd)
	const friendly = 3 * (1 - cubicBeta) / (1 + cubicBeta)
	slope := friendly
	if w.estimate >= w.wMax {
		slope = 1
	}
	w.estimate += slope * n / w.cwnd
	if cubicC*math.Pow(t-w.k, 3)+w.wMax < w.estimate && !w.lossless {
		w.cwnd = max(w.cwnd, w.estimate)
		return
	}
	share := (target - w.cwnd) / w.cwnd
	if w.lossless {
		share = max(share, cubicLossless)
	}
	w.cwnd += n * share
}
