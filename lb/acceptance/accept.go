package acceptance

import (
	"fmt"
	"math"
	"time"
)

// Kind names a policy.
type Kind uint8

const (
	// Always accepts every connection: the first candidate gets all, as without hunting.
	Always Kind = iota
	// Static accepts while fewer than a fixed number of connections are busy (SR_c, Algorithm 1).
	Static
	// Dynamic adapts that number so that about half of the offers are accepted (SR_dyn, Algorithm
	// 2).
	Dynamic
	// Average accepts unless the server is busier than the servers are in the mean, as far as it
	// has learnt.
	Average
	// Delay accepts unless a connection would take longer here than elsewhere, as far as the server
	// has learnt: it knows how fast it is.
	Delay
)

var kindNames = [...]string{Always: "always", Static: "static", Dynamic: "dynamic",
	Average: "average", Delay: "delay"}

// String returns the name that configuration files use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// ParseKind reads the name of a policy.
func ParseKind(text string) (Kind, error) {
	for k, name := range kindNames {
		if text == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown acceptance policy %q; use always, static, dynamic, average "+
		"or delay", text)
}

// Policy is a policy with its parameters. Fields that its Kind does not mention are ignored.
type Policy struct {
	Kind Kind
	// Threshold is c of the paper. Static: connections below which a new one is accepted; 0 refuses
	// all. Dynamic: the value to start from.
	Threshold uint32
	// Window is after how many offers Dynamic looks back; the paper uses 50. 0 never adapts.
	Window uint32
	// Workers is n of the paper, the upper bound of Dynamic's threshold.
	Workers uint32
	// LowPermille and HighPermille bound the share of accepted offers, in thousandths, that Dynamic
	// leaves alone; the paper uses 400 and 600.
	LowPermille, HighPermille uint32
	// Cores is what Average and Delay divide the busy connections by, so that servers of different
	// sizes can compare themselves; 0 is 1.
	Cores uint32
	// Reported says that Offer.Busy is what a load source reports of the server, and not the number
	// of its connections. No policy asks; the host has to know where to look.
	Reported bool
	// Queue says that what is reported is the listener's accept queue, which the data plane reads
	// itself.
	Queue bool
}

// State is what Dynamic, Average and Delay remember between offers. The other policies leave it as
// it is.
type State struct {
	Threshold uint32 // Dynamic: current c
	Attempts  uint32 // Dynamic: offers seen in this window; Delay: offers refused
	Accepted  uint32 // Dynamic: of these, accepted
	// Average, Delay: the load that a connection meets with 0, 1, 2, ... candidates left; 0: not
	// known yet
	Levels [MaxLevels]Level
	Usual  Level // Delay: how long a core works on a connection, in the mean of all servers
	Pace   Pace  // Delay: of this server
}

// Offer is a new connection that a server is offered.
type Offer struct {
	Busy uint32        // connections that the server has
	Left uint32        // candidates after this one; 0: it must accept
	Told Note          // what the candidate before has said
	Now  time.Duration // since any beginning; for Delay
}

// Answer is what a server does with an offer.
type Answer struct {
	Accept bool
	Tell   Note // what the next candidate is told, if the server does not accept
}

// Initial returns the state before the first offer.
func (p Policy) Initial() State {
	return State{Threshold: p.Threshold}
}

// ThresholdIn returns how many busy connections are too many for an offer that one more candidate
// could take; 0 also of Always, which has no such number.
func (p Policy) ThresholdIn(s State) uint32 {
	switch p.Kind {
	case Static:
		return p.Threshold
	case Dynamic:
		return s.Threshold
	case Average:
		return p.averageThreshold(s.Levels[0])
	case Delay:
		return p.delayThreshold(s)
	default:
		return 0
	}
}

// Full is what a server reports as Offer.Busy if it wants no new connections, whatever its policy.
const Full = math.MaxInt32

// Decide answers one offer, and returns the state for the next one.
func (p Policy) Decide(s State, o Offer) (Answer, State) {
	if p.Reported && o.Busy == Full {
		return Answer{Accept: o.Left == 0}, s
	}
	switch p.Kind {
	case Average:
		return p.decideAverage(s, o)
	case Delay:
		return p.decideDelay(s, o)
	}
	if o.Left == 0 {
		return Answer{Accept: true}, s
	}
	switch p.Kind {
	case Static:
		return Answer{Accept: o.Busy < p.Threshold}, s
	case Dynamic:
		accept, next := p.decideDynamic(s, o.Busy)
		return Answer{Accept: accept}, next
	default:
		return Answer{Accept: true}, s
	}
}

// decideDynamic is Algorithm 2. The paper's listing closes its "if" before the two resets; its
// comment and its text ("over a fixed window") say that they belong inside. The offer that ends a
// window is decided with the new threshold, and its acceptance counts in the next window.
func (p Policy) decideDynamic(s State, busy uint32) (bool, State) {
	s.Attempts++
	if s.Attempts == p.Window {
		s = State{Threshold: p.adapt(s)}
	}
	if busy >= s.Threshold {
		return false, s
	}
	s.Accepted++
	return true, s
}

// adapt returns the threshold for the next window. The comparisons are in thousandths of the
// window, in 64 bits.
func (p Policy) adapt(s State) uint32 {
	accepted, window := uint64(s.Accepted)*1000, uint64(p.Window)
	switch {
	case accepted < window*uint64(p.LowPermille) && s.Threshold < p.Workers:
		return s.Threshold + 1
	case accepted > window*uint64(p.HighPermille) && s.Threshold > 0:
		return s.Threshold - 1
	default:
		return s.Threshold
	}
}
