package acceptance

// Level is a load: of Average busy connections per core, in units of 1/65536, of Delay a time in
// ticks. 0 stands for "not known".
type Level uint32

// MaxLevels is for how many candidates left Average and Delay have a mean of their own. Beyond,
// they take the last.
const MaxLevels = 5

const (
	levelOne      = 16 // bits behind the point
	forgetShift   = 4  // a new look at the own load weighs 1/16
	agreeShift    = 1  // a mean that another server tells weighs 1/2
	fractionShift = 4  // loads that differ by less than 1/16 of a connection count as equal
	busyMax       = 1 << 15
)

// level is the load of a server with so many connections. Half a connection is added so that of two
// idle servers the one with more cores is less loaded.
func (p Policy) level(busy uint32) Level {
	return Level((2*min(busy, busyMax) + 1) << (levelOne - 1) / max(p.Cores, 1))
}

// decideAverage learns from an offer and answers it.
func (p Policy) decideAverage(s State, o Offer) (Answer, State) {
	load := p.level(o.Busy)
	if told := o.Told.Level(); told != 0 {
		s.Levels[0] = s.Levels[0].towards(told, agreeShift)
	}
	s.meets(load)
	if o.Left == 0 || load <= s.limit(o.Left)+p.equal() {
		return Answer{Accept: true}, s
	}
	return Answer{Tell: NoteOf(s.Levels[0])}, s
}

// meets learns what a connection meets here, and would meet with more and more candidates left.
func (s *State) meets(level Level) {
	for i := range s.Levels {
		s.Levels[i] = s.Levels[i].towards(level, forgetShift)
		level = min(level, s.Levels[i])
	}
}

// limit is what a connection meets elsewhere if so many candidates are left, at least one.
func (s *State) limit(left uint32) Level { return s.Levels[min(left, MaxLevels)-1] }

// averageThreshold is the least number of connections whose load is above a level.
func (p Policy) averageThreshold(l Level) uint32 {
	above := uint64(l) + uint64(p.equal()) + 1 // loads are whole numbers, rounded down
	halves := (above*uint64(max(p.Cores, 1)) - 1) >> (levelOne - 1)
	return uint32(min((halves+1)/2, busyMax))
}

// Loads are the load of a server with so many connections, and that of all servers in the mean as
// far as others told it, 0 if they did not: busy connections per core, half a connection added; of
// Delay the seconds that a connection would take.
func (p Policy) Loads(s State, busy uint32) (own, mean float64) {
	if p.Kind == Delay {
		return p.delay(s.each(), busy).seconds(), s.Levels[0].seconds()
	}
	const one = 1 << levelOne
	return float64(p.level(busy)) / one, float64(s.Levels[0]) / one
}

// equal is by how much loads may differ that count as equal.
func (p Policy) equal() Level { return p.level(0) >> (fractionShift - 1) }

// towards moves a mean to a new value by 1/2^shift of the distance, all of it if nothing was known.
// It never gets back to 0.
func (l Level) towards(value Level, shift uint) Level {
	if l == 0 {
		return max(value, 1)
	}
	return Level(max(int64(l)+(int64(value)-int64(l))>>shift, 1))
}
