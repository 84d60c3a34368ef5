package health

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Path is the way of a check: packets for the VIP that carry the path's mark go to the SID, inside
// an IPv6 header.
type Path struct{ VIP, SID netip.Addr }

// Paths are the routes of checks in the kernel's tables: a table per SID, which a rule selects by
// the mark.
//
//	940: not fwmark 0x5e000000/0xff000000 goto 942   packets of others don't meet the rules, be they thousands
//	941: fwmark 0x5e000001 lookup 0x5e000001         VIP encap seg6 mode encap.red segs SID
//	942: nop
//
// A packet keeps its mark when it is encapsulated, but its table has no route to the SID, so the
// main table routes it. There is one set of paths per network namespace.
type Paths struct {
	// index of the interface that the routes name; the SID's route decides where packets leave
	device int
	marks  map[netip.Addr]uint32
	paths  map[Path]bool
	gates  map[int]bool // address families with the rules around
}

// What is ours in the kernel is known by these.
const (
	pathProtocol = 0x5e // of rules and routes
	markBase     = 0x5e000000
	markMask     = 0xff000000
	prefGate     = 940
	prefMark     = 941
	prefEnd      = 942
	// encapReduced is SEG6_IPTUN_MODE_ENCAP_RED (Linux 6.0): with one segment there is no segment
	// routing header.
	encapReduced = 3
)

// OpenPaths makes an empty set. It removes what an earlier agent left.
func OpenPaths() (*Paths, error) {
	return &Paths{marks: map[netip.Addr]uint32{}, paths: map[Path]bool{}, gates: map[int]bool{}},
		RemovePaths()
}

// Set makes these the paths, by routes that name the device. If it fails, some may be missing; the
// next Set adds them.
func (p *Paths) Set(device string, wanted []Path) error {
	list := map[Path]bool{}
	for _, w := range wanted {
		list[w] = true
	}
	if len(list) > 0 {
		index, err := net.InterfaceByName(device)
		if err != nil {
			return fmt.Errorf("find interface %s for the routes of health checks: %w", device, err)
		}
		if index.Index != p.device {
			if err := p.drop(map[Path]bool{}); err != nil {
				return err
			}
		}
		p.device = index.Index
	}
	if err := p.drop(list); err != nil {
		return err
	}
	for path := range list {
		if p.paths[path] {
			continue
		}
		if err := p.add(path); err != nil {
			return fmt.Errorf("route health checks of %s to %s: %w; the kernel must have IPv6 "+
				"segment routing and be Linux 6.0 or newer",
				path.VIP, path.SID, err)
		}
		p.paths[path] = true
	}
	return nil
}

// Mark returns the mark with which packets go to the SID; 0 if there is no path to it.
func (p *Paths) Mark(sid netip.Addr) uint32 { return p.marks[sid] }

func (p *Paths) add(path Path) error {
	mark, known := p.marks[path.SID]
	if !known {
		mark = p.freeMark()
		p.marks[path.SID] = mark
	}
	family := familyOf(path.VIP)
	if !p.gates[family] {
		for _, rule := range gateRules(family) {
			if err := present(netlink.RuleAdd(rule)); err != nil {
				return fmt.Errorf("add rule %d: %w", rule.Priority, err)
			}
		}
		p.gates[family] = true
	}
	if err := present(netlink.RouteReplace(p.route(path, mark))); err != nil {
		return fmt.Errorf("add route: %w", err)
	}
	return present(netlink.RuleAdd(markRule(family, mark)))
}

// drop removes the paths that are not in keep.
func (p *Paths) drop(keep map[Path]bool) error {
	type use struct {
		sid    netip.Addr
		family int
	}
	inUse, families, sids := map[use]bool{}, map[int]bool{}, map[netip.Addr]bool{}
	for path := range p.paths {
		if keep[path] {
			family := familyOf(path.VIP)
			inUse[use{path.SID, family}], families[family], sids[path.SID] = true, true, true
		}
	}
	for path := range p.paths {
		if keep[path] {
			continue
		}
		mark, family := p.marks[path.SID], familyOf(path.VIP)
		if err := absent(netlink.RouteDel(p.route(path, mark))); err != nil {
			return fmt.Errorf("remove route of health checks of %s to %s: %w", path.VIP, path.SID,
				err)
		}
		if !inUse[use{path.SID, family}] {
			if err := absent(netlink.RuleDel(markRule(family, mark))); err != nil {
				return fmt.Errorf("remove rule of health checks to %s: %w", path.SID, err)
			}
		}
		delete(p.paths, path)
	}
	for sid := range p.marks {
		if !sids[sid] {
			delete(p.marks, sid)
		}
	}
	for family := range p.gates {
		if families[family] {
			continue
		}
		if err := removeRules(family); err != nil {
			return err
		}
		delete(p.gates, family)
	}
	return nil
}

