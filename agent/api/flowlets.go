package api

import (
	"net/netip"

	"sextant/config"
)

// FlowletCounters say over which paths a host sent its packets.
type FlowletCounters struct {
	Sent     uint64 `json:"sent"`     // over a path
	TooLong  uint64 `json:"tooLong"`  // for their path: by the kernel's route
	Pathless uint64 `json:"pathless"` // all paths were down: by the kernel's route
	// Paths are those of all groups, in the order of the node file.
	Paths []FlowletPath `json:"paths"`
}

// FlowletChoice is how a host came to the path of a packet.
type FlowletChoice struct {
	Group  string               `json:"group"`
	Choice config.FlowletChoice `json:"choice"`
	Path   string               `json:"path"`   // name; "": it leaves by the kernel's route
	Before string               `json:"before"` // path that the flow had; "": it is not known
	Paths  []FlowletPath        `json:"paths"`  // of the group, in the order of the node file
}

// FlowletPath is what a host knows of a path.
type FlowletPath struct {
	Group string     `json:"group"`
	Name  string     `json:"name"`
	SID   netip.Addr `json:"sid"`
	Up    bool       `json:"up"` // probes come back, or are not sent
	// Packets and Bytes are those that were sent, without outer headers.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	Moves   uint64 `json:"moves"` // flows that came from another path
	Left    uint64 `json:"left"`  // flows that left as nothing was heard
	// UnderWayBytes were sent and not acknowledged.
	UnderWayBytes uint64  `json:"underWayBytes"`
	RoundTripMs   float64 `json:"roundTripMs"` // smoothed; 0: not measured
	// SilentMs is how long nothing was heard of the path, with bytes under way; 0: it is heard.
	SilentMs     float64 `json:"silentMs"`
	LostPermille float64 `json:"lostPermille"`
	Interface    string  `json:"interface"` // by which it leaves; "": as the kernel's route
}
