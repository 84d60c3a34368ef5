package packet

// Deadlocked lists the links that stay paused for ever, as long as none fails: each waits for the
// buffer behind it, and so much in that waits for other such links that the pause cannot end. They
// form a cycle of buffers. It is empty where queues are not lossless.
func (s *Simulation) Deadlocked() (links []int) {
	if s.lossless == nil {
		return nil
	}
	k := s.lossless
	stuck := make([]bool, len(k.ports))
	some := false
	for i := range k.ports {
		p := &k.ports[i]
		stuck[i] = p.paused && p.asked && p.frames == 0
		some = some || stuck[i]
	}
	for some {
		waiting := s.waitingFor(stuck)
		some = false
		for i := range stuck {
			if stuck[i] && waiting[i] <= int64(k.XON) {
				stuck[i], some = false, true
			}
		}
	}
	for i := range stuck {
		if stuck[i] {
			links = append(links, i)
		}
	}
	return links
}

// waitingFor is how many bytes in the buffer behind each link wait for links of a set.
func (s *Simulation) waitingFor(set []bool) []int64 {
	k := s.lossless
	bytes := make([]int64, len(set))
	for i := range set {
		if !set[i] {
			continue
		}
		s.packets.each(k.ports[i].waiting, func(id int32, w way) {
			e := &s.packets.slab[id]
			if from := k.cameBy(id, e); from != none {
				bytes[from] += int64(e.size)
			}
		})
	}
	return bytes
}
