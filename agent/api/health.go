package api

import (
	"fmt"
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

// Event is something that happened to a service or a backend of it.
type Event struct {
	Number  uint64    `json:"number"` // counts from 1 since the agent's start
	Time    time.Time `json:"time"`
	Service string    `json:"service"`
	Backend string    `json:"backend,omitempty"`
	Status  string    `json:"status"` // of the backend: healthy or failing; of the service: panic or panic over
	Reason  string    `json:"reason,omitempty"`
}

// String writes the event in one line, without its time.
func (e Event) String() string {
	text := "service " + e.Service
	if e.Backend != "" {
		text += ": backend " + e.Backend
	}
	if text += ": " + e.Status; e.Reason != "" {
		text = fmt.Sprintf("%s (%s)", text, e.Reason)
	}
	return text
}
