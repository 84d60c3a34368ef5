package facts

import (
	"net/netip"

	"sextant/packet/srv6"
)

// VRF is what the kernel has of a VRF whose strays are taken away.
type VRF struct {
	// of the VRF; of a namespace: whether it can be opened
	Device Device `json:"device"`
	Backup Device `json:"backup"` // on which strays are received
	// that lead into it now, without those at which strays stay
	SIDs      []VRFSID     `json:"sids"`
	Addresses []netip.Addr `json:"addresses"` // some that are delivered in it
	// packets to these, received by the VRF's device; nil of a namespace
	Here map[netip.Addr]Passage `json:"here"`
	// packets to these, received on the backup device
	Strays map[netip.Addr]Passage `json:"strays"`
}

// Device is a network device, or the namespace that is a VRF.
type Device struct {
	Exists bool   `json:"exists"`
	Up     bool   `json:"up"`
	Kind   string `json:"kind"` // "vrf", "veth", ...
}

// VRFSID is a SID whose packets the kernel leads into a VRF.
type VRFSID struct {
	Prefix netip.Prefix `json:"prefix"`
	// End.DT4, End.DT6 or End.DT46; "" if it is only known to be routed
	Behavior string `json:"behavior"`
	// by the VRF's table alone, not by the VRF: packets stay the arriving interface's
	Table bool `json:"table"`
}

// Takes reports whether inner packets of a family are decapsulated.
func (s VRFSID) Takes(ipv4 bool) bool {
	return s.Behavior != srv6.EndDT6.String() && ipv4 || s.Behavior != srv6.EndDT4.String() && !ipv4
}

// Fate is what the kernel does with a packet that an interface receives.
type Fate string

// The fates. What is not known is "".
const (
	Forwarded Fate = "forwarded"
	Delivered Fate = "delivered" // on this machine
	NoRoute   Fate = "no_route"  // it is dropped
	// by a route (blackhole, unreachable, prohibit), or as its source can't come from outside
	Refused       Fate = "refused"
	ReversePath   Fate = "rp_filter"      // the reverse path filter drops it
	NotForwarding Fate = "not_forwarding" // the kernel forwards nothing
)

// Passage is the way of a packet that an interface receives through the kernel.
type Passage struct {
	Fate      Fate   `json:"fate"`
	Off       string `json:"off,omitempty"`       // NotForwarding: the sysctl that is 0
	Interface string `json:"interface,omitempty"` // by which it leaves
	// of the encapsulation that the route puts around it, in the order of travel
	Segments []netip.Addr `json:"segments,omitempty"`
	Source   netip.Addr   `json:"source,omitzero"` // of that encapsulation; invalid: not known
}

// Answer is a SYN-ACK that a host sends by way of this edge.
type Answer struct {
	Interface string     `json:"interface"` // by which it comes
	VIP       netip.Addr `json:"vip"`       // from which it is
	Client    netip.Addr `json:"client"`    // an example of those for whom it is
	Passage   Passage    `json:"passage"`
}
