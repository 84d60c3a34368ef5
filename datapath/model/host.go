package model

import (
	"net/netip"
	"time"

	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// Host is a node that serves flows: its tables, and the questions it asks the world.
// It remembers what it refused and the states of its policies, so that packets are
// processed one at a time.
type Host struct {
	// Interfaces holds those of the host, by index. Frames from another one pass,
	// as no program would run there.
	Interfaces     map[uint32]struct{}
	SIDs           []LocalSID
	Block          srv6.Block     // SIDs of the domain; the zero value: only its own are guarded
	Locators       []netip.Prefix // where SIDs are besides the block
	Infrastructure []netip.Prefix // sources from which SRv6 is accepted
	Secret         flow.Secret    // of the flow hash
	FlowHash       flow.Function
	HMAC           HMACRule
	HMACKeys       map[uint32]srv6.HMACKey
	Source         netip.Addr // of the outer packets of strays
	// Refusal is how long a refused connection stays refused.
	Refusal  time.Duration
	Services map[ServiceKey]*HostService

	// Learners are the prefixes of edges' End.LEARN SIDs: SYN-ACKs go by way of the edge whose SYN
	// came from there. Routed asks whether there is a route to an edge.
	Learners []netip.Prefix
	Routed   func(dst netip.Addr) bool

	// Sockets asks the kernel for the TCP socket of a client's flow.
	Sockets func(flow.Tuple) Socket
	// HasServer asks the kernel whether a UDP socket is bound to where a client's flow goes; only
	// services of QUIC need it.
	HasServer func(flow.Tuple) bool
	// Busy asks how many connections of a service are being served.
	Busy func(ServiceKey) uint32
	// NextHop asks routing for the way to dst. Of several equal ones, choice (0-7)
	// selects one that stays the same.
	NextHop func(dst netip.Addr, choice uint8) NextHop

	refused   refusals
	quicFlows refusals  // taken lately: remembered in the same way
	fragments fragments // first ones that were taken
	askers    askers
	copies    copies
}

// LocalSID is a SID of a host: what is sent to an address of the prefix meets the
// behavior. The bits behind the prefix are the SID's argument.
type LocalSID struct {
	Prefix   netip.Prefix
	Behavior srv6.Behavior
	Backup   netip.Addr // the SID to which End.DT*.COND sends strays
}

// HostService is a service that a host has.
type HostService struct {
	// Policy decides whether a new connection is taken that others could take, and
	// State is what it remembers; it starts as Policy.Initial().
	Policy acceptance.Policy
	State  acceptance.State
	// MSS is the greatest TCP segment, in bytes without headers, that reaches the
	// host encapsulated. 0 leaves the MSS options alone.
	MSS uint16
	// QUIC says that a service of UDP is QUIC.
	QUIC bool
}

// SocketState is as much as a host needs to know about the state of a socket.
type SocketState uint8

// The states.
const (
	SocketNone       SocketState = iota // no socket for this 5-tuple
	SocketListen                        // a listener
	SocketNewSynRecv                    // a SYN was answered, its ACK is awaited
	SocketTimeWait                      // TIME_WAIT, also the kernel's of orphans in FIN_WAIT_2
	SocketOther                         // any other: established or closing
)

// Socket is what the kernel knows about a client's flow.
type Socket struct {
	State SocketState
	// SndISN is our initial sequence number, RcvISN the client's; NEW_SYN_RECV only.
	SndISN, RcvISN uint32
	// RcvNxt is what the client sends next, within RcvWnd bytes; SndNxt is what we would send
	// next. TIME_WAIT only.
	RcvNxt, RcvWnd, SndNxt uint32
	// CookieOK says that the kernel vouches for the SYN cookie which the packet
	// acknowledges; LISTEN only.
	CookieOK bool
}

// Process decides at the time now about a frame that came in by an interface.
// Time is measured from any fixed moment, and never goes back.
func (h *Host) Process(ingress uint32, now time.Duration, data []byte) Result {
	f, p, r, ok := outerIPv6(h.Interfaces, ingress, data)
	if !ok {
		return r
	}
	sid, ok := h.localSID(p.dst)
	if !ok {
		return r.transit(border{h.Block, h.Locators, h.Infrastructure}, &p)
	}
	r.SID = sid.Prefix
	if !containsAddr(h.Infrastructure, p.src) {
		return r.drop(ReasonOutsideDomain)
	}
	if reason := p.walkExtensions(localSID); reason != ReasonNone {
		return r.drop(reason)
	}
	if reason := h.checkHMAC(&p); reason != ReasonNone {
		return r.drop(reason)
	}
	v := visit{host: h, ingress: ingress, now: now, frame: &f, outer: &p, sid: sid}
	switch sid.Behavior {
	case srv6.EndOFFER:
		return v.offer(r)
	case srv6.EndDT4COND, srv6.EndDT6COND, srv6.EndDT46COND:
		return v.conditional(r)
	}
	return v.decapsulate(r)
}

// localSID returns the SID with the longest prefix that contains the address.
func (h *Host) localSID(addr netip.Addr) (LocalSID, bool) {
	var best LocalSID
	for _, sid := range h.SIDs {
		if sid.Prefix.Contains(addr) &&
			(!best.Prefix.IsValid() || sid.Prefix.Bits() > best.Prefix.Bits()) {
			best = sid
		}
	}
	return best, best.Prefix.IsValid()
}

// visit is a packet's stay at one of the host's SIDs.
type visit struct {
	host    *Host
	ingress uint32
	now     time.Duration
	frame   *frame
	outer   *packet
	sid     LocalSID
	tell    uint32 // what is to change in the outer flow label for the next candidate
}

// argument reports whether the SID's argument is other than 0.
func (v *visit) argument() bool { return srv6.HasArgument(v.sid.Prefix, v.outer.dst) }

// inner returns the packet within the outer one, not parsed yet. It is false if
// there is none.
func (v *visit) inner() (packet, bool) {
	protocol := v.outer.protocol
	inner := packet{data: v.outer.data, start: v.outer.upper, ipv6: protocol == protocolIPv6}
	return inner, protocol == protocolIPv4 || protocol == protocolIPv6
}

// decapsulate is End.DT4, End.DT6 and End.DT46 (RFC 8986 sections 4.6 to 4.8): the last
// segment, whatever the packet in it.
func (v *visit) decapsulate(r Result) Result {
	if v.argument() || v.outer.segmentsLeft() != 0 {
		return r.drop(ReasonSegmentsLeft)
	}
	inner, ok := v.inner()
	if !ok || !decapsulates(v.sid.Behavior, inner.ipv6) {
		return r.drop(ReasonUpperLayer)
	}
	if reason := inner.checkVersion(v.outer.end); reason != ReasonNone {
		return r.drop(reason)
	}
	return v.take(r, &inner, 0)
}

// decapsulates reports whether a behavior is for an inner packet of the family.
func decapsulates(behavior srv6.Behavior, ipv6 bool) bool {
	switch behavior {
	case srv6.EndDT46, srv6.EndDT46COND:
		return true
	case srv6.EndDT6, srv6.EndDT6COND:
		return ipv6
	case srv6.EndDT4, srv6.EndDT4COND:
		return !ipv6
	}
	return false
}

// outerIPv6 reads the header to which a frame's SID belongs. If it is not ok there is none, and the
// result is what becomes of the frame.
func outerIPv6(own map[uint32]struct{}, ingress uint32,
	data []byte) (f frame, p packet, r Result, ok bool) {
	if _, ours := own[ingress]; !ours {
		return f, p, r.pass(data), false
	}
	f, reason := parseFrame(data)
	if reason != ReasonNone {
		return f, p, r.drop(reason), false
	}
	if f.etherType != etherTypeIPv6 {
		return f, p, r.pass(data), false
	}
	p = packet{data: data, start: f.network, ipv6: true}
	if reason := p.parseHeader(len(data)); reason != ReasonNone {
		return f, p, r.drop(reason), false
	}
	return f, p, r, true
}
