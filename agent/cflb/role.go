// Package cflb is role cflb: a router whose sources choose among its equal-cost next hops.
package cflb

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
	"sextant/agent/explain"
	"sextant/agent/metrics"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
	"sextant/linux"
	selector "sextant/packet/cflb"
	"sextant/routing/equalcost"
	"sextant/routing/kernelfib"
)

// Role is a router whose sources choose among its equal-cost next hops. A nil Role is a
// node without it.
type Role struct {
	role.Loaded[*program]
	Config   datapath.CFLBConfig
	selector *config.CFLB
	room     *Room
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Room is the node's place for role cflb.
type Room struct {
	role.Slot[*Role]
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}}
}

// roleChange makes the kernel choose by hash before the programs set hashes.
type roleChange struct {
	*role.Prepared[*Role]
	room *Room
	node *config.Node
}

// Prepare is role.Room.
func (r *Room) Prepare(next *config.Node) (role.Change, error) {
	p, err := r.ChangeTo(func() (*Role, error) { return r.Build(next) })
	return roleChange{p, r, next}, err
}

// program is the programs, and the router's routes that they follow.
type program struct {
	*datapath.CFLB
	router     *kernelfib.Router
	table      equalcost.Table
	left       map[netip.Prefix]string // to the kernel, and why
	renumbered uint64
	updates    uint64
}

// Close releases the programs; packets are forwarded on, by the routes as they are.
func (p *program) Close() {
	p.router.Close()
	p.CFLB.Close()
}

// Build makes what the configuration wants.
func (r *Room) Build(n *config.Node) (*Role, error) {
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
			Mode: role.AttachModes[i.Mode]})
	}
	return &Role{Config: c, selector: n.CFLB, room: r}, errors.Join(err4, err6)
}

// Same is role.Switchable.
func (r *Role) Same(other *Role) bool { return !r.Broken && datapath.Same(r.Config, other.Config) }

// Load is role.Switchable.
func (r *Role) Load(dir string) error {
	router, err := kernelfib.FollowRouter(r.room.Log)
	if err != nil {
		return err
	}
	programs, err := datapath.OpenCFLB(dir, r.Config)
	if err != nil {
		router.Close()
		return err
	}
	r.Program = &program{CFLB: programs, router: router}
	role.Follow(r.room.Life, &r.room.Loop, router.Changes(),
		func(struct{}) { r.room.followNextHops(router) })
	return nil
}

// multipathHash is what the kernel is told so that it takes the next hop by the hash that a program
// sets.
var multipathHash = []string{"net.ipv4.fib_multipath_hash_policy",
	"net.ipv6.fib_multipath_hash_policy"}

// Begin makes the kernel choose by hash.
func (c roleChange) Begin() error {
	if c.Leaves() {
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
		c.room.Log.Info("sysctl is set, so that the kernel takes next hops that "+
			"sources chose", "sysctl", name, "from", is, "to", "1")
	}
	return nil
}

// Fill sets the table before packets meet it. Next hops that the program at XDP can send to are
// known when it is attached: changes says so.
func (r *Role) Fill(*Role) error { return r.Program.follow(r.selector) }

// follow makes the table what the router's routes are now.
func (p *program) follow(c *config.CFLB) error {
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
func (r *Room) followNextHops(router *kernelfib.Router) {
	runs := r.Runs
	if runs == nil || runs.Program.router != router {
		return
	}
	fault := ""
	if err := runs.Program.follow(runs.selector); err != nil {
		fault = "the previous next hops stay: " + err.Error()
	} else {
		fault = runs.Program.leftText()
	}
	if fault == runs.Fault {
		return
	}
	if runs.Fault = fault; fault != "" {
		r.Log.Warn("sources can't choose all next hops", "cause", fault)
	} else {
		r.Log.Info("sources can choose among all equal-cost next hops")
	}
	r.Rewarn()
}

// namedDestinations is how many destinations a warning names.
const namedDestinations = 3

func (p *program) leftText() string {
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
func (r *Room) NextHops(ctx context.Context) (list []api.NextHops, err error) {
	err = r.Do(ctx, func() {
		if r.Runs != nil {
			list = r.Runs.Program.nextHops()
		}
	})
	return list, err
}

func (p *program) nextHops() (list []api.NextHops) {
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

// Warnings are those of parameters that do worse than others would.
func (r *Room) Warnings() (list []string) {
	if r.Runs == nil {
		return nil
	}
	list = append(r.Runs.Config.IPv4.Warnings(), r.Runs.Config.IPv6.Warnings()...)
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
	choice selector.Choice
	name   string
}{
	{selector.Controlled, "controlled"}, {selector.Beyond, "beyond"},
	{selector.OutOfRange, "out_of_range"},
	{selector.Unreadable, "unreadable"},
}

// Count is role.Role.
func (r *Role) Count(c *api.Counters) error {
	choices, err := r.Program.Choices()
	if err != nil {
		return err
	}
	c.CFLB = &api.CFLBCounters{Destinations: len(r.Program.table.Sets),
		LeftToKernel: len(r.Program.left), Renumbered: r.Program.renumbered,
		Updates: r.Program.updates}
	for _, n := range choiceNames {
		c.CFLB.Choices = append(c.CFLB.Choices, api.Choice{Choice: n.name,
			Packets: choices[n.choice]})
	}
	return nil
}

// Explain is role.Room.
func (r *Room) Explain(*explain.Explaining, string) error {
	return &api.Error{Code: api.Conflict, Message: "the role cflb knows no connections: what its " +
		"routers make of a flow's ports and flow label says sextant path decode, the next hops " +
		"of a destination sextant path next-hops"}
}

var (
	choicePackets = metrics.Description("cflb_packets_total",
		"Packets whose next hop a router with controllable load balancing chose, by how: as the "+
			"source said (controlled), or by hash because the selector names no next hop that is "+
			"up (beyond), the fields hold no selector (out_of_range) or are not there "+
			"(unreadable).",
		"choice")
	choiceDestinations = metrics.Description("cflb_destinations",
		"Destinations with several equal-cost next hops, by whether sources choose (controlled) "+
			"or not (left).", "state")
	choiceRenumbered = metrics.Description("cflb_renumbered_total",
		"How often a destination's next hops got other indexes: flows that chose them take other "+
			"paths, or are hashed.")
)

// Collect adds how next hops were chosen.
func (r *Room) Collect(out chan<- prometheus.Metric) {
	c := r.Counters(out).CFLB
	if c == nil {
		return
	}
	for _, one := range c.Choices {
		metrics.Counter(out, choicePackets, one.Packets, one.Choice)
	}
	metrics.Gauge(out, choiceDestinations, float64(c.Destinations), "controlled")
	metrics.Gauge(out, choiceDestinations, float64(c.LeftToKernel), "left")
	metrics.Counter(out, choiceRenumbered, c.Renumbered)
}
