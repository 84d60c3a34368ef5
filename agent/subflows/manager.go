// Package subflows is role subflows: MPTCP connections of a host get subflows in a network with
// controllable load balancing, one for each path, by the source port that takes it, or as many as a
// controller is to give paths. The kernel's path manager in user-space mode
// (net.mptcp.path_manager=userspace) leaves that to a process.
//
// Manager decides; Runner has the kernel's netlink and the controller.
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
	rules []plannedRule
	after uint64
	seed  uint64 // of selectors: chance
	known map[uint32]*connection
	gone  []string // names of subflows that ended with their connections
}

// Rule says which subflows connections to a destination get.
type Rule struct {
	Name        string
	Destination netip.Prefix // the zero prefix: any
	// Scheduled is how many subflows get paths of a controller; 0: there is one on each path
	Scheduled int
	Choices   []int // how many next hops each router on the way has, the first one's first
	// how routers read paths, of IPv4 and of IPv6; nil: connections of that version get none
	IPv4, IPv6 *cflb.Codec
}

// SlotsMax is how many subflows a connection is given.
const SlotsMax = 8

// plannedRule is a rule with the paths that it leads to.
type plannedRule struct {
	Rule
	paths [][]int // nil: a controller chooses
	slots int     // subflows of a connection
}

// connection is one that this host has opened.
type connection struct {
	ends     linux.TCPEnds // of the first subflow
	rule     *plannedRule  // nil: it gets no subflows
	elephant bool
	slots    []slot
	surplus  []Subflow          // that were opened here, and none wants
	acked    uint64             // octets, over all subflows
	first    *linux.TCPProgress // nil: it was not there when sockets were looked at
	mine     bool               // a subflow was opened here
	left     bool               // another path manager's
}

// slot is the place of a subflow: that of a path, or of one that a controller gives.
type slot struct {
	port        uint16 // local one of its subflow; 0: there is none
	established bool
	ours        bool               // opened here, so it may be ended here
	backup      bool               // as the last one was
	at          *linux.TCPProgress // as first
	// when the path may be tried again, and how often it was since one was established
	next  time.Time
	tries int
}

// Subflow is one that is to be opened, or was.
type Subflow struct {
	Token         uint32
	ID            uint8
	Local, Remote netip.AddrPort
	Path          []int  // index of the next hop at each router; nil: a controller says it
	Route         string // the path as people read it
	Backup        bool
	number        int
}

// Name is that by which a controller is asked for the path: no other subflow has it.
func (s Subflow) Name() string {
	return fmt.Sprintf("mptcp %s %08x %d", s.Local.Addr(), s.Token, s.number)
}

// firstID is the ID of the subflow of the first slot; each slot has one, so that a manager that
// starts knows the slots of subflows: the kernel's own path managers and others count from 1.
const firstID = SlotsMax

// New makes a manager: connections get subflows of the first rule that they match, once the other
// end has acknowledged so many bytes. The seed is chance.
func New(rules []Rule, after, seed uint64) (*Manager, error) {
	m := &Manager{after: after, seed: seed, known: map[uint32]*connection{}}
	for _, r := range rules {
		p := plannedRule{Rule: r, slots: r.Scheduled}
		if r.Scheduled == 0 {
			if err := p.plan(); err != nil {
				return nil, err
			}
		}
		if p.slots > SlotsMax {
			return nil, fmt.Errorf("%d paths; a connection has at most %d subflows", p.slots,
				SlotsMax)
		}
		m.rules = append(m.rules, p)
	}
	return m, nil
}

// plan lists the paths of a rule, which the selectors of each IP version have to name.
func (r *plannedRule) plan() (err error) {
	for _, codec := range []*cflb.Codec{r.IPv4, r.IPv6} {
		if codec == nil {
			continue
		}
		plan := pathtrace.Plan{Codec: codec, Choices: r.Choices}
		if r.paths, err = plan.Paths(); err != nil {
			return err
		}
	}
	r.slots = len(r.paths)
	return nil
}

// ruleOf is the rule of a connection; nil: it gets no subflows.
func (m *Manager) ruleOf(ends linux.TCPEnds) *plannedRule {
	for i := range m.rules {
		r := &m.rules[i]
		if r.Destination.IsValid() && !r.Destination.Contains(ends.Remote.Addr()) {
			continue
		}
		if r.Scheduled > 0 || r.codec(ends) != nil {
			return r
		}
		return nil
	}
	return nil
}

func (r *Rule) codec(ends linux.TCPEnds) *cflb.Codec {
	if ends.Remote.Addr().Is4() {
		return r.IPv4
	}
	return r.IPv6
}

func (m *Manager) add(token uint32, ends linux.TCPEnds) *connection {
	c := &connection{ends: ends, rule: m.ruleOf(ends)}
	if c.rule != nil {
		c.slots = make([]slot, c.rule.slots)
	}
	m.known[token] = c
	return c
}

// Hear takes news of connections.
func (m *Manager) Hear(e linux.MPTCPEvent) {
	c := m.known[e.Token]
	switch {
	case e.Kind == linux.MPTCPEstablished && !e.Server && c == nil:
		c = m.add(e.Token, linux.TCPEnds{Local: e.Local, Remote: e.Remote})
		if path := c.pathOf(c.ends); path >= 0 {
			c.slots[path].port, c.slots[path].established = e.Local.Port(), true
		}
	case e.Kind == linux.MPTCPClosed && c != nil:
		m.forget(e.Token)
	case e.Kind == linux.MPTCPSubflowEstablished && c != nil:
		if s := c.slotOf(e.Local.Port()); s != nil {
			s.tries, s.established = 0, true
		}
	case e.Kind == linux.MPTCPSubflowClosed && c != nil:
		if s := c.slotOf(e.Local.Port()); s != nil { // it gets another one
			s.clear()
		}
	}
}

