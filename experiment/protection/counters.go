package protection

// counters are what TCP saw at both ends.
type counters struct {
	// segments that the client had already and told so, by DSACK (RFC 2883)
	Duplicates      uint64 `json:"duplicates"`
	Retransmissions uint64 `json:"retransmissions"` // of the server
	Timeouts        uint64 `json:"timeouts"`        // of the server
	// slow-downs of the server that turned out to be needless
	Undone uint64 `json:"undone"`
}

func (c counters) minus(o counters) counters {
	return counters{c.Duplicates - o.Duplicates, c.Retransmissions - o.Retransmissions,
		c.Timeouts - o.Timeouts, c.Undone - o.Undone}
}

func (c counters) plus(o counters) counters {
	return counters{c.Duplicates + o.Duplicates, c.Retransmissions + o.Retransmissions,
		c.Timeouts + o.Timeouts, c.Undone + o.Undone}
}

func (a *arena) counters() (counters, error) {
	client, err := a.Spaces["hosta"].TCPCounters("TCPDSACKOldSent", "TCPDSACKOfoSent")
	if err != nil {
		return counters{}, err
	}
	server, err := a.Spaces["hostb"].TCPCounters("RetransSegs", "TCPTimeouts", "TCPFullUndo",
		"TCPPartialUndo", "TCPDSACKUndo",
		"TCPLossUndo")
	if err != nil {
		return counters{}, err
	}
	return counters{
		Duplicates:      client["TCPDSACKOldSent"] + client["TCPDSACKOfoSent"],
		Retransmissions: server["RetransSegs"],
		Timeouts:        server["TCPTimeouts"],
		Undone: server["TCPFullUndo"] + server["TCPPartialUndo"] + server["TCPDSACKUndo"] +
			server["TCPLossUndo"],
	}, nil
}
