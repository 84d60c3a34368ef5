package api

// WeighedLink is one direction of a link, as a controller knows it.
type WeighedLink struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Number int    `json:"number"` // in the topology, where parallel links differ
	// Interface is the number that From has for the link; 0: the controller's file does not say.
	Interface uint32   `json:"interface,omitempty"`
	Up        bool     `json:"up"`
	Weight    *float64 `json:"weight"` // null if it is down
	Noise     float64  `json:"noise"`
	// Occupancy is the occupied part of the queue before the link.
	Occupancy float64  `json:"occupancy"`
	QueueSize int64    `json:"queueBytes"`
	AgeMs     *float64 `json:"ageMs"` // of the last observation; null if there was none
}
