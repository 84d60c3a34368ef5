package subflows

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"sextant/linux"
	"sextant/packet/cflb"
)

func nothing(int) linux.TCPProgress { return linux.TCPProgress{} }

// opened is a connection of a manager, and the subflows that it opened for it.
func opened(t *testing.T, m *Manager) []Subflow {
	t.Helper()
	m.Hear(established(1, false))
	list := due(t, m, 0)
	for _, s := range list {
		m.Opened(s)
	}
	if len(list) < 6 {
		t.Fatalf("%d subflows are due", len(list))
	}
	return list
}

// A manager that starts finds the connections of one before by their sockets: it opens what lacks
// alone, and ends what is stalled.
func TestConnectionsAreFoundAgain(t *testing.T) {
	before, _ := newManager(t, 1000)
	before.after = 0
	list := opened(t, before)
	m, codec := newManager(t, 1<<40)
	there := slices.Delete(slices.Clone(list), 2, 3)
	dead := linux.TCPProgress{Timeouts: StalledTimeouts, Silent: StalledSilent}
	m.Look(socketsOf(there, func(number int) linux.TCPProgress {
		if number == there[3].number {
			return dead
		}
		return linux.TCPProgress{}
	}), false)
	if got := m.Open(); len(got) != len(there) {
		t.Fatalf("open are %+v, want %+v", got, there)
	}
	for i, s := range m.Open() {
		if s.Local != there[i].Local || s.ID != there[i].ID || s.Name() != there[i].Name() ||
			!slices.Equal(s.Path, there[i].Path) {
			t.Errorf("subflow %+v was found as %+v", there[i], s)
		}
	}
	if got := m.Stalled(); len(got) != 1 || got[0].Local != there[3].Local {
		t.Errorf("stalled are %+v, want %+v", got, there[3])
	}
	now := time.Unix(1e9, 0)
	again, err := m.Due(now)
	if err != nil || len(again) != 1 || !slices.Equal(again[0].Path, list[2].Path) {
		t.Fatalf("due are %+v (%v), want path %v", again, err, list[2].Path)
	}
	if digit, _, _ := codec.Digit(packetOf(again[0]), 0); digit != list[2].Path[0] {
		t.Errorf("the port of path %v takes %d", list[2].Path, digit)
	}
	if again[0].ID != list[2].ID {
		t.Errorf("the ID is %d, that of the slot %d", again[0].ID, list[2].ID)
	}
	if got := m.Connections(); len(got) != 1 || got[0].State != Managed || got[0].Rule != "all" {
		t.Errorf("connections are %+v", got)
	}
}

// Sockets of connections that others opened to this host, of plain TCP, and of other path managers
// with IDs of their own make nothing due: the latter are known, and left once the kernel says so.
func TestStrangersAreNotTaken(t *testing.T) {
	m, _ := newManager(t, 1000)
	other := linux.TCPEnds{Local: netip.MustParseAddrPort("10.1.0.1:5001"), Remote: ends.Remote}
	m.Look(map[linux.TCPEnds]linux.TCPProgress{
		ends:  {Acked: 1 << 30},
		other: {Acked: 1 << 30, MPTCP: linux.MPTCPSubflow{Token: 9}},
	}, false)
	if list, err := m.Due(time.Unix(1e9, 0)); len(list) > 0 || err != nil || len(m.known) > 0 {
		t.Errorf("due are %+v, %v", list, err)
	}
	own := map[linux.TCPEnds]linux.TCPProgress{
		ends:  {Acked: 1 << 30, MPTCP: linux.MPTCPSubflow{Token: 9, First: true}},
		other: {MPTCP: linux.MPTCPSubflow{Token: 9, ID: 1, Joined: true}},
	}
	m.Look(own, false)
	if len(m.Open()) > 0 || len(m.Surplus()) > 0 {
		t.Errorf("subflows of another path manager are taken: %+v, %+v", m.Open(), m.Surplus())
	}
	m.Refused(9)
	if m.Look(own, false); !m.IsLeft(9) || m.Connections()[0].State != Left {
		t.Errorf("the connection is not left: %+v", m.Connections())
	}
	if m.Look(nil, false); len(m.known) > 0 {
		t.Error("a connection that was left is known after its end")
	}
}

