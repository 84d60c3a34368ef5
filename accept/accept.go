// Package accept decides whether a server takes a connection that it may still refuse.
//
// With service hunting (Desmouceaux et al., "SRLB: The Power of Choices in Load Balancing with Segment Routing", 2017) a SYN
// visits its candidate servers in turn. Each but the last asks its policy; the last must accept. The policies here are the
// paper's Algorithms 1 and 2 over integers, because the eBPF program that runs the same function has no floating point.
package accept

import "fmt"

// Kind names a policy.
type Kind uint8

const (
	// Always accepts every connection: the first candidate gets all, as without hunting.
	Always Kind = iota
	// Static accepts while fewer than a fixed number of connections are busy (SR_c, Algorithm 1).
	Static
	// Dynamic adapts that number so that about half of the offers are accepted (SR_dyn, Algorithm 2).
	Dynamic
)

var kindNames = [...]string{Always: "always", Static: "static", Dynamic: "dynamic"}

// String returns the name that configuration files use.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// ParseKind reads "always", "static" or "dynamic".
func ParseKind(text string) (Kind, error) {
	for k, name := range kindNames {
		if text == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown acceptance policy %q; use always, static or dynamic", text)
}

// Policy is a policy with its parameters. Fields that its Kind does not mention are ignored.
type Policy struct {
	Kind Kind
	// Threshold is c of the paper. Static: connections below which a new one is accepted; 0 refuses all. Dynamic: the value
	// to start from.
	Threshold uint32
	// Window is after how many offers Dynamic looks back; the paper uses 50. 0 never adapts.
	Window uint32
	// Workers is n of the paper, the upper bound of Dynamic's threshold.
	Workers uint32
	// LowPermille and HighPermille bound the share of accepted offers, in thousandths, that Dynamic leaves alone; the paper
	// uses 400 and 600.
	LowPermille, HighPermille uint32
}

// State is what Dynamic remembers between offers. The other policies leave it as it is.
type State struct {
	Threshold uint32 // current c
	Attempts  uint32 // offers seen in this window
	Accepted  uint32 // of these, accepted
}

// Initial returns the state before the first offer.
func (p Policy) Initial() State {
	return State{Threshold: p.Threshold}
}

// Decide answers one offer while busy connections are being served, and returns the state for the next one.
func (p Policy) Decide(s State, busy uint32) (accept bool, next State) {
	switch p.Kind {
	case Static:
		return busy < p.Threshold, s
	case Dynamic:
		return p.decideDynamic(s, busy)
	default:
		return true, s
	}
}

// decideDynamic is Algorithm 2. The paper's listing closes its "if" before the two resets; its comment and its text ("over a
// fixed window") say that they belong inside. The offer that ends a window is decided with the new threshold, and its
// acceptance counts in the next window.
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

// adapt returns the threshold for the next window. The comparisons are in thousandths of the window, in 64 bits.
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
