package southbound

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"sextant/agent/southbound/southboundpb"
)

// MaxFlowlet bounds the pause after which a flow chooses again.
const MaxFlowlet = time.Minute

// WeighedPath is a path of a group.
type WeighedPath struct {
	Segments []netip.Addr
	Weight   uint32 // relative to the others; 0: it is down
}

// Group is the paths to a prefix of which flows that begin choose.
type Group struct {
	Prefix  netip.Prefix
	Paths   []WeighedPath
	Hold    time.Duration
	Flowlet time.Duration // 0: flows keep what they chose
}

// PrefixMessage is a prefix as a message.
func PrefixMessage(p netip.Prefix) *southboundpb.Prefix {
	return &southboundpb.Prefix{Address: p.Addr().AsSlice(), Bits: uint32(p.Bits())}
}

// PrefixOf reads a prefix.
func PrefixOf(m *southboundpb.Prefix) (netip.Prefix, error) {
	address, ok := netip.AddrFromSlice(m.GetAddress())
	if !ok {
		return netip.Prefix{}, fmt.Errorf("a prefix's address has %d octets; 4 or 16 are wanted",
			len(m.GetAddress()))
	}
	bits := m.GetBits()
	if bits > uint32(address.BitLen()) || address.Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%s/%d is no prefix of one IP version", address, bits)
	}
	p := netip.PrefixFrom(address, int(bits))
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("prefix %s has bits behind its length; %s is meant", p,
			p.Masked())
	}
	return p, nil
}

// GroupMessage is a group as a message.
func GroupMessage(g Group) *southboundpb.Group {
	m := &southboundpb.Group{Prefix: PrefixMessage(g.Prefix),
		HoldMs: uint64(g.Hold.Milliseconds()), FlowletUs: uint64(g.Flowlet.Microseconds())}
	for _, p := range g.Paths {
		m.Paths = append(m.Paths, &southboundpb.WeighedPath{Segments: segmentOctets(p.Segments),
			Weight: p.Weight})
	}
	return m
}

// GroupOf reads a group.
func GroupOf(m *southboundpb.Group) (g Group, err error) {
	if g.Prefix, err = PrefixOf(m.GetPrefix()); err != nil {
		return g, err
	}
	for i, path := range m.GetPaths() {
		segments, err := segmentsOf(path.GetSegments())
		if err != nil {
			return g, fmt.Errorf("path %d: %w", i+1, err)
		}
		g.Paths = append(g.Paths, WeighedPath{segments, path.GetWeight()})
	}
	if us := m.GetFlowletUs(); us > uint64(MaxFlowlet.Microseconds()) {
		return g, fmt.Errorf("flowlets after %d us: at most %d are wanted", us,
			MaxFlowlet.Microseconds())
	}
	g.Flowlet = time.Duration(m.GetFlowletUs()) * time.Microsecond
	g.Hold, err = holdOf(m.GetHoldMs())
	return g, err
}

// changeGroups applies the groups of a change, those that are set together, and returns what is
// refused.
func (s *session) changeGroups(ctx context.Context, c *southboundpb.Change,
	obstacle string) (refused []*southboundpb.Refusal) {
	refuse := func(m *southboundpb.Prefix, reason string) {
		if reason != "" {
			refused = append(refused, &southboundpb.Refusal{Prefix: m, Reason: reason})
		}
	}
	var groups []Group
	for _, m := range c.GetSetGroups() {
		g, err := GroupOf(m)
		if err == nil {
			err = s.outlasts(g.Hold)
		}
		if obstacle != "" || err != nil {
			refuse(m.GetPrefix(), cmp.Or(obstacle, text(err)))
			continue
		}
		groups = append(groups, g)
	}
	if len(groups) > 0 {
		for i, err := range s.options.Headend.SetGroups(ctx, groups) {
			refuse(PrefixMessage(groups[i].Prefix), text(err))
		}
	}
	for _, m := range c.GetClearGroups() {
		p, err := PrefixOf(m)
		if obstacle == "" && err == nil {
			err = s.options.Headend.ClearGroup(ctx, p)
		}
		refuse(m, cmp.Or(obstacle, text(err)))
	}
	return refused
}
