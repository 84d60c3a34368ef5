package health

// Status is what the checks of a backend say.
type Status uint8

const (
	// Unknown is the status of a backend that nobody has checked yet, or not often enough to
	// contradict Rules.StartDown.
	Unknown Status = iota
	// Healthy is the status of a backend whose checks succeed.
	Healthy
	// Failing is the status of a backend whose checks fail.
	Failing
)

// String returns the name that the API and people use.
func (s Status) String() string { return [...]string{"unknown", "healthy", "failing"}[s] }

// Rules say how many results change a status.
type Rules struct {
	Rise, Fall int  // successes, and failures, in a row
	StartDown  bool // an unchecked backend counts as failing, not as healthy
}

// State is what is known from the checks so far. The zero State is that of a backend which nobody
// has checked.
type State struct {
	Status Status
	Run    int // results in a row that speak against the status
}

// After returns the state after one more result. The first result that agrees with what an
// unchecked backend counts as confirms it.
func (s State) After(success bool, r Rules) State {
	if success == s.Usable(r) {
		return State{Status: statusOf(success)}
	}
	needed := r.Fall
	if success {
		needed = r.Rise
	}
	if s.Run+1 < needed {
		return State{s.Status, s.Run + 1}
	}
	return State{Status: statusOf(success)}
}

// Usable says whether the backend counts as healthy.
func (s State) Usable(r Rules) bool {
	return s.Status == Healthy || s.Status == Unknown && !r.StartDown
}

func statusOf(success bool) Status {
	if success {
		return Healthy
	}
	return Failing
}
