package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/linux"
	"sextant/packet/cflb"
	"sextant/routing/equalcost"
	"sextant/routing/kernelfib"
)

// cflbRole is a router whose sources choose among its equal-cost next hops. A nil cflbRole is a
// node without it.
type cflbRole struct {
	loaded[*cflbProgram]
	config   datapath.CFLBConfig
	selector *config.CFLB
	room     *cflbRoom
}

var _ switchable[*cflbRole] = (*cflbRole)(nil)

// cflbRoom is the node's place for role cflb.
type cflbRoom struct {
	slot[*cflbRole]
}

func newCFLBRoom(p parts) *cflbRoom {
	return &cflbRoom{slot: slot[*cflbRole]{parts: p, name: api.CFLB}}
}

// cflbChange makes the kernel choose by hash before the programs set hashes.
type cflbChange struct {
	*prepared[*cflbRole]
	room *cflbRoom
	node *config.Node
}

func (r *cflbRoom) prepare(next *config.Node) (change, error) {
	p, err := r.changeTo(func() (*cflbRole, error) { return r.build(next) })
	return cflbChange{p, r, next}, err
}

// cflbProgram is the programs, and the router's routes that they follow.
type cflbProgram struct {
	*datapath.CFLB
	router     *kernelfib.Router
	table      equalcost.Table
	left       map[netip.Prefix]string // to the kernel, and why
	renumbered uint64
	updates    uint64
}

// Close releases the programs; packets are forwarded on, by the routes as they are.
func (p *cflbProgram) Close() {
	p.router.Close()
	p.CFLB.Close()
}

// build makes what the configuration wants.
func (r *cflbRoom) build(n *config.Node) (*cflbRole, error) {
	if n.CFLB == nil {
		return nil, nil
	}
	c := datapath.CFLBConfig{Router: uint32(n.CFLB.Router),
		Kernel: n.CFLB.Forwarding == config.ByKernel}
	var err4, err6 error
	c.IPv4, err4 = n.CFLB.Codec(false)
	c.IPv6, err6 = n.CFLB.Codec(true)
	for _, i := range n.CFLB.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.CFLBInterface{Name: i.Name,
			Mode: attachModes[i.Mode]})
	}
	return &cflbRole{config: c, selector: n.CFLB, room: r}, errors.Join(err4, err6)
}

func (r *cflbRole) same(other *cflbRole) bool {
	return !r.broken && datapath.Same(r.config, other.config)
}

func (r *cflbRole) load(dir string, running *cflbRole) error {
	if running != nil {
		r.loaded = running.loaded
		return nil
	}
	router, err := kernelfib.FollowRouter(r.room.options.Log)
	if err != nil {
		return err
	}
	program, err := datapath.OpenCFLB(dir, r.config)
	if err != nil {
		router.Close()
		return err
	}
	r.program = &cflbProgram{CFLB: program, router: router}
	follow(r.room.life, &r.room.loop, router.Changes(),
		func(struct{}) { r.room.followNextHops(router) })
	return nil
}

// multipathHash is what the kernel is told so that it takes the next hop by the hash that a program
// sets.
var multipathHash = []string{"net.ipv4.fib_multipath_hash_policy",
	"net.ipv6.fib_multipath_hash_policy"}

// begin makes the kernel choose by hash.
func (c cflbChange) begin() error {
	if c.leaves() {
		return nil
	}
	if len(c.node.Routing.KernelVRFs()) > 0 {
		return &config.Problem{Kind: config.ErrConflict, Path: "cflb",
			Text: "routing.vrfs of datapath kernel wants fib_multipath_hash_policy 3, and " +
				"controllable load balancing 1",
			Mend: "give each a machine or a network namespace of its own"}
	}
	for _, name := range multipathHash {
		is, err := linux.ReadSysctl(name)
		if err != nil || is == "1" {
			continue // without the family there is nothing to set
		}
		if err := linux.WriteSysctl(name, "1"); err != nil {
			return err
		}
		c.room.options.Log.Info("sysctl is set, so that the kernel takes next hops that "+
			"sources chose", "sysctl", name, "from", is, "to", "1")
	}
	return nil
}

// fill sets the table before packets meet it. Next hops that the program at XDP can send to are
// known when it is attached: changes says so.
func (r *cflbRole) fill(*cflbRole) error { return r.program.follow(r.selector) }

// follow makes the table what the router's routes are now.
func (p *cflbProgram) follow(c *config.CFLB) error {
	state, err := p.router.Take()
	if err != nil {
		return fmt.Errorf("follow the router: %w", err)
	}
	sends := map[uint32]bool{}
	for _, at := range p.Attachments() {
		sends[uint32(at.Index)] = sends[uint32(at.Index)] || at.Mode == datapath.Native
	}
	next := controlled(equalcost.Compute(state), c)
	table, left := cflbTable(next, c, sends)
	if err := p.SetTable(table); err != nil {
		return err
	}
	p.renumbered += uint64(next.Renumbered(p.table))
	p.updates++
	p.table, p.left = next, left
	return nil
}

