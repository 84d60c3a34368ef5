package subflows

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"sextant/linux"
)

// socket is one of a connection of MPTCP.
type socket struct {
	linux.TCPEnds
	linux.TCPProgress
}

// Look takes what sockets say. Connections of this host that were not heard of are known from now
// on, with the subflows that they have; so are subflows, and the end of those whose news was lost.
// With whole, news was lost: a connection without sockets has ended.
func (m *Manager) Look(sockets map[linux.TCPEnds]linux.TCPProgress, whole bool) {
	of := map[uint32][]socket{}
	for ends, p := range sockets {
		if p.MPTCP.Token != 0 {
			of[p.MPTCP.Token] = append(of[p.MPTCP.Token], socket{ends, p})
		}
	}
	for token, list := range of {
		slices.SortFunc(list, func(a, b socket) int {
			return cmp.Or(cmp.Compare(a.MPTCP.ID, b.MPTCP.ID), a.Local.Compare(b.Local))
		})
		if i := slices.IndexFunc(list, isOwn); m.known[token] == nil && i >= 0 {
			m.add(token, list[i].TCPEnds)
		}
	}
	for token, c := range m.known {
		c.look(token, of[token], whole)
		if of[token] == nil && (whole || c.left) {
			m.forget(token)
		}
	}
}

// isOwn reports whether a socket tells that its connection was opened by this host: it is the first
// one, or one that was opened here beside it.
func isOwn(s socket) bool { return s.MPTCP.First || s.isOpened() }

// isOpened reports whether a subflow was opened here, now or before a restart.
func (s socket) isOpened() bool {
	return s.MPTCP.Joined && s.MPTCP.ID >= firstID && s.MPTCP.ID < firstID+SlotsMax
}

// look takes what the sockets of the connection say, in the order of their IDs.
func (c *connection) look(token uint32, list []socket, whole bool) {
	c.acked, c.first, c.surplus = 0, nil, nil
	here := map[uint16]bool{}
	for _, s := range list {
		c.acked += s.Acked
		here[s.Local.Port()] = true
		if s.TCPEnds == c.ends {
			c.first = &s.TCPProgress
		}
	}
	for i := range c.slots {
		s := &c.slots[i]
		if s.at = nil; (s.established || whole) && !here[s.port] && list != nil {
			s.clear() // it ended, and the news was lost
		}
	}
	if c.left || c.rule == nil {
		return
	}
	for _, s := range list {
		c.elephant = c.elephant || s.isOpened()
		own := c.slotOf(s.Local.Port())
		if own == nil {
			own = c.adopt(s)
		}
		switch {
		case own != nil:
			own.at, own.established, own.tries = &s.TCPProgress, true, 0
			own.backup = s.MPTCP.Backup
		case s.isOpened():
			c.surplus = append(c.surplus, Subflow{Token: token, ID: s.MPTCP.ID, Local: s.Local,
				Remote: s.Remote})
		}
	}
}

// adopt gives a subflow that was not heard of the slot that it stands for; nil: none, or another
// one has it.
func (c *connection) adopt(s socket) *slot {
	number := c.pathOf(s.TCPEnds)
	if c.rule.Scheduled > 0 && s.isOpened() {
		number = int(s.MPTCP.ID) - firstID
	}
	if number < 0 || number >= len(c.slots) || c.slots[number].port != 0 {
		return nil
	}
	own := &c.slots[number]
	own.port, own.ours = s.Local.Port(), s.isOpened()
	return own
}

// A subflow is taken for dead if retransmissions time out and the other end is silent for so long.
// The kernel gives it no new data after four timeouts.
const (
	StalledTimeouts = 2
	StalledSilent   = 6 * time.Second
)

// Stalled lists the open subflows that got no answers, by the last look, of connections of which
// another one did: to be ended, so that what they hold is sent by others at once, and their paths
// are tried anew.
func (m *Manager) Stalled() (list []Subflow) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		c := m.known[token]
		if !c.isAnswered() {
			continue
		}
		for number, s := range c.slots {
			if s.ours && s.at != nil && s.at.Timeouts >= StalledTimeouts &&
				s.at.Silent >= StalledSilent {
				list = append(list, c.opened(token, number))
			}
		}
	}
	return list
}

// isAnswered says whether a subflow of the connection waits for nothing.
func (c *connection) isAnswered() bool {
	return c.first != nil && c.first.Timeouts == 0 ||
		slices.ContainsFunc(c.slots, func(s slot) bool { return s.at != nil && s.at.Timeouts == 0 })
}

// Surplus lists subflows that were opened here, by a rule that holds no more, and that no path
// wants, by the last look.
func (m *Manager) Surplus() (list []Subflow) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		list = append(list, m.known[token].surplus...)
	}
	return list
}

// Connection is what is known of a connection.
type Connection struct {
	Token         uint32
	Local, Remote netip.AddrPort
	Rule          string // "": none
	State         State
	AckedBytes    uint64
	Subflows      []Subflow // on paths that the rule wants, the first one among them
}

// State is what becomes of a connection.
type State string

// The states.
const (
	Watched State = "watched" // it has not carried enough for subflows
	Managed State = "managed" // it has subflows, or gets them
	Left    State = "left"    // another path manager's, or no rule's
)

// Connections lists what is known, by token.
func (m *Manager) Connections() (list []Connection) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		c := m.known[token]
		one := Connection{Token: token, Local: c.ends.Local, Remote: c.ends.Remote,
			State: c.state(), AckedBytes: c.acked}
		if c.rule != nil {
			one.Rule = c.rule.Name
		}
		for number, s := range c.slots {
			if s.port != 0 {
				one.Subflows = append(one.Subflows, c.opened(token, number))
			}
		}
		list = append(list, one)
	}
	return list
}

// Count is how many connections are in each state, and how many subflows that were opened here.
func (m *Manager) Count() (of map[State]int64, opened int64) {
	of = map[State]int64{}
	for _, c := range m.known {
		of[c.state()]++
		for _, s := range c.slots {
			if s.ours {
				opened++
			}
		}
	}
	return of, opened
}

func (c *connection) state() State {
	switch {
	case c.left || c.rule == nil:
		return Left
	case c.elephant:
		return Managed
	}
	return Watched
}
