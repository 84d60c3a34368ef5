package controller

import (
	"time"

	"sextant/agent/api"
)

// Status is what the controller is and does.
type Status struct {
	Version       string    `json:"version"`
	StartedAt     time.Time `json:"startedAt"`
	UptimeSeconds int64     `json:"uptimeSeconds"`
	Topology      string    `json:"topology"`
	Nodes         int       `json:"nodes"`
	Links         int       `json:"links"` // directed
	LinksDown     int       `json:"linksDown"`
	Policy        string    `json:"policy"`
	Reports       uint64    `json:"reports"`  // that were taken
	Refused       uint64    `json:"refused"`  // reports about what the topology does not have
	Verdicts      []Verdict `json:"verdicts"` // decisions by what became of the flow
	Flows         int       `json:"flows"`    // that are known
	// JournalLost is how many decisions the journal's file does not have.
	JournalLost uint64   `json:"journalLost"`
	Warnings    []string `json:"warnings"`
}

// Verdict counts decisions.
type Verdict struct {
	Verdict string `json:"verdict"`
	Count   uint64 `json:"count"`
}

// Report is what telemetry says about a packet of a flow. Routers are called by their names in the
// topology.
type Report struct {
	Flow   api.Flow     `json:"flow"`
	Path   []string     `json:"path"` // the routers that the packet passed, in order
	Class  int          `json:"class,omitempty"`
	Queues []QueueState `json:"queues,omitempty"`
	Pause  bool         `json:"pause,omitempty"` // the flow paused for longer than the threshold
}

// QueueState is how full the queue before a link is.
type QueueState struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
	// Size is how many bytes fit; 0: as the controller's file says.
	Size int64 `json:"size,omitempty"`
}

// Candidate is a path that was weighed.
type Candidate struct {
	Path   []string `json:"path"`
	Weight *float64 `json:"weight"` // null if a link of it is down
	// Noise is the standard deviation of the weight.
	Noise float64 `json:"noise"`
}

// Decision is what became of a flow, and why.
type Decision struct {
	Number     uint64      `json:"number"` // in order; 0 for what was only simulated
	At         time.Time   `json:"at"`
	Flow       api.Flow    `json:"flow"`
	Class      int         `json:"class,omitempty"`
	Verdict    string      `json:"verdict"`
	Reason     string      `json:"reason"`
	Current    *Candidate  `json:"current,omitempty"`
	Candidates []Candidate `json:"candidates"`
	Path       []string    `json:"path,omitempty"` // where the flow moves
}

// Flow is a flow that was looked at.
type Flow struct {
	Flow   api.Flow  `json:"flow"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Class  int       `json:"class,omitempty"`
	Path   []string  `json:"path"` // that it was given; empty if routing chooses
	Moves  int       `json:"moves"`
	Pinned bool      `json:"pinned"`
	SeenAt time.Time `json:"seenAt"`
}

// Link is a directed link with its weight.
type Link struct {
	From   string   `json:"from"`
	To     string   `json:"to"`
	Number int      `json:"number"` // in the topology, where parallel links differ
	Up     bool     `json:"up"`
	Weight *float64 `json:"weight"` // null if it is down
	Noise  float64  `json:"noise"`
	// Occupancy is the occupied part of the queue before the link.
	Occupancy float64  `json:"occupancy"`
	QueueSize int64    `json:"queueBytes"`
	AgeMs     *float64 `json:"ageMs"` // of the last observation; null if there was none
}

// Pin gives a flow a path.
type Pin struct {
	Flow api.Flow `json:"flow"`
	Path []string `json:"path"`
}

// LinkState says whether a link is up, in one direction.
type LinkState struct {
	From string `json:"from"`
	To   string `json:"to"`
	Up   bool   `json:"up"`
}