// followNextHops brings the role's table up to date with its router.
func (r *cflbRoom) followNextHops(router *kernelfib.Router) {
	role := r.runs
	if role == nil || role.program.router != router {
		return
	}
	fault := ""
	if err := role.program.follow(role.selector); err != nil {
		fault = "the previous next hops stay: " + err.Error()
	} else {
		fault = role.program.leftText()
	}
	if fault == role.fault {
		return
	}
	if role.fault = fault; fault != "" {
		r.options.Log.Warn("sources can't choose all next hops", "cause", fault)
	} else {
		r.options.Log.Info("sources can choose among all equal-cost next hops")
	}
	r.rewarn()
}

// namedDestinations is how many destinations a warning names.
const namedDestinations = 3

func (p *cflbProgram) leftText() string {
	var list []string
	for _, prefix := range slices.SortedFunc(maps.Keys(p.left), equalcost.ComparePrefixes) {
		if len(list) == namedDestinations {
			list = append(list, fmt.Sprintf("and %d more", len(p.left)-namedDestinations))
			break
		}
		list = append(list, fmt.Sprintf("%s: %s", prefix, p.left[prefix]))
	}
	return strings.Join(list, "; ")
}

// NextHops is what api.Agent says.
func (r *cflbRoom) NextHops(ctx context.Context) (list []api.NextHops, err error) {
	err = r.do(ctx, func() {
		if r.runs != nil {
			list = r.runs.program.nextHops()
		}
	})
	return list, err
}

func (p *cflbProgram) nextHops() (list []api.NextHops) {
	prefixes := maps.Clone(p.left)
	for prefix := range p.table.Sets {
		prefixes[prefix] = p.left[prefix]
	}
	for _, prefix := range slices.SortedFunc(maps.Keys(prefixes), equalcost.ComparePrefixes) {
		one := api.NextHops{Prefix: prefix, Left: prefixes[prefix], Hops: []api.ECMPNextHop{}}
		for _, hop := range p.table.Sets[prefix] {
			view := api.ECMPNextHop{Interface: hop.Interface, Weight: hop.Weight, Down: hop.Down}
			if hop.Gateway.IsValid() {
				view.Gateway = &hop.Gateway
			}
			one.Hops = append(one.Hops, view)
		}
		list = append(list, one)
	}
	return list
}

// warnings are those of parameters that do worse than others would.
func (r *cflbRoom) warnings() (list []string) {
	if r.runs == nil {
		return nil
	}
	list = append(r.runs.config.IPv4.Warnings(), r.runs.config.IPv6.Warnings()...)
	for _, name := range multipathHash {
		if is, err := linux.ReadSysctl(name); err == nil && is != "1" {
			list = append(list, fmt.Sprintf("%s is %s: the kernel takes other next hops than "+
				"sources chose; set it to 1: sysctl -w %s=1", name, is, name))
		}
	}
	return list
}

// choiceNames are the words of counters for the ways in which a next hop is chosen.
var choiceNames = []struct {
	choice cflb.Choice
	name   string
}{
	{cflb.Controlled, "controlled"}, {cflb.Beyond, "beyond"}, {cflb.OutOfRange, "out_of_range"},
	{cflb.Unreadable, "unreadable"},
}

func (r *cflbRole) count(c *api.Counters) error {
	choices, err := r.program.Choices()
	if err != nil {
		return err
	}
	c.CFLB = &api.CFLBCounters{Destinations: len(r.program.table.Sets),
		LeftToKernel: len(r.program.left), Renumbered: r.program.renumbered,
		Updates: r.program.updates}
	for _, n := range choiceNames {
		c.CFLB.Choices = append(c.CFLB.Choices, api.Choice{Choice: n.name,
			Packets: choices[n.choice]})
	}
	return nil
}

func (r *cflbRoom) explain(*explaining, string) error {
	return &api.Error{Code: api.Conflict, Message: "the role cflb knows no connections: what its " +
		"routers make of a flow's ports and flow label says sextant path decode, the next hops " +
		"of a destination sextant path next-hops"}
}

var (
	choicePackets = description("cflb_packets_total",
		"Packets whose next hop a router with controllable load balancing chose, by how: as the "+
			"source said (controlled), or by hash because the selector names no next hop that is "+
			"up (beyond), the fields hold no selector (out_of_range) or are not there "+
			"(unreadable).",
		"choice")
	choiceDestinations = description("cflb_destinations",
		"Destinations with several equal-cost next hops, by whether sources choose (controlled) "+
			"or not (left).", "state")
	choiceRenumbered = description("cflb_renumbered_total",
		"How often a destination's next hops got other indexes: flows that chose them take other "+
			"paths, or are hashed.")
)

func collectChoices(out chan<- prometheus.Metric, c *api.CFLBCounters) {
	if c == nil {
		return
	}
	for _, one := range c.Choices {
		counter(out, choicePackets, one.Packets, one.Choice)
	}
	gauge(out, choiceDestinations, float64(c.Destinations), "controlled")
	gauge(out, choiceDestinations, float64(c.LeftToKernel), "left")
	counter(out, choiceRenumbered, c.Renumbered)
}
