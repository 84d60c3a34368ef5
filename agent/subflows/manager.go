// Package subflows decides which subflows an MPTCP connection gets in a network with controllable
// load balancing: one for each path, by the source port that takes it. The kernel's path manager in
// user-space mode (net.mptcp.path_manager=userspace) leaves that to a process. Decisions are pure;
// the kernel's netlink is with the caller.
package subflows

import (
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
	paths [][]int
	after uint64
	known map[uint32]*connection
}

// connection is one that this host has opened.
type connection struct {
	ends     linux.TCPEnds // of the first subflow
	elephant bool
	own      []bool // paths that have a subflow
	// when a path may be tried again
	next []time.Time
	// where the subflows run that were opened, by local port
	at   map[uint16]int
	ids  uint8
	left bool // another path manager's
}

// Subflow is one that is to be opened.
type Subflow struct {
	Token         uint32
	ID            uint8
	Local, Remote netip.AddrPort
	Path          []int // index of the next hop at each router
	number        int
}

// New makes a manager: connections get subflows once the other end has acknowledged so many bytes.
func New(plan pathtrace.Plan, after uint64) (*Manager, error) {
	paths, err := plan.Paths()
	return &Manager{plan: plan, paths: paths, after: after, known: map[uint32]*connection{}}, err
}

// Hear takes news of connections.
func (m *Manager) Hear(e linux.MPTCPEvent) {
	c := m.known[e.Token]
	switch {
	case e.Kind == linux.MPTCPEstablished && !e.Server && c == nil:
		c = &connection{ends: linux.TCPEnds{Local: e.Local, Remote: e.Remote},
			own: make([]bool, len(m.paths)), next: make([]time.Time, len(m.paths)),
			at: map[uint16]int{}}
		m.known[e.Token] = c
		if path := m.pathOf(c.ends); path >= 0 {
			c.own[path], c.at[e.Local.Port()] = true, path
		}
	case e.Kind == linux.MPTCPClosed:
		delete(m.known, e.Token)
	case e.Kind == linux.MPTCPSubflowClosed && c != nil:
		if path, ok := c.at[e.Local.Port()]; ok { // it gets another one
			c.own[path] = false
			delete(c.at, e.Local.Port())
		}
	}
}

const hopLimitOfHosts = 64

// pathOf is the number of the path that a subflow takes, or -1 if routers hash it.
func (m *Manager) pathOf(ends linux.TCPEnds) int {
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

// Waiting says whether connections are not known to be elephants yet: then acked has to be asked.
func (m *Manager) Waiting() bool {
	for _, c := range m.known {
		if !c.elephant && !c.left {
			return true
		}
	}
	return false
}

// Pause is between tries of a path: one that fails at once is not tried without end.
const Pause = time.Second

// Due lists the subflows that connections lack, at most one for each path. Acked says how much has
// been acknowledged.
func (m *Manager) Due(acked map[linux.TCPEnds]uint64, now time.Time) (list []Subflow,
	err error) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		c := m.known[token]
		c.elephant = c.elephant || m.after == 0 || acked[c.ends] >= m.after
		if !c.elephant || c.left {
			continue
		}
		for number, path := range m.paths {
			if c.own[number] || now.Before(c.next[number]) {
				continue
			}
			c.next[number] = now.Add(Pause)
			one, err := m.subflow(token, c, path)
			if err != nil {
				return list, err
			}
			one.number = number
			list = append(list, one)
		}
	}
	return list, nil
}

// subflow gives a path a source port that the connection does not use.
func (m *Manager) subflow(token uint32, c *connection, path []int) (s Subflow, err error) {
	plan := m.plan
	plan.Src, plan.Dst = c.ends.Local.Addr(), c.ends.Remote.Addr()
	plan.Port = c.ends.Remote.Port()
	for {
		m.plan.Seed++
		p, err := plan.Packet(path, hopLimitOfHosts, m.plan.Seed)
		if err != nil {
			return s, err
		}
		if _, used := c.at[p.SrcPort]; used || p.SrcPort < 1024 {
			continue
		}
		c.ids = max(1, c.ids+1)
		return Subflow{Token: token, ID: c.ids, Path: path, Remote: c.ends.Remote,
			Local: netip.AddrPortFrom(plan.Src, p.SrcPort)}, nil
	}
}

// Opened says that the kernel opened a subflow.
func (m *Manager) Opened(s Subflow) {
	if c := m.known[s.Token]; c != nil {
		c.own[s.number], c.at[s.Local.Port()] = true, s.number
	}
}

// Leave leaves a connection alone: it is another path manager's.
func (m *Manager) Leave(token uint32) {
	if c := m.known[token]; c != nil {
		c.left = true
	}
}
