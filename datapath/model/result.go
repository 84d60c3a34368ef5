package model

import (
	"net/netip"

	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// ServiceKey names a service as packets do: by VIP, protocol and port. Port 0
// stands for the ports which have no service of their own.
type ServiceKey struct {
	Addr     netip.Addr
	Port     uint16
	Protocol uint8 // 6 TCP, 17 UDP
}

// Result is what became of a frame, and why. Fields which the packet did not
// live to see are zero.
type Result struct {
	Verdict Verdict
	Reason  Reason // why it was dropped; else ReasonNone or ReasonHopLimit
	// Frame is the whole frame after processing: the one given for Pass, a new
	// one for all other verdicts, nil when dropped.
	Frame []byte
	// Interface is the index of that which Transmit and Redirect send by.
	Interface uint32

	Flow    flow.Tuple // the client's flow, as it is in the (inner) packet
	Service ServiceKey // the service found for it
	Hash    uint64     // edge: flow hash
	Bucket  uint32     // edge: bucket of the hash
	Chain   []uint16   // edge: ids of the backends to which the packet is offered, in order
	Path    []uint16   // edge: ids of the SIDs that it visits before those

	// edge: where a second copy goes, over the other path; the zero Addr: the packet goes once
	Copy netip.Addr

	Cache  CacheEvent // edge: what the flow cache did
	Answer Answer     // edge: what it says itself, instead of forwarding

	SID   netip.Prefix // host: the local SID that the packet came to
	Offer Offer        // host: what End.OFFER made of it
	Taken bool         // host: the inner packet goes to the local stack

	Number *srv6.Redundancy // egress: the number that the packet carries; nil if it has none
}

// drop ends the packet for the reason given.
func (r Result) drop(reason Reason) Result {
	r.Verdict, r.Reason, r.Frame, r.Taken = Drop, reason, nil, false
	return r
}

// pass gives the frame to the kernel as it came.
func (r Result) pass(frame []byte) Result {
	r.Verdict, r.Frame = Pass, frame
	return r
}

// findService returns the key under which services has the port of an address:
// that of the port itself, else that of any port.
func findService[V any](services map[ServiceKey]V, key ServiceKey) (ServiceKey, V, bool) {
	service, ok := services[key]
	if !ok {
		key.Port = 0
		service, ok = services[key]
	}
	return key, service, ok
}