// The end of a subflow whose news was lost is seen by its socket, that of a connection when news is
// known to be lost.
func TestLostNewsIsMadeUpFor(t *testing.T) {
	m, _ := newManager(t, 0)
	list := opened(t, m)
	m.Look(socketsOf(list, nothing), false)
	if again := due(t, m, 0); len(again) > 0 {
		t.Errorf("due are %+v", again)
	}
	m, _ = newManager(t, 0)
	list = opened(t, m)
	m.Look(socketsOf(list, nothing), false)
	m.Look(socketsOf(list[1:], nothing), false)
	again, err := m.Due(time.Unix(1e9, 0).Add(Pause))
	if err != nil || len(again) != 1 || !slices.Equal(again[0].Path, list[0].Path) {
		t.Errorf("after the end of %+v due are %+v, %v", list[0], again, err)
	}
	if m.Look(nil, false); len(m.known) != 1 {
		t.Error("a connection without established sockets ended without news")
	}
	if m.Look(nil, true); len(m.known) > 0 || len(m.Gone()) == 0 {
		t.Error("a connection whose end was not heard of lives")
	}
}

// What another rule had opened is ended, and a backup is replaced by one.
func TestRulesThatChange(t *testing.T) {
	before, codec := newManager(t, 0)
	list := opened(t, before)
	for i := range list {
		list[i].Backup = list[i].number == 1
	}
	sockets := socketsOf(list, nothing)
	m, err := New([]Rule{
		{Name: "elsewhere", Destination: netip.MustParsePrefix("10.9.0.0/16"), Scheduled: 2},
		{Name: "fewer", Destination: netip.MustParsePrefix("10.2.0.0/16"), IPv4: codec,
			Choices: []int{2}},
		{Name: "rest", Scheduled: 1}}, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	m.Look(sockets, false)
	var kept, ended []Subflow
	for _, s := range list {
		if s.Path[0] < 2 {
			kept = append(kept, s)
		} else {
			ended = append(ended, s)
		}
	}
	if got := m.Surplus(); len(got) != len(ended) {
		t.Errorf("%d are ended, want %d", len(got), len(ended))
	}
	if got := m.Connections()[0]; got.Rule != "fewer" || len(m.Open()) != len(kept) {
		t.Errorf("the connection is %+v", got)
	}
	for _, s := range kept {
		m.Hear(linux.MPTCPEvent{Kind: linux.MPTCPSubflowClosed, Token: 1, Local: s.Local})
	}
	again, err := m.Due(time.Unix(1e9, 0))
	if err != nil || len(again) != len(kept) {
		t.Fatalf("due are %+v, %v", again, err)
	}
	for _, s := range again {
		if s.Backup != (s.number == 1) {
			t.Errorf("path %d: backup %t", s.number, s.Backup)
		}
	}
}

// packetOf is the first packet of a subflow.
func packetOf(s Subflow) cflb.Packet {
	return cflb.Packet{Src: s.Local.Addr(), Dst: s.Remote.Addr(), Protocol: 6, HasPorts: true,
		SrcPort: s.Local.Port(), DstPort: s.Remote.Port(), HopLimit: 64}
}

// Subflows that a controller gave paths have the names after a restart that they had before.
func TestScheduledAreFoundAgain(t *testing.T) {
	rules := []Rule{{Scheduled: 3}}
	before, err := New(rules, 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	before.Hear(established(1, false))
	list := due(t, before, 0)
	for i := range list {
		list[i].Local = netip.AddrPortFrom(ends.Local.Addr(), uint16(20000+i))
		before.Opened(list[i])
	}
	m, err := New(rules, 1<<40, 3)
	if err != nil {
		t.Fatal(err)
	}
	m.Look(socketsOf(list[1:], nothing), false)
	if got := names(m.Open()); !slices.Equal(got, names(list[1:])) {
		t.Errorf("open are %q, want %q", got, names(list[1:]))
	}
	if again, err := m.Due(time.Unix(1e9, 0)); err != nil || !slices.Equal(names(again),
		names(list[:1])) {
		t.Errorf("due are %q (%v), want %q", names(again), err, names(list[:1]))
	}
}
