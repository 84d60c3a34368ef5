package model

// Verdict says where a processed frame goes. The zero value is Pass.
type Verdict uint8

// The verdicts.
const (
	// Pass gives the frame to the kernel as it came.
	Pass Verdict = iota
	// Transmit sends the rewritten frame out of the interface it came in by.
	Transmit
	// Redirect sends the rewritten frame out of another interface.
	Redirect
	// HandToKernel gives the rewritten frame to the kernel: to route it, to
	// answer it, or (after a host took it) to deliver it.
	HandToKernel
	// Drop ends the packet's life; Reason says why.
	Drop
)

var verdictNames = [...]string{
	Pass:         "pass",
	Transmit:     "transmit",
	Redirect:     "redirect",
	HandToKernel: "hand_to_kernel",
	Drop:         "drop",
}

// String returns the verdict in lower snake case.
func (v Verdict) String() string { return name(verdictNames[:], int(v)) }

// Reason is the counter under which a packet is counted. Packets are dropped for these reasons
// only; ReasonHopLimit, ReasonBelowMinMTU, and ReasonPacketTooBig on a host which passes a packet
// on, also count one that is answered: by the edge, or by the kernel, which is given the packet.
type Reason uint8

//go:generate go run reason_gen.go
type reason struct{ name, meaning, cause, remedy string }

// String returns the reason in lower snake case, as counters and logs show it.
func (r Reason) String() string {
	if int(r) >= len(reasons) {
		return "unknown"
	}
	return reasons[r].name
}

// Meaning explains the name of a drop reason in a few words; the name itself if it is not known.
func Meaning(name string) string {
	if r := named(name); r.meaning != "" {
		return r.meaning
	}
	return name
}

// Fault returns the fault of the set-up that makes packets drop for a reason, and its remedy; ""
// for a reason that correct set-ups have too.
func Fault(name string) (cause, remedy string) {
	r := named(name)
	return r.cause, r.remedy
}

func named(name string) reason {
	for _, r := range reasons[ReasonNone+1:] {
		if r.name == name {
			return r
		}
	}
	return reason{}
}

// name returns the name of a value, and "unknown" for one that has none.
func name(names []string, value int) string {
	if value >= len(names) {
		return "unknown"
	}
	return names[value]
}
