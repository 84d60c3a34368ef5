// Package subflows decides which subflows an MPTCP connection gets in a network with controllable
// load balancing: one for each path, by the source port that takes it, or as many as a controller
// is to give paths. The kernel's path manager in user-space mode (net.mptcp.path_manager=userspace)
// leaves that to a process. Decisions are pure; the kernel's netlink is with the caller.
package subflows

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/pathtrace"
	"sextant/linux"
	"sextant/packet/cflb"
)

// Manager knows the connections of a host. It serves one goroutine.
type Manager struct {
	// Codec, Choices and Seed say how paths are asked for; the ends are the connections'
	plan  pathtrace.Plan
	paths [][]int // nil: a controller chooses
	slots int     // subflows of a connection
	after uint64
	known map[uint32]*connection
	gone  []string // names of subflows that ended with their connections
}

// connection is one that this host has opened.
type connection struct {
	ends     linux.TCPEnds // of the first subflow
	elephant bool
	own      []bool // paths that have a subflow
	// when a path may be tried again, and how often it was since one was established
	next  []time.Time
	tries []int
	// where the subflows run that were opened, by local port
	at   map[uint16]int
	open map[int]Subflow // that were opened here, by path
	ids  uint8
	left bool // another path manager's
}

// Subflow is one that is to be opened.
type Subflow struct {
	Token         uint32
	ID            uint8
	Local, Remote netip.AddrPort
	Path          []int // index of the next hop at each router; nil: a controller says it
	number        int
}

// Name is that by which a controller is asked for the path: no other subflow has it.
func (s Subflow) Name() string {
	return fmt.Sprintf("mptcp %s %08x %d", s.Local.Addr(), s.Token, s.number)
}

// New makes a manager: connections get subflows once the other end has acknowledged so many bytes.
func New(plan pathtrace.Plan, after uint64) (*Manager, error) {
	paths, err := plan.Paths()
	return &Manager{plan: plan, paths: paths, slots: len(paths), after: after,
		known: map[uint32]*connection{}}, err
}

// NewScheduled makes a manager whose connections get so many subflows by paths that a controller
// chooses: those that are due have no local port.
func NewScheduled(subflows int, after uint64) *Manager {
	return &Manager{slots: subflows, after: after, known: map[uint32]*connection{}}
}

// Hear takes news of connections.
func (m *Manager) Hear(e linux.MPTCPEvent) {
	c := m.known[e.Token]
	switch {
	case e.Kind == linux.MPTCPEstablished && !e.Server && c == nil:
		c = &connection{ends: linux.TCPEnds{Local: e.Local, Remote: e.Remote},
			own: make([]bool, m.slots), next: make([]time.Time, m.slots),
			tries: make([]int, m.slots), at: map[uint16]int{}, open: map[int]Subflow{}}
		m.known[e.Token] = c
		if path := m.pathOf(c.ends); path >= 0 {
			c.own[path], c.at[e.Local.Port()] = true, path
		}
	case e.Kind == linux.MPTCPClosed && c != nil:
		for _, number := range slices.Sorted(maps.Keys(c.open)) {
			m.gone = append(m.gone, c.open[number].Name())
		}
		delete(m.known, e.Token)
	case e.Kind == linux.MPTCPSubflowEstablished && c != nil:
		if path, ok := c.at[e.Local.Port()]; ok {
			c.tries[path] = 0
		}
	case e.Kind == linux.MPTCPSubflowClosed && c != nil:
		if path, ok := c.at[e.Local.Port()]; ok { // it gets another one
			c.own[path] = false
			delete(c.at, e.Local.Port())
			delete(c.open, path)
		}
	}
}

const hopLimitOfHosts = 64

// pathOf is the number of the path that a subflow takes, or -1 if routers hash it.
func (m *Manager) pathOf(ends linux.TCPEnds) int {
	if m.paths == nil {
		return -1
	}
	p := cflb.Packet{Src: ends.Local.Addr(), Dst: ends.Remote.Addr(), Protocol: 6, HasPorts: true,
		SrcPort: ends.Local.Port(), DstPort: ends.Remote.Port()}
	path := make([]int, len(m.plan.Choices))
	for i, choices := range m.plan.Choices {
		p.HopLimit = uint8(hopLimitOfHosts - i)
		digit, choice, _ := m.plan.Codec.Digit(p, 0)
		if choices > 1 && (choice != cflb.Controlled || digit >= choices) {
			return -1
		}
		if choices > 1 {
			path[i] = digit
		}
	}
	return slices.IndexFunc(m.paths, func(o []int) bool { return slices.Equal(o, path) })
}

