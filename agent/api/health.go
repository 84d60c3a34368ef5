package api

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Health is what an edge knows from checking a backend.
type Health struct {
	Status              string     `json:"status"` // unknown, healthy or failing
	Since               time.Time  `json:"since"`
	LastError           string     `json:"lastError,omitempty"`
	LastCheck           *time.Time `json:"lastCheck,omitempty"`
	LastDurationSeconds float64    `json:"lastDurationSeconds"`
	SucceededChecks     uint64     `json:"succeededChecks"`
	FailedChecks        uint64     `json:"failedChecks"`
}

// Event is something that happened: to a service or a backend of it, to a policy, or to a path of
// protected traffic. What it is not about is left out.
type Event struct {
	Number  uint64    `json:"number"` // counts from 1 since the agent's start
	Time    time.Time `json:"time"`
	Service string    `json:"service,omitempty"`
	Backend string    `json:"backend,omitempty"`
	Policy  string    `json:"policy,omitempty"` // of a head-end
	Path    string    `json:"path,omitempty"`   // of the policy
	List    string    `json:"list,omitempty"`   // of the policy
	// SID is that of an egress, Flow one of its paths; 0: all of them.
	SID  netip.Prefix `json:"sid,omitzero"`
	Flow uint32       `json:"flow,omitempty"`
	// Status is, of a backend, healthy or failing; of a service, panic or panic over; of a policy,
	// active (on a path) or invalid; of a path of protected traffic, at the egress silent, back,
	// excess or excess over, at the head-end silent, trial or answers.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// String writes the event in one line, without its time.
func (e Event) String() string {
	var words []string
	add := func(what, name string) {
		if name != "" {
			words = append(words, what+" "+name)
		}
	}
	add("service", e.Service)
	add("backend", e.Backend)
	add("policy", e.Policy)
	add("path", e.Path)
	add("list", e.List)
	if e.SID.IsValid() {
		add("sid", e.SID.String())
	}
	if e.Flow != 0 {
		add("flow", fmt.Sprint(e.Flow))
	}
	text := strings.Join(words, ": ")
	if text += ": " + e.Status; e.Reason != "" {
		text = fmt.Sprintf("%s (%s)", text, e.Reason)
	}
	return text
}
