package packet

import "fmt"

// Source emits packets whatever becomes of them: a constant bit rate, or any process of arrivals
// and sizes.
type Source struct {
	Src, Dst    int // indices of the network's Hosts
	Start, Stop Time
	// Next returns the time from one packet to the following one, and the bytes of the packet.
	Next func() (gap Time, bytes int32)
	// Arrived is told how long each packet was under way; nil: nobody is.
	Arrived func(Time)
}

// ConstantRate is a Source.Next that sends so many bit/s in packets of so many bytes.
func ConstantRate(bitsPerSecond float64, bytes int32) func() (Time, int32) {
	gap := Time(float64(bytes) * 8 / bitsPerSecond * float64(Second))
	return func() (Time, int32) { return gap, bytes }
}

type source struct {
	Source
	src, dst  Node
	route     int32
	sent, got Count
}

// AddSource adds a source, and returns its number.
func (s *Simulation) AddSource(c Source) (int, error) {
	hosts := s.network.Hosts
	if c.Src < 0 || c.Src >= len(hosts) || c.Dst < 0 || c.Dst >= len(hosts) || c.Src == c.Dst ||
		c.Next == nil ||
		c.Start < s.now {
		return 0, fmt.Errorf("source from host %d to host %d at %g s: hosts are 0 to %d and "+
			"differ, and Next must be there",
			c.Src, c.Dst, c.Start.Seconds(), len(hosts)-1)
	}
	number := int32(len(s.sources))
	src, dst := hosts[c.Src], hosts[c.Dst]
	s.sources = append(s.sources, source{Source: c, src: src, dst: dst,
		route: s.hashedRoute(src, dst, mix(uint64(number)+s.random.Uint64()))})
	s.at(sourceTick, number, c.Start)
	return int(number), nil
}

// emit sends one packet of a source, and plans the next.
func (s *Simulation) emit(timer int32) {
	number := s.calendar.slab[timer].flow
	c := &s.sources[number]
	if c.Stop != 0 && s.now >= c.Stop {
		s.calendar.release(timer)
		return
	}
	gap, bytes := c.Next()
	s.calendar.schedule(timer, s.now+gap)
	c.sent.add(bytes)
	id, e := s.newPacket(datagram, number, bytes)
	switch {
	case s.paths.Scheme.switched():
		s.inject(id, e, c.src, c.dst)
	case c.route == none:
		s.strand(id, e)
	default:
		s.launch(id, e, c.route)
	}
}

// arrived counts a packet of a source at its destination.
func (s *Simulation) arrived(e *packet) {
	c := &s.sources[e.flow]
	c.got.add(e.size)
	if c.Arrived != nil {
		c.Arrived(s.now - e.sent)
	}
}
