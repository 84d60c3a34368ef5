package reroute

import (
	"fmt"
	"strings"
	"time"
)

// Policy says how a flow gets another path.
type Policy uint8

// The policies.
const (
	Smoothie Policy = iota // Algorithm 1 of the paper
	// Sextant is Smoothie with weights that are smoothed and expire, a margin that grows with their
	// noise, links that both paths share left out, and links that failed avoided.
	Sextant
	// Clove is what the paper compares with: when a queue is nearly full, by chance, a random path.
	Clove
	// CloveINT is as published (Katta et al., "Clove: congestion-aware load balancing at the
	// virtual edge", 2017): after a pause, the path whose fullest queue is the least full.
	CloveINT
	ECMP    // never
	LetFlow // after a pause, a random path (Vanini et al., "Let it flow", 2017)
	policies
)

var policyNames = [policies]string{"smoothie", "sextant", "clove", "clove-int", "ecmp", "letflow"}

// String returns the name of a policy.
func (p Policy) String() string {
	if p >= policies {
		return fmt.Sprintf("policy %d", uint8(p))
	}
	return policyNames[p]
}

// Policies lists the names of the policies.
func Policies() []string { return policyNames[:] }

// ParsePolicy reads the name of a policy.
func ParsePolicy(text string) (Policy, error) {
	for p, name := range policyNames {
		if name == text {
			return Policy(p), nil
		}
	}
	return 0, fmt.Errorf("%q is no policy; choose one of %s", text,
		strings.Join(Policies(), ", "))
}

// Settings are the parameters of a Decider, by the keys of a controller's file.
type Settings struct {
	Policy  Policy `yaml:"-"`
	Metric  Metric `yaml:"-"`
	Choices int    // random paths that are compared, of Smoothie, Sextant and CloveINT
	// Margin is how much lighter another path must be, of Smoothie and Sextant: the paper's delta.
	Margin float64
	// Ratio and Noise add to the margin of Sextant a part, 0 to 1, of the weight of the current
	// path, and that many standard deviations of the difference.
	Ratio, Noise float64
	// Sampling is the part of packets that carry telemetry, above 0 to 1, and Window the time in
	// which reports of a flow are counted, of Sextant, or longer, so that eight of a full link of
	// the greatest bandwidth come: a flow of which a report came lately has a rate, and moves to
	// where it gets more by the part Faster, 0 or above. 0: rates are not known, and queues decide.
	Sampling, Faster float64
	Window           time.Duration
	// Groups is how often head-ends are told the weights of groups, of policies that spread flows
	// when they begin; 0: never. Flowlet is the pause after which a head-end chooses again for a
	// flow that was given no path since; 0: it does not.
	Groups, Flowlet time.Duration
	// Herd is the occupied part of a queue, 0 to 1, that a flow which moves is taken to bring along
	// and to leave behind, of Sextant: flows that are decided on together do not all take the path
	// that was the lightest. It fades over Settle, in which reports begin to show it.
	Herd   float64
	Settle time.Duration
	// A flow is left alone for a random time between these after it was looked at, or, by Sextant,
	// moved, and a hundred times as long after its second move, and each further one.
	BackoffLeast time.Duration `yaml:"backoffLeast"`
	BackoffMost  time.Duration `yaml:"backoffMost"`

	Gain    float64       // what an observation of a link counts at least, above 0 to 1
	Memory  time.Duration // after which a new observation counts for half; 0: Gain always
	Expiry  time.Duration // after which a link counts as unknown; 0: never
	Unknown float64       // occupied part of the queue of a link that nothing is known of, 0 to 1

	// Threshold is the occupied part of a queue, 0 to 1, beyond which a report asks for another
	// path, of Clove and Sextant; 1: none does.
	Threshold float64
	Chance    float64 // of Clove: with which it does, 0 to 1
	// Sampled lets pauses count alone of which a packet with telemetry tells, of policies other
	// than Sextant: sinks of the paper's programs lose the others.
	Sampled bool

	// Forget is after what time without a report a flow is forgotten; 0: never.
	Forget time.Duration
}

