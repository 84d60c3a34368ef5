package api

import (
	"fmt"
	"net/netip"
	"slices"
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
	Durations           Durations  `json:"-"` // of checks, for metrics
}

// durationBounds are the upper bounds of the buckets of Durations, in seconds.
var durationBounds = [...]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Durations are how long something took, as a histogram. The zero value is empty.
type Durations struct {
	Count      uint64
	SumSeconds float64
	counts     [len(durationBounds)]uint64 // by the first bound that is not less
}

// Add notes one more duration.
func (d *Durations) Add(one time.Duration) {
	d.Count++
	d.SumSeconds += one.Seconds()
	if i, _ := slices.BinarySearch(durationBounds[:], one.Seconds()); i < len(d.counts) {
		d.counts[i]++
	}
}

// Buckets counts, for each bound in seconds, the durations that are not longer.
func (d *Durations) Buckets() map[float64]uint64 {
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i, bound := range durationBounds {
		sum += d.counts[i]
		buckets[bound] = sum
	}
	return buckets
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
	// Status is, of a backend, healthy or failing, or the state that was set; of a service, panic
	// or panic over; of a policy, active (on a path) or invalid; of a path of protected traffic, at
	// the egress silent, back, excess or excess over, at the head-end silent, trial or answers.
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