// freeMark is the lowest that no SID has.
func (p *Paths) freeMark() uint32 {
	taken := map[uint32]bool{}
	for _, mark := range p.marks {
		taken[mark] = true
	}
	mark := uint32(markBase + 1)
	for taken[mark] {
		mark++
	}
	return mark
}

func (p *Paths) route(path Path, mark uint32) *netlink.Route {
	return &netlink.Route{
		LinkIndex: p.device, Table: int(mark), Protocol: pathProtocol,
		Dst: &net.IPNet{IP: path.VIP.AsSlice(),
			Mask: net.CIDRMask(path.VIP.BitLen(), path.VIP.BitLen())},
		Encap: &netlink.SEG6Encap{Mode: encapReduced, Segments: []net.IP{path.SID.AsSlice()}},
	}
}

func ruleOf(family, priority int) *netlink.Rule {
	r := netlink.NewRule()
	r.Family, r.Priority, r.Protocol = family, priority, pathProtocol
	return r
}

func markRule(family int, mark uint32) *netlink.Rule {
	r := ruleOf(family, prefMark)
	r.Mark, r.Table = mark, int(mark)
	return r
}

// gateRules keep other packets away from the rules of marks. The target of a jump comes before the
// jump.
func gateRules(family int) []*netlink.Rule {
	end, gate, mask := ruleOf(family, prefEnd), ruleOf(family, prefGate), uint32(markMask)
	end.Type = nl.FR_ACT_NOP
	gate.Mark, gate.Mask, gate.Invert, gate.Goto = markBase, &mask, true, prefEnd
	return []*netlink.Rule{end, gate}
}

// RemovePaths removes all paths from the kernel, of this agent or of an earlier one. Where there
// are none there is nothing to do.
func RemovePaths() error {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := ourRules(family)
		if err != nil {
			return err
		}
		if len(rules) == 0 {
			continue // and so no routes, without looking through all of the kernel's
		}
		if err := removeRoutes(family); err != nil {
			return err
		}
		if err := removeRules(family); err != nil {
			return err
		}
	}
	return nil
}

func removeRoutes(family int) error {
	filter, mask := &netlink.Route{Table: unix.RT_TABLE_UNSPEC, Protocol: pathProtocol},
		netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL
	routes, err := netlink.RouteListFiltered(family, filter, mask)
	if err != nil {
		return fmt.Errorf("list routes of health checks: %w", err)
	}
	for _, r := range routes {
		if uint32(r.Table)&markMask != markBase {
			continue
		}
		if err := absent(netlink.RouteDel(&r)); err != nil {
			return fmt.Errorf("remove route %v of health checks: %w", r.Dst, err)
		}
	}
	return nil
}

func removeRules(family int) error {
	rules, err := ourRules(family)
	if err != nil {
		return err
	}
	for _, r := range rules {
		if err := absent(netlink.RuleDel(&r)); err != nil {
			return fmt.Errorf("remove rule %d of health checks: %w", r.Priority, err)
		}
	}
	return nil
}

// ourRules lists them in the order of their priorities, so that a jump goes before its target.
func ourRules(family int) ([]netlink.Rule, error) {
	rules, err := netlink.RuleList(family)
	if err != nil {
		return nil, fmt.Errorf("list rules of health checks: %w", err)
	}
	return slices.DeleteFunc(rules, func(r netlink.Rule) bool {
		return r.Protocol != pathProtocol || r.Priority < prefGate || r.Priority > prefEnd
	}), nil
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// present takes it for no error that something is there already.
func present(err error) error {
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// absent takes it for no error that something is gone already.
func absent(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
