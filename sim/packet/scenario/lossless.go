package scenario

import (
	"fmt"
	"strings"

	"sextant/sim/packet"
	"sextant/te/topology"
)

// Lossless says when a switch pauses the sender of a link (PFC), in packets of 1500 bytes that came
// by the link and have not left.
type Lossless struct {
	XOFF     int  `yaml:"xoff"`     // from which on it pauses
	XON      *int `yaml:"xon"`      // down to which it does; two less than xoff if not stated
	Headroom *int `yaml:"headroom"` // beyond xoff; what can arrive if not stated
}

// checkLossless says what is wrong with lossless queues, of which queue.packets is as stated.
func (c *Scenario) checkLossless(packets int) error {
	l := c.Queue.Lossless
	if l == nil {
		return nil
	}
	switch {
	case l.XOFF < 1:
		return fmt.Errorf("queue.lossless.xoff: %d; state from how many packets on a switch "+
			"pauses the sender of a link, for instance 40", l.XOFF)
	case l.XON != nil && (*l.XON < 0 || *l.XON >= l.XOFF):
		return fmt.Errorf("queue.lossless.xon: %d is not from 0 to below xoff, %d; state how many "+
			"packets are left when a pause ends", *l.XON, l.XOFF)
	case l.Headroom != nil && *l.Headroom < 0:
		return fmt.Errorf("queue.lossless.headroom: %d packets; leave it out to have what can "+
			"arrive until a sender has stopped", *l.Headroom)
	case packets != 0 || c.Queue.Random != 0:
		return fmt.Errorf("queue.packets and queue.random bound queues that drop; with " +
			"queue.lossless, xoff and headroom bound them: take those out")
	case c.Mode == "flow":
		return fmt.Errorf("mode: flow knows no queues; take queue.lossless out, or choose packet")
	}
	return nil
}

func (l *Lossless) xon() int {
	const below = 2
	if l.XON != nil {
		return *l.XON
	}
	return max(l.XOFF-below, 0)
}

// settings are those of the simulator.
func (l *Lossless) settings() *packet.Lossless {
	headroom := -1
	if l.Headroom != nil {
		headroom = *l.Headroom * fullPacket
	}
	return &packet.Lossless{XOFF: l.XOFF * fullPacket, XON: l.xon() * fullPacket,
		Headroom: headroom, Frame: fullPacket}
}

// Deadlock is links that pause each other for ever.
type Deadlock struct {
	Ms    float64  `json:"ms"`    // when it was found
	Links []string `json:"links"` // like "leaf0 to spine1"
}

// watch notes the first deadlock.
func (r *Result) watch(s *packet.Simulation, g *topology.Graph, now packet.Time) {
	if r.Deadlock != nil {
		return
	}
	stuck := s.Deadlocked()
	if len(stuck) == 0 {
		return
	}
	r.Deadlock = &Deadlock{Ms: now.Seconds() * 1000}
	for _, l := range stuck {
		e := g.Edge(topology.Edge(l))
		r.Deadlock.Links = append(r.Deadlock.Links,
			g.Node(e.From).Name+" to "+g.Node(e.To).Name)
	}
}

// String says what stands still.
func (d *Deadlock) String() string {
	const most = 6
	links := d.Links
	if len(links) > most {
		links = append(links[:most:most], fmt.Sprintf("%d more", len(links)-most))
	}
	return fmt.Sprintf("found at %g ms: these links wait for each other or behind those that do: "+
		"%s", d.Ms, strings.Join(links, ", "))
}