func (m *Manager) forget(token uint32) {
	c := m.known[token]
	for _, s := range c.open(token) {
		m.gone = append(m.gone, s.Name())
	}
	delete(m.known, token)
}

func (c *connection) slotOf(port uint16) *slot {
	for i := range c.slots {
		if c.slots[i].port == port && port != 0 {
			return &c.slots[i]
		}
	}
	return nil
}

func (s *slot) clear() { s.port, s.ours, s.established, s.at = 0, false, false, nil }

const hopLimitOfHosts = 64

// pathOf is the number of the path that a subflow takes, or -1 if routers hash it or a controller
// is to say it.
func (c *connection) pathOf(ends linux.TCPEnds) int {
	if c.rule == nil || c.rule.Scheduled > 0 {
		return -1
	}
	p := cflb.Packet{Src: ends.Local.Addr(), Dst: ends.Remote.Addr(), Protocol: 6, HasPorts: true,
		SrcPort: ends.Local.Port(), DstPort: ends.Remote.Port()}
	path := make([]int, len(c.rule.Choices))
	for i, choices := range c.rule.Choices {
		p.HopLimit = uint8(hopLimitOfHosts - i)
		digit, choice, _ := c.rule.codec(ends).Digit(p, 0)
		if choices > 1 && (choice != cflb.Controlled || digit >= choices) {
			return -1
		}
		if choices > 1 {
			path[i] = digit
		}
	}
	return slices.IndexFunc(c.rule.paths, func(o []int) bool { return slices.Equal(o, path) })
}

// Waiting says whether connections are not known to be elephants yet: that depends on sockets.
func (m *Manager) Waiting() bool {
	for _, c := range m.known {
		if !c.elephant && !c.left && c.rule != nil {
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
func (m *Manager) Due(now time.Time) (list []Subflow, err error) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		c := m.known[token]
		if c.elephant = c.elephant || m.after == 0 || c.acked >= m.after; !c.elephant || c.left {
			continue
		}
		for number := range c.slots {
			s := &c.slots[number]
			if s.port != 0 || now.Before(s.next) {
				continue
			}
			s.next = now.Add(min(Pause<<s.tries, PauseMax))
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
		ID: uint8(firstID + number), Remote: c.ends.Remote, Backup: c.slots[number].backup,
		number: number}
	if c.rule.Scheduled > 0 {
		return s, nil
	}
	s.Path = c.rule.paths[number]
	plan := pathtrace.Plan{Codec: c.rule.codec(c.ends), Src: c.ends.Local.Addr(),
		Dst: c.ends.Remote.Addr(), Port: c.ends.Remote.Port(), Choices: c.rule.Choices}
	for {
		m.seed++
		p, err := plan.Packet(s.Path, hopLimitOfHosts, m.seed)
		if err != nil {
			return s, err
		}
		if p.SrcPort >= 1024 && p.SrcPort != c.ends.Local.Port() && c.slotOf(p.SrcPort) == nil {
			s.Local = netip.AddrPortFrom(plan.Src, p.SrcPort)
			return s, nil
		}
	}
}

// Opened says that the kernel has begun to open a subflow.
func (m *Manager) Opened(s Subflow) {
	if c := m.known[s.Token]; c != nil {
		own := &c.slots[s.number]
		own.port, own.ours, own.established, c.mine = s.Local.Port(), true, false, true
		own.tries = min(own.tries+1, 16)
	}
}

// Open lists the subflows that were opened and have not ended.
func (m *Manager) Open() (list []Subflow) {
	for _, token := range slices.Sorted(maps.Keys(m.known)) {
		list = append(list, m.known[token].open(token)...)
	}
	return list
}

func (c *connection) open(token uint32) (list []Subflow) {
	for number, s := range c.slots {
		if s.ours {
			list = append(list, c.opened(token, number))
		}
	}
	return list
}

// opened is the subflow of a slot.
func (c *connection) opened(token uint32, number int) Subflow {
	own := c.slots[number]
	s := Subflow{Token: token, ID: uint8(firstID + number), Remote: c.ends.Remote,
		Backup: own.backup,
		Local:  netip.AddrPortFrom(c.ends.Local.Addr(), own.port), number: number}
	if c.rule.Scheduled == 0 {
		s.Path = c.rule.paths[number]
	}
	return s
}

// Gone returns the names of subflows that ended with their connections since it was asked last.
func (m *Manager) Gone() []string {
	gone := m.gone
	m.gone = nil
	return gone
}

// Refused says that the kernel takes a connection for another path manager's: it is left alone, if
// no subflow was opened here.
func (m *Manager) Refused(token uint32) {
	if c := m.known[token]; c != nil && !c.mine {
		c.left = true
		for i := range c.slots {
			c.slots[i].clear()
		}
	}
}

// IsLeft reports whether a connection is left alone, or gone.
func (m *Manager) IsLeft(token uint32) bool {
	c := m.known[token]
	return c == nil || c.left
}
