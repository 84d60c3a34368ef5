package datapath

import (
	"encoding/binary"
	"net/netip"

	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// Go twins of the structures of bpf/headend.c and bpf/egress.c; see layout.go.

const (
	headerWords = 24 // HEADER_WORDS
	scheduleMax = 64 // SCHEDULE_MAX
	listsMax    = 8  // LISTS_MAX
	membersMax  = 8  // MEMBERS_MAX
	mergeSIDs   = 16 // MERGE_SIDS_MAX
	dscpAny     = 0xff

	numberWord = 8 // bytes
)

type headendSettings struct {
	Domain        domain
	LoopAddresses [12]byte
	LoopInner     uint32
	LoopOuter     uint32
	Side          uint8
	Reserved      [3]uint8
}

type match struct {
	Source, Destination prefix
	SourcePorts         [2]uint16
	DestinationPorts    [2]uint16
	Family              uint8
	Protocol            uint8
	DSCP                uint8
	Reserved            [5]uint8
}

type list struct {
	Header     [headerWords * 8]byte
	Hop        uint16
	Words      uint8
	Next       uint8
	Redundancy uint8
	NumberAt   [2]uint8
	Reserved   uint8
}

type rule struct {
	Match    match
	Policy   uint32
	MTU      uint16
	Action   uint8
	Lists    uint8
	Shares   [listsMax]uint32
	Schedule [scheduleMax]uint8
	Turns    uint8
	Reserved [7]uint8
	List     [listsMax]list
}

type flowKey struct {
	Source, Destination address
	Ports               [4]byte // network order
	Protocol            uint8
	IPv4                uint8
	Reserved            uint16
}

type flowPath struct {
	Until    uint64
	List     uint32
	Reserved uint32
}

type sequence struct {
	Next     uint64
	Turn     uint64
	Epoch    uint32 // plus 1; 0: none yet
	Reserved uint32
}

type policyTraffic struct {
	Lists [listsMax]Traffic
}

type mergeSettings struct {
	Domain domain
	SIDs   [mergeSIDs]mergeSID
}

type mergeSID struct {
	Prefix   prefix
	Mark     uint32
	Used     uint8
	Reserved [3]uint8
}

type memberKey struct {
	SID  uint32
	Flow uint32
}

type member struct {
	Instance uint32
	Path     uint32
}

type recoverySettings struct {
	ResetNs uint64
	History uint32
	Blocks  uint32
	Bits    uint32
	Ordered uint32
	// Which round of the ring a number is of.
	RoundShift uint32
	RoundMask  uint32
}

type orderNote struct {
	Addresses [12]byte
	EtherType [2]byte // network order
	Instance  uint16
	Number    uint32
	L2        uint16
	// In which the number was given: another one's numbers are of no order with it.
	Generation uint16
}

type recovery struct {
	State    uint64
	Accepted uint64
	First    uint64
}

type recoverySlot struct {
	Recovery recovery
	Reserved [5]uint64
}

type recoveryCounters struct {
	Passed     uint64
	Duplicate  uint64
	Rogue      uint64
	OldEpoch   uint64
	OutOfOrder uint64
	Expected   uint64
	Resets     uint64
	Contended  uint64
}

type pathCounters struct {
	Packets      uint64
	Bytes        uint64
	First        uint64
	SeenNs       uint64
	DelaySum     int64
	DelaySquares uint64
	Delays       uint64
	DelayLeast   int32
	DelayMost    int32
}

type instanceCounters struct {
	Recovery recoveryCounters
	Paths    [membersMax]pathCounters
}

// ruleOf returns an entry of the table as the program reads it. Hops are numbers for first
// segments.
func ruleOf(e srpolicy.Entry, hop func(srpolicy.Header) uint16) rule {
	r := rule{
		Match: matchOf(e.Match), Policy: e.Index, MTU: e.MTU, Action: uint8(e.Action),
		Lists: uint8(len(e.Lists)), Turns: uint8(len(e.Turns)),
	}
	copy(r.Shares[:], e.Shares)
	copy(r.Schedule[:], e.Turns)
	for i, h := range e.Lists {
		r.List[i] = listOf(h, hop)
	}
	return r
}

func listOf(h srpolicy.Header, hop func(srpolicy.Header) uint16) list {
	l := list{
		Hop: hop(h), Words: uint8(len(h.Octets) / numberWord), Next: uint8(h.NextAt),
		Redundancy: uint8(h.Redundancy),
		NumberAt: [2]uint8{uint8(h.NumberAt[0] / numberWord),
			uint8(h.NumberAt[1] / numberWord)},
	}
	copy(l.Header[:], h.Octets)
	return l
}

func flowKeyOf(t flow.Tuple) flowKey {
	k := flowKey{Source: addressOf(t.Src), Destination: addressOf(t.Dst), Protocol: t.Protocol}
	if t.Src.Is4() {
		k.IPv4 = 1
	}
	binary.BigEndian.PutUint16(k.Ports[:], t.SrcPort)
	binary.BigEndian.PutUint16(k.Ports[2:], t.DstPort)
	return k
}

func (k flowKey) tuple() flow.Tuple {
	t := flow.Tuple{Src: netip.AddrFrom16(k.Source), Dst: netip.AddrFrom16(k.Destination),
		SrcPort: binary.BigEndian.Uint16(k.Ports[:]), Protocol: k.Protocol,
		DstPort: binary.BigEndian.Uint16(k.Ports[2:])}
	if k.IPv4 != 0 {
		t.Src, t.Dst = t.Src.Unmap(), t.Dst.Unmap()
	}
	return t
}

func matchOf(m srpolicy.Match) match {
	out := match{
		SourcePorts: portsOf(m.SourcePorts), DestinationPorts: portsOf(m.DestinationPorts),
		Protocol: m.Protocol, DSCP: dscpAny,
	}
	if m.ByDSCP {
		out.DSCP = m.DSCP
	}
	if m.Source.IsValid() {
		out.Source, out.Family = steerPrefix(m.Source)
	}
	if m.Destination.IsValid() {
		out.Destination, out.Family = steerPrefix(m.Destination)
	}
	return out
}

func steerPrefix(p netip.Prefix) (prefix, uint8) {
	if p.Addr().Is4() {
		return prefix{Address: addressOf(p.Addr()), Mask: maskOf(p.Bits() + 96)}, 4
	}
	return prefixOf(p), 6
}

func portsOf(p srpolicy.Ports) [2]uint16 {
	if p == (srpolicy.Ports{}) {
		return [2]uint16{0, 0xffff}
	}
	return [2]uint16{p.First, p.Last}
}