// Waiting says whether connections are not known to be elephants yet: that depends on sockets.
func (m *Manager) Waiting() bool {
	for _, c := range m.known {
		if !c.elephant && !c.left {
			return true
		}
	}
	return false
}

// Pause is between two tries of a path. Where none is established, because the other end admits no
// more or the path is dead, it doubles with each try until it is PauseMax.
const (
	Pause    = time.Second
	PauseMax = 64 * time.Second
)

// Due lists the subflows that connections lack, at most one for each path.
func (m *Manager) Due(sockets map[linux.TCPEnds]linux.TCPProgress, now time.Time) (list []Subflow,
	err error) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		c := m.known[token]
		c.elephant = c.elephant || m.after == 0 || sockets[c.ends].Acked >= m.after
		if !c.elephant || c.left {
			continue
		}
		for number := range m.slots {
			if c.own[number] || now.Before(c.next[number]) {
				continue
			}
			c.next[number] = now.Add(min(Pause<<c.tries[number], PauseMax))
			one, err := m.subflow(token, c, number)
			if err != nil {
				return list, err
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// subflow gives a path a source port that the connection does not use.
func (m *Manager) subflow(token uint32, c *connection, number int) (s Subflow, err error) {
	s = Subflow{Token: token, Local: netip.AddrPortFrom(c.ends.Local.Addr(), 0),
		Remote: c.ends.Remote, number: number}
	if m.paths == nil {
		s.ID = c.nextID()
		return s, nil
	}
	s.Path = m.paths[number]
	plan := m.plan
	plan.Src, plan.Dst = c.ends.Local.Addr(), c.ends.Remote.Addr()
	plan.Port = c.ends.Remote.Port()
	for {
		m.plan.Seed++
		p, err := plan.Packet(s.Path, hopLimitOfHosts, m.plan.Seed)
		if err != nil {
			return s, err
		}
		if _, used := c.at[p.SrcPort]; used || p.SrcPort < 1024 {
			continue
		}
		s.ID, s.Local = c.nextID(), netip.AddrPortFrom(plan.Src, p.SrcPort)
		return s, nil
	}
}

func (c *connection) nextID() uint8 {
	c.ids = max(1, c.ids+1)
	return c.ids
}

// Opened says that the kernel has begun to open a subflow.
func (m *Manager) Opened(s Subflow) {
	if c := m.known[s.Token]; c != nil {
		c.own[s.number], c.at[s.Local.Port()], c.open[s.number] = true, s.number, s
		c.tries[s.number] = min(c.tries[s.number]+1, 16)
	}
}

// Open lists the subflows that were opened and have not ended.
func (m *Manager) Open() (list []Subflow) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		c := m.known[token]
		for _, number := range slices.Sorted(maps.Keys(c.open)) {
			list = append(list, c.open[number])
		}
	}
	return list
}

// A subflow is taken for dead if retransmissions time out and the other end is silent for so long.
// The kernel gives it no new data after four timeouts.
const (
	StalledTimeouts = 2
	StalledSilent   = 6 * time.Second
)

// Stalled lists the open subflows that get no answers, of connections of which another one does: to
// be ended, so that what they hold is sent by others at once, and their paths are tried anew.
func (m *Manager) Stalled(sockets map[linux.TCPEnds]linux.TCPProgress) (list []Subflow) {
	for _, s := range m.Open() {
		at := sockets[linux.TCPEnds{Local: s.Local, Remote: s.Remote}]
		if at.Timeouts >= StalledTimeouts && at.Silent >= StalledSilent &&
			m.known[s.Token].answered(sockets) {
			list = append(list, s)
		}
	}
	return list
}

// answered says whether a subflow of the connection waits for nothing.
func (c *connection) answered(sockets map[linux.TCPEnds]linux.TCPProgress) bool {
	if first, known := sockets[c.ends]; known && first.Timeouts == 0 {
		return true
	}
	for _, s := range c.open {
		at, known := sockets[linux.TCPEnds{Local: s.Local, Remote: s.Remote}]
		if known && at.Timeouts == 0 {
			return true
		}
	}
	return false
}

// Gone returns the names of subflows that ended with their connections since it was asked last.
func (m *Manager) Gone() []string {
	gone := m.gone
	m.gone = nil
	return gone
}

// Leave leaves a connection alone: it is another path manager's.
func (m *Manager) Leave(token uint32) {
	if c := m.known[token]; c != nil {
		c.left = true
	}
}
