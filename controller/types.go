package controller

import (
	"net/netip"
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
	Reports       uint64    `json:"reports"` // that were taken
	Refused       uint64    `json:"refused"` // reports about what the topology does not have
	// Observed is how many reports told of queues only: the flow's head-end does not follow this
	// controller.
	Observed uint64    `json:"observed"`
	Verdicts []Verdict `json:"verdicts"` // decisions by what became of the flow
	Flows    int       `json:"flows"`    // that are known
	// FlowsReplaced is how many were forgotten for others, as too many were known.
	FlowsReplaced uint64 `json:"flowsReplaced"`
	// JournalLost is how many decisions the journal's file does not have.
	JournalLost uint64 `json:"journalLost"`
	// Telemetry is what came by UDP; null if the controller does not listen.
	Telemetry *TelemetryStatus `json:"telemetry"`
	// Epoch is that by which head-ends tell controllers apart; 0: they get no paths from here.
	Epoch uint64 `json:"epoch,omitempty"`
	// Standby is which of several controllers leads; absent if this is the only one.
	Standby  *StandbyStatus `json:"standby,omitempty"`
	HeadEnds []HeadEnd      `json:"headEnds"`
	// Elephants is how many flows have paths of a network with controllable load balancing.
	Elephants int      `json:"elephants,omitempty"`
	Warnings  []string `json:"warnings"`
}

// StandbyStatus is which of several controllers leads.
type StandbyStatus struct {
	Name    string `json:"name"`
	Leads   bool   `json:"leads"`
	Leader  string `json:"leader"`            // "": not known
	Problem string `json:"problem,omitempty"` // of asking etcd
}

// TelemetryStatus is what became of datagrams of telemetry.
type TelemetryStatus struct {
	Listen    netip.AddrPort `json:"listen"`
	Datagrams uint64         `json:"datagrams"`
	Reports   uint64         `json:"reports"`  // in datagrams that were believed
	Foreign   uint64         `json:"foreign"`  // datagrams of exporters that are not allowed
	Repeated  uint64         `json:"repeated"` // datagrams that came before, or may have
	Broken    uint64         `json:"broken"`   // datagrams, reports and packets that contradict themselves
	Lost      uint64         `json:"lost"`     // datagrams, by their numbers
	Unplaced  uint64         `json:"unplaced"` // reports about what the topology does not have
}

// HeadEnd is a router that sets paths of flows.
type HeadEnd struct {
	Router    string    `json:"router"`
	Connected bool      `json:"connected"`
	Address   string    `json:"address,omitempty"`
	Since     time.Time `json:"since"` // when it connected last
	Version   string    `json:"version"`
	Capacity  uint64    `json:"capacity"` // flows that can have paths
	Groups    uint64    `json:"groups"`   // prefixes to which it can spread flows that begin
	Followed  bool      `json:"followed"` // it takes paths from this controller
	Epoch     uint64    `json:"epoch"`    // of the controller that it follows
	Applied   uint64    `json:"applied"`  // paths that it set, renewals too
	Refused   uint64    `json:"refused"`
	Adopted   uint64    `json:"adopted"` // paths that it had from an earlier controller
	LastError string    `json:"lastError,omitempty"`
}

// Group is paths between two routers, of which flows that begin choose at the first one.
type Group struct {
	From     string         `json:"from"`
	To       string         `json:"to"`
	Prefixes []netip.Prefix `json:"prefixes"` // behind the second one
	Paths    []GroupPath    `json:"paths"`
}

// GroupPath is a path of a group.
type GroupPath struct {
	Path  []string `json:"path"`
	Share *float64 `json:"share"` // of flows that begin, 0 to 1; null: it is down
}

// Verdict counts decisions.
type Verdict struct {
	Verdict string `json:"verdict"`
	Count   uint64 `json:"count"`
}

// Report is what telemetry says about a packet of a flow. Routers are called by their names in the
// topology. Here and elsewhere, an interface behind the name of a router, as in leaf1%3, says which
// of parallel links leads on from it.
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
	Flow   api.Flow `json:"flow"`
	From   string   `json:"from"`
	To     string   `json:"to"`
	Class  int      `json:"class,omitempty"`
	Path   []string `json:"path"` // that it was given; empty if routing chooses
	Moves  int      `json:"moves"`
	Pinned bool     `json:"pinned"`
	// State of the path at the head-end: "waits", "applied" or "refused"; "" if it was given none.
	State   string `json:"state,omitempty"`
	Problem string `json:"problem,omitempty"` // of a refusal
	// AppliedMs is the time from the decision to the head-end's word that the path is in force.
	AppliedMs *float64     `json:"appliedMs,omitempty"`
	Segments  []netip.Addr `json:"segments,omitempty"`
	SeenAt    time.Time    `json:"seenAt"`
}

// Link is one direction of a link with its weight.
type Link = api.WeighedLink

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
