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

	"sextant/datapath"
	"sextant/linux"
	"sextant/linux/rtnetlink"
)

// Path is the way of a check: packets for the VIP that carry the path's mark go to the SID, inside
// an IPv6 header.
type Path struct{ VIP, SID netip.Addr }

// Paths are the routes of checks in the kernel's tables. A rule leads packets with a mark of ours
// to one table, where each VIP has one route. Its encapsulation is a program, which knows the SID
// of each mark:
//
//	700: fwmark 0x5e000000/0xff000000 lookup 0x5e000000    VIP encap bpf xmit check_path
//
// A packet keeps its mark when it is encapsulated, but the table has no route to the SID, so the
// main table routes it. There is one set of paths per network namespace.
//
// A rule or table for each path would cost the kernel too much: it goes through all rules for each
// one that comes or goes, and with IPv6 through all tables, which stay when they are empty.
type Paths struct {
	// Leave is called before paths go, by their marks; nil: nothing is to be done
	Leave func(marks map[uint32]Path)
	// index of the interface that the routes name; the SID's route decides where packets leave
	device  int
	source  netip.Addr
	marks   map[Path]uint32
	taken   places
	program *datapath.CheckPaths // nil: there is no path
	room    int                  // marks that the program can know
	vips    map[netip.Addr]int   // how many paths they have
	// those that have a route, and the program that it names
	routed map[netip.Addr]*datapath.CheckPaths
	ruled  map[int]bool    // families that have the rule
	kernel *netlink.Handle // while paths change
}

// places are the marks that are in use, counted from the first.
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

// What is ours in the kernel is known by these.
const (
	pathProtocol = 0x5e // of rules and routes
	markBase     = 0x5e000000
	markMask     = 0xff000000
	markFirst    = markBase + 1
	marksMax     = 1<<24 - 1
	pathTable    = markBase
	prefPaths    = 700
	prefLast     = 942 // of the rules of earlier releases, a table for each SID of a VIP
	// outerLength is of the header in front of a packet, for which its route leaves room.
	outerLength = 40
	roomFirst   = 1024
)

var families = []int{unix.AF_INET, unix.AF_INET6}

// OpenPaths makes an empty set. It removes what an earlier agent left.
func OpenPaths() (*Paths, error) {
	return &Paths{marks: map[Path]uint32{}, vips: map[netip.Addr]int{},
		routed: map[netip.Addr]*datapath.CheckPaths{}, ruled: map[int]bool{}}, RemovePaths()
}

// Set makes these the paths, by routes that name the device. Outer headers have the source. If it
// fails, some may be missing; the next Set adds them.
func (p *Paths) Set(device string, source netip.Addr, wanted []Path) (err error) {
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
		if index.Index != p.device || source != p.source {
			if err := errors.Join(p.drop(map[Path]bool{}), p.settle()); err != nil {
				return err
			}
		}
		p.device, p.source = index.Index, source
	}
	if err := p.drop(list); err != nil {
		return err
	}
	if err := p.makeRoom(len(list)); err != nil {
		return err
	}
	for path := range list {
		if p.marks[path] != 0 {
			continue
		}
		if err := p.add(path); err != nil {
			return err
		}
	}
	return p.settle()
}

// Whole says whether the kernel has all routes and rules of the paths. The next Set adds those that
// it lacks.
func (p *Paths) Whole() (bool, error) {
	whole := true
	for _, family := range families {
		routes, err := linux.Routes(family,
			&netlink.Route{Table: pathTable, Protocol: pathProtocol},
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_PROTOCOL)
		if err != nil {
			return false, fmt.Errorf("list routes of health checks: %w", err)
		}
		rules, err := ourRules(family)
		if err != nil {
			return false, err
		}
		there := map[netip.Addr]bool{}
		for _, r := range routes {
			if r.Dst == nil {
				continue // not ours
			}
			if vip, ok := netip.AddrFromSlice(r.Dst.IP); ok {
				there[vip] = true
			}
		}
		for vip, paths := range p.vips {
			if familyOf(vip) == family && paths > 0 && !there[vip] {
				delete(p.routed, vip)
				whole = false
			}
		}
		if p.ruled[family] && len(rules) == 0 {
			p.ruled[family], whole = false, false
		}
	}
	return whole, nil
}

// TakesPaths tells messages after which routes or rules of paths may be gone: those about rules and
// interfaces, with which routes of IPv4 go without a message of their own, and those about routes.
func TakesPaths(h rtnetlink.Header, body []byte) bool {
	switch h.Type {
	case unix.RTM_NEWROUTE, unix.RTM_NEWRULE:
		return false
	case unix.RTM_DELROUTE:
		return len(body) >= unix.SizeofRtMsg && body[routeProtocol] == pathProtocol
	}
	return true
}

