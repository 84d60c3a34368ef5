package health

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Path is the way of a check: packets for the VIP that carry the path's mark go to the SID, inside
// an IPv6 header.
type Path struct{ VIP, SID netip.Addr }

// Paths are the routes of checks in the kernel's tables. The paths of a VIP are in different
// tables, those of different VIPs in the same ones: there are as many tables as a VIP has backends
// at most. Rules select a table by the mark, in blocks, so that a packet meets few of them:
//
//	700: not fwmark 0x5e000000/0xff000000 goto 942   others don't meet the rules
//	701: fwmark 0x5e000000/0xffffff00 goto 702
//	702: fwmark 0x5e000001 lookup 0x5e000001         VIP encap seg6 mode encap.red segs SID
//	942: nop
//
// A packet keeps its mark when it is encapsulated, but its table has no route to the SID, so the
// main table routes it. There is one set of paths per network namespace.
type Paths struct {
	// index of the interface that the routes name; the SID's route decides where packets leave
	device int
	marks  map[Path]uint32
	taken  map[netip.Addr]*places // by VIP
	rules  map[ruleKey]int        // those that are there, and for how many paths
	kernel *netlink.Handle        // while paths change
}

// places are the marks that paths of a VIP have, counted from the first.
type places struct {
	taken []bool
	free  int // none is free below
}

// take returns the lowest that is free.
func (p *places) take() uint32 {
	for p.free < len(p.taken) && p.taken[p.free] {
		p.free++
	}
	if p.free == len(p.taken) {
		p.taken = append(p.taken, false)
	}
	p.taken[p.free] = true
	return uint32(p.free)
}

func (p *places) give(place uint32) {
	p.taken[place] = false
	p.free = min(p.free, int(place))
}

// ruleKey is what one of our rules differs in from the others.
type ruleKey struct {
	family, priority int
	mark             uint32
}

// What is ours in the kernel is known by these.
const (
	pathProtocol = 0x5e // of rules and routes
	markBase     = 0x5e000000
	markMask     = 0xff000000
	markFirst    = markBase + 1
	markBlock    = 0xffffff00 // of the marks whose rules have one priority
	blockBits    = 8
	prefGate     = 700
	prefJump     = 701
	prefMark     = 702 // of the first block
	prefEnd      = 942
	// encapReduced is SEG6_IPTUN_MODE_ENCAP_RED (Linux 6.0): with one segment there is no segment
	// routing header.
	encapReduced = 3
)

// OpenPaths makes an empty set. It removes what an earlier agent left.
func OpenPaths() (*Paths, error) {
	return &Paths{marks: map[Path]uint32{}, taken: map[netip.Addr]*places{},
		rules: map[ruleKey]int{}}, RemovePaths()
}

// Set makes these the paths, by routes that name the device. If it fails, some may be missing; the
// next Set adds them.
func (p *Paths) Set(device string, wanted []Path) (err error) {
	if p.kernel, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("ask the kernel for routes of health checks: %w", err)
	}
	defer p.kernel.Close()
	list := make(map[Path]bool, len(wanted))
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
	for _, path := range wanted {
		if p.marks[path] != 0 {
			continue
		}
		if err := p.add(path); err != nil {
			return fmt.Errorf("route health checks of %s to %s: %w; the kernel must have IPv6 "+
				"segment routing and be Linux 6.0 or newer",
				path.VIP, path.SID, err)
		}
	}
	return nil
}

// Mark returns the mark with which packets take the path; 0 if it is not there.
func (p *Paths) Mark(path Path) uint32 { return p.marks[path] }

// A route with an encapsulation takes memory of each processor from a stock, which the kernel fills
// up beside: tens of thousands of routes in a second empty it for a moment.
const (
	memoryTries = 100
	memoryWait  = 10 * time.Millisecond
)

func (p *Paths) add(path Path) error {
	if p.taken[path.VIP] == nil {
		p.taken[path.VIP] = &places{}
	}
	place := p.taken[path.VIP].take()
	mark := markFirst + place
	if err := p.addRoute(path, mark); err != nil {
		p.taken[path.VIP].give(place)
		return err
	}
	p.marks[path] = mark
	return nil
}

func (p *Paths) addRoute(path Path, mark uint32) error {
	err := p.kernel.RouteReplace(p.route(path, mark))
	for tries := 0; errors.Is(err, unix.ENOMEM) && tries < memoryTries; tries++ {
		time.Sleep(memoryWait)
		err = p.kernel.RouteReplace(p.route(path, mark))
	}
	if present(err) != nil {
		return fmt.Errorf("add route: %w", err)
	}
	rules := rulesOf(familyOf(path.VIP), mark)
	for _, rule := range rules {
		if p.rules[keyOf(rule)] > 0 {
			continue
		}
		if err := present(p.kernel.RuleAdd(rule)); err != nil {
			return fmt.Errorf("add rule %d: %w", rule.Priority, err)
		}
	}
	for _, rule := range rules {
		p.rules[keyOf(rule)]++
	}
	return nil
}

// drop removes the paths that are not in keep.
func (p *Paths) drop(keep map[Path]bool) error {
	for path, mark := range p.marks {
		if keep[path] {
			continue
		}
		if err := absent(p.kernel.RouteDel(p.route(path, mark))); err != nil {
			return fmt.Errorf("remove route of health checks of %s to %s: %w", path.VIP, path.SID,
				err)
		}
		delete(p.marks, path)
		p.taken[path.VIP].give(mark - markFirst)
		for _, rule := range slices.Backward(rulesOf(familyOf(path.VIP), mark)) {
			key := keyOf(rule)
			if p.rules[key]--; p.rules[key] > 0 {
				continue
			}
			delete(p.rules, key)
			if err := absent(p.kernel.RuleDel(rule)); err != nil {
				return fmt.Errorf("remove rule %d of health checks to %s: %w", rule.Priority,
					path.SID, err)
			}
		}
	}
	maps.DeleteFunc(p.taken, func(_ netip.Addr, t *places) bool {
		return !slices.Contains(t.taken, true)
	})
	return nil
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

func keyOf(r *netlink.Rule) ruleKey { return ruleKey{r.Family, r.Priority, r.Mark} }

// rulesOf are the rules that a mark needs. The target of a jump comes before the jump.
func rulesOf(family int, mark uint32) []*netlink.Rule {
	block := int(mark-markBase) >> blockBits
	end, gate := ruleOf(family, prefEnd), ruleOf(family, prefGate)
	leads, jump := ruleOf(family, prefMark+block), ruleOf(family, prefJump)
	all, ours := uint32(markMask), uint32(markBlock)
	end.Type = nl.FR_ACT_NOP
	gate.Mark, gate.Mask, gate.Invert, gate.Goto = markBase, &all, true, prefEnd
	leads.Mark, leads.Table = mark, int(mark)
	jump.Mark, jump.Mask, jump.Goto = mark&markBlock, &ours, leads.Priority
	return []*netlink.Rule{end, gate, leads, jump}
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
