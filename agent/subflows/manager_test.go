package subflows

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/linux"
	"sextant/packet/cflb"
)

func newManager(t *testing.T, after uint64) (*Manager, *cflb.Codec) {
	t.Helper()
	codec, err := cflb.New(cflb.Defaults(cflb.SourcePort, 7, [cflb.KeyLength]byte{5}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := New([]Rule{{Name: "all", IPv4: codec, Choices: []int{7}}}, after, 3)
	if err != nil {
		t.Fatal(err)
	}
	return m, codec
}

var ends = linux.TCPEnds{Local: netip.MustParseAddrPort("10.1.0.1:41000"),
	Remote: netip.MustParseAddrPort("10.2.0.1:5001")}

func established(token uint32, server bool) linux.MPTCPEvent {
	return linux.MPTCPEvent{Kind: linux.MPTCPEstablished, Token: token, Local: ends.Local,
		Remote: ends.Remote, Server: server}
}

func due(t *testing.T, m *Manager, acked uint64, after ...time.Duration) []Subflow {
	t.Helper()
	now := time.Unix(1e9, 0)
	for _, pause := range after {
		now = now.Add(pause)
	}
	for token := range m.known {
		m.Look(map[linux.TCPEnds]linux.TCPProgress{ends: {Acked: acked,
			MPTCP: linux.MPTCPSubflow{Token: token, First: true}}}, false)
	}
	list, err := m.Due(now)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A connection that has carried enough gets a subflow on each path that it lacks, by a port of its
// own that a router decodes to that path.
func TestEveryPathGetsASubflow(t *testing.T) {
	m, codec := newManager(t, 1000)
	m.Hear(established(1, false))
	if list := due(t, m, 999); len(list) > 0 || !m.Waiting() {
		t.Errorf("%d subflows before the connection is an elephant; waiting %t", len(list),
			m.Waiting())
	}
	list := due(t, m, 1000)
	paths, ids, ports := map[int]bool{}, map[uint8]bool{}, map[uint16]bool{}
	group, err := codec.NewGroup(slices.Repeat([]uint32{1}, 7))
	if err != nil {
		t.Fatal(err)
	}
	decode := func(port uint16) (int, cflb.Choice) {
		return codec.NextHop(cflb.Packet{Src: ends.Local.Addr(), Dst: ends.Remote.Addr(),
			Protocol: 6, HasPorts: true, SrcPort: port, DstPort: ends.Remote.Port(),
			HopLimit: 64}, 9, group)
	}
	if path, choice := decode(ends.Local.Port()); choice == cflb.Controlled {
		paths[path] = true // the first subflow has it by chance
	}
	for _, s := range list {
		path, choice := decode(s.Local.Port())
		if choice != cflb.Controlled || path != s.Path[0] || paths[path] || ids[s.ID] ||
			ports[s.Local.Port()] || s.ID == 0 || s.Remote != ends.Remote {
			t.Errorf("subflow %+v: a router takes %d (%s)", s, path, choice)
		}
		paths[path], ids[s.ID], ports[s.Local.Port()] = true, true, true
		m.Opened(s)
	}
	if len(paths) != 7 || len(due(t, m, 1000, Pause)) > 0 || m.Waiting() {
		t.Errorf("%d paths have subflows, want 7", len(paths))
	}
}

// A subflow that ends is replaced by one with another port, as long as the connection lives.
func TestAnEndedSubflowIsReplaced(t *testing.T) {
	m, _ := newManager(t, 0)
	m.Hear(established(1, false))
	list := due(t, m, 0)
	for _, s := range list {
		m.Opened(s)
	}
	m.Hear(linux.MPTCPEvent{Kind: linux.MPTCPSubflowClosed, Token: 1, Local: list[2].Local,
		Remote: ends.Remote})
	if soon := due(t, m, 0, Pause-1); len(soon) > 0 {
		t.Errorf("within a second there is %+v", soon)
	}
	again := due(t, m, 0, Pause)
	if len(again) != 1 || !slices.Equal(again[0].Path, list[2].Path) ||
		again[0].Local == list[2].Local {
		t.Errorf("for %+v there is %+v", list[2], again)
	}
	m.Hear(linux.MPTCPEvent{Kind: linux.MPTCPClosed, Token: 1})
	if list := due(t, m, 0, 2*Pause); len(list) > 0 {
		t.Errorf("a connection that has ended gets %+v", list)
	}
}

// Where the other end refuses subflows, each path is tried again after 1, 2, 4, ... 64 seconds, and
// after one second again once one was established.
func TestRefusedSubflowsAreTriedLessOften(t *testing.T) {
	m, _ := newManager(t, 0)
	m.Hear(established(1, false))
	begun, closed := linux.MPTCPSubflowEstablished, linux.MPTCPSubflowClosed
	var at time.Duration
	var gaps []time.Duration
	try := func(kinds ...int) {
		for gap := time.Duration(0); ; gap += Pause {
			list := due(t, m, 0, at+gap)
			if len(list) == 0 {
				continue
			}
			at += gap
			gaps = append(gaps, gap/time.Second)
			for _, s := range list {
				m.Opened(s)
				for _, kind := range kinds {
					m.Hear(linux.MPTCPEvent{Kind: uint8(kind), Token: 1, Local: s.Local,
						Remote: ends.Remote})
				}
			}
			return
		}
	}
	for range 10 {
		try(closed)
	}
	try(begun, closed)
	try(closed) // its pause was fixed when the one before was tried
	try(closed)
	if want := []time.Duration{0, 1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 1}; !slices.Equal(gaps,
		want) {
		t.Errorf("seconds between tries: %d, want %d", gaps, want)
	}
}

// socketsOf are the sockets of connection 1: the first one, and subflows that were opened.
func socketsOf(list []Subflow, progress func(number int) linux.TCPProgress) (
	sockets map[linux.TCPEnds]linux.TCPProgress) {
	first := progress(-1)
	first.MPTCP = linux.MPTCPSubflow{Token: 1, First: true}
	sockets = map[linux.TCPEnds]linux.TCPProgress{ends: first}
	for _, s := range list {
		p := progress(s.number)
		p.MPTCP = linux.MPTCPSubflow{Token: s.Token, ID: s.ID, Joined: true, Backup: s.Backup}
		sockets[linux.TCPEnds{Local: s.Local, Remote: s.Remote}] = p
	}
	return sockets
}

// A subflow that gets no answers is named, once it has waited long enough and another one of its
// connection gets some: those of a connection without any wait with it.
func TestStalledSubflows(t *testing.T) {
	m, _ := newManager(t, 0)
	m.Hear(established(1, false))
	list := due(t, m, 0)
	for _, s := range list {
		m.Opened(s)
	}
	dead := linux.TCPProgress{Timeouts: StalledTimeouts, Silent: StalledSilent}
	idle := linux.TCPProgress{Silent: time.Hour}
	for name, c := range map[string]struct {
		others, third linux.TCPProgress
		want          []string
	}{
		"one is dead":         {linux.TCPProgress{}, dead, []string{list[2].Name()}},
		"others have no data": {idle, dead, []string{list[2].Name()}},
		"all are dead":        {dead, dead, nil},
		"it has no data":      {linux.TCPProgress{}, idle, nil},
		"the first timeout of it": {linux.TCPProgress{},
			linux.TCPProgress{Timeouts: 1, Silent: time.Hour}, nil},
		"it was answered": {linux.TCPProgress{},
			linux.TCPProgress{Timeouts: 9, Silent: StalledSilent - 1}, nil},
	} {
		m.Look(socketsOf(list, func(number int) linux.TCPProgress {
			if number == list[2].number {
				return c.third
			}
			return c.others
		}), false)
		var got []string
		for _, s := range m.Stalled() {
			got = append(got, s.Name())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: stalled are %q, want %q", name, got, c.want)
		}
	}
	m.Look(nil, false)
	if got := m.Stalled(); len(got) > 0 {
		t.Errorf("without a word of the sockets, stalled are %+v", got)
	}
}

// Connections that the other end opened, and those of another path manager, are left alone.
func TestOthersAreLeftAlone(t *testing.T) {
	m, _ := newManager(t, 0)
	m.Hear(established(1, true))
	if list := due(t, m, 0); len(list) > 0 {
		t.Errorf("a connection of the other end gets %+v", list)
	}
	m.Hear(established(2, false))
	list := due(t, m, 0)
	m.Refused(list[0].Token)
	if list := due(t, m, 0, Pause); len(list) > 0 || m.Waiting() {
		t.Errorf("a connection of another path manager gets %+v", list)
	}
	m.Hear(established(3, false))
	list = due(t, m, 0, 2*Pause)
	m.Opened(list[0])
	if m.Refused(3); m.IsLeft(3) {
		t.Error("a connection with a subflow that was opened here is left alone")
	}
}

// Subflows whose paths a controller chooses are due without a port, as many as were asked for;
// those that are open are listed, and named when their connection ends.
func TestScheduledSubflows(t *testing.T) {
	m, err := New([]Rule{{Scheduled: 2}}, 1000, 3)
	if err != nil {
		t.Fatal(err)
	}
	m.Hear(established(7, false))
	if list := due(t, m, 999); len(list) > 0 {
		t.Errorf("%d subflows of what is no elephant", len(list))
	}
	list := due(t, m, 1000)
	if len(list) != 2 || list[0].Name() == list[1].Name() || list[0].ID == list[1].ID {
		t.Fatalf("due are %+v", list)
	}
	for i, s := range list {
		if s.Local.Port() != 0 || s.Local.Addr() != ends.Local.Addr() || s.Path != nil {
			t.Errorf("%+v has a path already", s)
		}
		s.Local = netip.AddrPortFrom(s.Local.Addr(), uint16(20000+i))
		m.Opened(s)
		list[i] = s
	}
	open := m.Open()
	if len(open) != 2 || open[1].Local.Port() != 20001 || len(due(t, m, 1000, Pause)) > 0 {
		t.Errorf("open are %+v", open)
	}
	m.Hear(linux.MPTCPEvent{Kind: linux.MPTCPSubflowClosed, Token: 7, Local: list[0].Local})
	again := due(t, m, 1000, Pause)
	if len(m.Open()) != 1 || len(again) != 1 || again[0].Name() != list[0].Name() {
		t.Errorf("after the end of one: open %+v, due %+v", m.Open(), again)
	}
	m.Hear(linux.MPTCPEvent{Kind: linux.MPTCPClosed, Token: 7})
	if gone := m.Gone(); !slices.Equal(gone, []string{list[1].Name()}) || len(m.Gone()) > 0 {
		t.Errorf("gone are %q", gone)
	}
}