// routeProtocol is where a message about a route has its protocol (struct rtmsg).
const routeProtocol = 5

// Mark returns the mark with which packets take the path; 0 if it is not there.
func (p *Paths) Mark(path Path) uint32 { return p.marks[path] }

// makeRoom makes the program one that can know so many marks: what it knows it goes on to know.
func (p *Paths) makeRoom(marks int) error {
	if marks == 0 || marks <= p.room {
		return nil
	}
	if marks > marksMax {
		return fmt.Errorf("%d paths of health checks are wanted; there are marks for %d", marks,
			marksMax)
	}
	room := max(p.room, roomFirst)
	for room < marks {
		room *= 2
	}
	larger, err := datapath.NewCheckPaths(room)
	if err != nil {
		return fmt.Errorf("lead health checks to their backends: %w", err)
	}
	for path, mark := range p.marks {
		if err := larger.Set(mark, p.source, path.SID); err != nil {
			larger.Close()
			return err
		}
	}
	if p.program != nil {
		p.program.Close()
	}
	p.program, p.room = larger, room
	return nil
}

func (p *Paths) add(path Path) error {
	place := p.taken.take()
	mark := markFirst + place
	if err := p.program.Set(mark, p.source, path.SID); err != nil {
		p.taken.give(place)
		return err
	}
	p.marks[path] = mark
	p.vips[path.VIP]++
	return nil
}

// drop removes the paths that are not in keep.
func (p *Paths) drop(keep map[Path]bool) error {
	gone := map[uint32]Path{}
	for path, mark := range p.marks {
		if !keep[path] {
			gone[mark] = path
		}
	}
	if len(gone) > 0 && p.Leave != nil {
		p.Leave(gone)
	}
	for mark, path := range gone {
		if err := p.program.Unset(mark); err != nil {
			return err
		}
		delete(p.marks, path)
		p.taken.give(mark - markFirst)
		p.vips[path.VIP]--
	}
	return nil
}

// settle makes routes and rules those of the VIPs that have paths.
func (p *Paths) settle() error {
	wanted := map[int]bool{}
	for vip, paths := range p.vips {
		if paths > 0 {
			wanted[familyOf(vip)] = true
			if err := p.lead(vip); err != nil {
				return err
			}
			continue
		}
		if p.routed[vip] != nil {
			if err := absent(p.kernel.RouteDel(p.route(vip))); err != nil {
				return fmt.Errorf("remove route of health checks of %s: %w", vip, err)
			}
		}
		delete(p.routed, vip)
		delete(p.vips, vip)
	}
	for _, family := range families {
		if wanted[family] == p.ruled[family] {
			continue
		}
		change, done := p.kernel.RuleAdd, unix.EEXIST
		if p.ruled[family] {
			change, done = p.kernel.RuleDel, unix.ENOENT
		}
		if err := change(pathRule(family)); err != nil && !errors.Is(err, done) {
			return fmt.Errorf("set the rule of health checks: %w", err)
		}
		p.ruled[family] = wanted[family]
	}
	if len(p.marks) == 0 && p.program != nil {
		p.program.Close()
		p.program, p.room = nil, 0
	}
	return nil
}

func (p *Paths) lead(vip netip.Addr) error {
	if p.routed[vip] == p.program {
		return nil
	}
	r, encap := p.route(vip), &netlink.BpfEncap{}
	err := errors.Join(encap.SetProg(nl.LWT_BPF_XMIT, p.program.Program(), "check_path"),
		encap.SetXmitHeadroom(outerLength))
	if err != nil {
		return err
	}
	r.Encap = encap
	if err := p.kernel.RouteReplace(r); err != nil {
		return fmt.Errorf("route health checks of %s: %w; the kernel must have programs of routes "+
			"(CONFIG_LWTUNNEL_BPF)", vip, err)
	}
	p.routed[vip] = p.program
	return nil
}

func (p *Paths) route(vip netip.Addr) *netlink.Route {
	return &netlink.Route{LinkIndex: p.device, Table: pathTable, Protocol: pathProtocol,
		Dst: &net.IPNet{IP: vip.AsSlice(), Mask: net.CIDRMask(vip.BitLen(), vip.BitLen())}}
}

func pathRule(family int) *netlink.Rule {
	r, mask := netlink.NewRule(), uint32(markMask)
	r.Family, r.Priority, r.Protocol = family, prefPaths, pathProtocol
	r.Mark, r.Mask, r.Table = markBase, &mask, pathTable
	return r
}

// RemovePaths removes all paths from the kernel, of this agent or of an earlier one. Where there
// are none there is nothing to do.
func RemovePaths() error {
	for _, family := range families {
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
		return r.Protocol != pathProtocol || r.Priority < prefPaths || r.Priority > prefLast
	}), nil
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// absent takes it for no error that something is gone already.
func absent(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
