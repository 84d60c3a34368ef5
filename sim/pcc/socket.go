package pcc

import (
	"slices"
	"time"
)

// matching is how a host with a socket in TIME-WAIT, which may be of another connection of the
// same ports, tells whether it takes a packet. Half-open sockets are told apart by numbers in
// both.
type matching uint8

const (
	byNumbers matching = iota // a packet that its own peer can still send
	byPorts                   // any: it answers for the connection before, and the one of now hangs
)

// takes tells whether the host takes a packet: own says that the packet's connection is the
// host's, timeWait that there is a socket in TIME-WAIT of another one.
func (m matching) takes(own, timeWait bool) bool { return own || timeWait && m == byPorts }

// sockets are those of a connection's ports.
type sockets struct {
	owner    uint16                // has the connection; 0: nobody
	timeWait [timeWaitsMost]uint16 // have had connections of the same ports before; 0: nobody
	matching matching
}

const (
	timeWaitsMost = 2           // hosts with a socket in TIME-WAIT of one flow's ports
	timeWaitLasts = time.Minute // in Linux
)

// take tells whether a host takes a packet of the connection, and whether that ends in a hang.
func (s *sockets) take(host uint16) (here, hangs bool) {
	own := host == s.owner
	here = s.matching.takes(own, slices.Contains(s.timeWait[:], host))
	return here, here && !own
}
