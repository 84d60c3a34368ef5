package model

import (
	"net/netip"
	"time"

	"sextant/packet/flow"
)

// askers remembers which edge sent the latest SYN of a flow, in a fixed number of slots that the
// low bits of the flow hash select: a newer SYN takes the place of an older one. The zero value
// remembers none.
type askers struct {
	slots map[uint16]asker
}

type asker struct {
	edge     netip.Addr // End.LEARN, or another address that does not want the answer
	owner    netip.Addr // the SID at which the SYN came
	flow     uint32     // upper half of the flow hash
	since    time.Duration
	answered bool // a SYN-ACK has gone there, or it did not ask for one
}

// remember notes who sent a SYN that was taken. Another one of the flow soon after is a second try,
// whose answer is not risked.
func (a *askers) remember(hash uint64, now, soon time.Duration, edge, owner netip.Addr,
	asks bool) {
	if a.slots == nil {
		a.slots = map[uint16]asker{}
	}
	slot, tag := uint16(hash), uint32(hash>>32)
	if last, ok := a.slots[slot]; ok && last.flow == tag && last.answered &&
		now-last.since < soon {
		return
	}
	a.slots[slot] = asker{edge: edge, owner: owner, flow: tag, since: now, answered: !asks}
}

// answer returns who asked for the SYN-ACK of a flow, and notes that it was given.
func (a *askers) answer(hash uint64) (asker, bool) {
	slot := uint16(hash)
	last, ok := a.slots[slot]
	if !ok || last.flow != uint32(hash>>32) || last.answered {
		return asker{}, false
	}
	answered := last
	answered.answered = true
	a.slots[slot] = answered
	return last, true
}

// ask notes the edge of a SYN that was taken.
func (v *visit) ask(r *Result) {
	hash := v.host.FlowHash.Hash(v.host.Secret, r.Flow)
	v.host.askers.remember(hash, v.now, v.host.Refusal, v.outer.src, v.sid.Prefix.Masked().Addr(),
		containsAddr(v.host.Learners, v.outer.src))
}

// learnHopLimit is that of a SYN-ACK on its way to the edge.
const learnHopLimit = 64

// byEdge encapsulates a SYN-ACK that leaves for the edge that asked for it: a path that began at
// the owner and ends there. It returns nil if nobody asked or there is no route.
func (h *Host) byEdge(f *frame, p *packet, packet []byte) []byte {
	hash := h.FlowHash.Hash(h.Secret, turned(p.tuple()))
	to, ok := h.askers.answer(hash)
	if !ok || !h.Routed(to.edge) {
		return nil
	}
	protocol := uint8(protocolIPv4)
	if p.ipv6 {
		protocol = protocolIPv6
	}
	srh := appendSRH(nil, protocol, []netip.Addr{to.owner, to.edge}, 0)
	b := f.appendLinkHeader(nil, etherTypeIPv6)
	b = appendIPv6(b, p.trafficClass, flow.Label(hash), len(srh)+p.end-p.start, protocolRouting,
		learnHopLimit, h.Source, to.edge)
	return append(append(b, srh...), packet...)
}