// Defaults returns the parameters of a policy: of Smoothie and Clove those of the paper's artefact.
func Defaults(p Policy) Settings {
	s := Settings{Policy: p, Choices: 2, Gain: 1, Forget: time.Minute}
	switch p {
	case Smoothie:
		s.Margin = 0.001
		s.BackoffLeast, s.BackoffMost = 500*time.Millisecond, time.Second
	case Sextant:
		s.Choices = 4
		s.Margin, s.Ratio, s.Noise = 0.02, 0.6, 1
		s.BackoffLeast, s.BackoffMost = 5*time.Millisecond, 10*time.Millisecond
		s.Herd, s.Settle = 0.02, 20*time.Millisecond
		s.Sampling, s.Faster, s.Window = 0.02, 0.5, 500*time.Microsecond
		s.Gain, s.Memory, s.Expiry = 0.25, 5*time.Millisecond, time.Second
		s.Threshold = 0.2
	case Clove:
		s.Threshold, s.Chance = 50.0/64, 0.25
		s.BackoffLeast, s.BackoffMost = 500*time.Millisecond, time.Second
	case CloveINT:
		// Nothing reports of a path that all flows left because it was full: without an end, what
		// was seen of it then would keep them away.
		s.Choices, s.Expiry = 4, time.Second
	}
	return s
}

// DefaultTau is the sinks' threshold of pauses, tau, to which Sextant's default times belong.
const DefaultTau = 100 * time.Microsecond

// Scaled returns the parameters for another threshold of pauses: Sextant's times are multiples of
// it, as it is of the round-trip time (1 to 5, section V). Those of other policies stay.
func (s Settings) Scaled(tau time.Duration) Settings {
	if s.Policy != Sextant {
		return s
	}
	for _, t := range []*time.Duration{&s.Settle, &s.BackoffLeast, &s.BackoffMost, &s.Memory,
		&s.Expiry, &s.Window} {
		*t = time.Duration(float64(*t) * float64(tau) / float64(DefaultTau))
	}
	return s
}

// spreadFaster is Settings.Faster of Sextant where flows that begin are spread: fewer of them gain
// by a move, and more of the gains that remain are the noise of estimates.
const spreadFaster = 0.8

// Spreading returns the parameters where head-ends spread flows that begin by weights, which they
// learn as often as stated; 0: they do not.
func (s Settings) Spreading(every time.Duration) Settings {
	if s.Groups = every; every > 0 && s.Policy == Sextant {
		s.Faster = spreadFaster
	}
	return s
}

// Check returns what is wrong with the parameters.
func (s Settings) Check() error {
	part := func(name string, x float64) error {
		if x >= 0 && x <= 1 {
			return nil
		}
		return fmt.Errorf("%s %v is no part of a whole; write 0 to 1", name, x)
	}
	switch {
	case s.Policy >= policies:
		return fmt.Errorf("%v is not known; choose one of %s", s.Policy,
			strings.Join(Policies(), ", "))
	case s.Choices < 1 || s.Choices > ChoicesMax:
		return fmt.Errorf("choices %d: write 1 to %d", s.Choices, ChoicesMax)
	case !(s.Margin >= 0) || !(s.Noise >= 0):
		return fmt.Errorf("margin %v and noise %v: neither can be below 0", s.Margin, s.Noise)
	case s.BackoffLeast < 0 || s.BackoffMost < s.BackoffLeast:
		return fmt.Errorf("backoff from %v to %v: write a time from 0 on, and then one that is "+
			"not shorter", s.BackoffLeast, s.BackoffMost)
	case s.Memory < 0 || s.Expiry < 0 || s.Forget < 0:
		return fmt.Errorf("memory %v, expiry %v, forget %v: a time is at least 0; 0 means never",
			s.Memory, s.Expiry, s.Forget)
	case s.Settle < 0 || s.Herd > 0 && s.Settle == 0:
		return fmt.Errorf("settle %v: write a time above 0, or 0 for herd", s.Settle)
	case s.Window < 0 || s.Sampling > 0 && s.Window == 0 || !(s.Faster >= 0):
		return fmt.Errorf("sampling %v, window %v, faster %v: write a time above 0, or 0 for "+
			"sampling, and a part from 0 on", s.Sampling, s.Window, s.Faster)
	case s.Groups < 0 || s.Flowlet < 0 || s.Groups > 0 && !s.Policy.Spreads() ||
		s.Flowlet > 0 && s.Groups == 0:
		return fmt.Errorf("groups %v, flowlet %v: write times from 0 on, groups for policies that "+
			"spread flows when they begin alone (%v, %v, %v), and flowlet with groups", s.Groups,
			s.Flowlet, Sextant, CloveINT, LetFlow)
	case !(s.Gain > 0 && s.Gain <= 1):
		return fmt.Errorf("gain %v: write more than 0, and at most 1", s.Gain)
	}
	for _, err := range []error{part("unknown", s.Unknown), part("threshold", s.Threshold),
		part("chance", s.Chance), part("herd", s.Herd), part("ratio", s.Ratio),
		part("sampling", s.Sampling)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// ChoicesMax bounds Settings.Choices.
const ChoicesMax = 16
