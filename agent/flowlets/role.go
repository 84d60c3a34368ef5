// Package flowlets is role flowlets: a host that sends its flows over several paths.
package flowlets

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/agent/pathprobe"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/linux"
)

// Role is a host that sends its flows over several paths. A nil Role is a node without it.
type Role struct {
	role.Loaded[*datapath.Flowlets]
	Config datapath.FlowletsConfig
	Groups []model.FlowletGroup // as configured: without what is found out of paths
	config *config.Flowlets
	mtu    int // of the domain
	room   *Room
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Room is the node's place for role flowlets.
type Room struct {
	role.Slot[*Role]
	prober *pathprobe.Prober
	probes config.Probe                 // of prober
	own    netip.Addr                   // of prober
	ways   map[netip.Addr]linux.WayOut  // by path
	lost   map[netip.Addr]bool          // paths of which probes don't come back
	delays map[netip.Addr]time.Duration // by probes
	lookAt time.Duration
	moved  bool // routes have changed
}

// lookInterval is the time between looks at what probes measured, and at routes that changed.
const lookInterval = 100 * time.Millisecond

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p},
		ways: map[netip.Addr]linux.WayOut{}, lost: map[netip.Addr]bool{},
		delays: map[netip.Addr]time.Duration{}}
}

// Prepare is role.Room.
func (r *Room) Prepare(next *config.Node) (role.Change, error) {
	return r.ChangeTo(func() (*Role, error) { return r.Build(next) })
}

var choices = map[config.FlowletChoice]model.FlowletChoice{
	config.Measured: model.FlowletByMeasure, config.Random: model.FlowletAtRandom,
	config.OfFlow: model.FlowletByFlow,
}

// Build makes what the configuration wants.
func (r *Room) Build(n *config.Node) (*Role, error) {
	f := n.Flowlets
	if f == nil {
		return nil, nil
	}
	next := &Role{config: f, mtu: n.Domain.MTU, room: r, Config: datapath.FlowletsConfig{
		Interfaces: f.Interfaces, Source: f.Source, FlowletsOuter: f.FlowletsOuter, Gap: f.Gap,
		Choice: choices[f.Choice], Flows: f.Flows}}
	for _, g := range f.Groups {
		group := model.FlowletGroup{Destinations: g.Destinations}
		for _, p := range g.Paths {
			group.Paths = append(group.Paths, model.FlowletPath{SID: p.SID, MTU: n.Domain.MTU})
		}
		next.Groups = append(next.Groups, group)
	}
	return next, nil
}

// Same is role.Switchable.
func (r *Role) Same(other *Role) bool { return !r.Broken && datapath.Same(r.Config, other.Config) }

// Load is role.Switchable.
func (r *Role) Load(dir string) (err error) {
	if r.Program, err = datapath.OpenFlowlets(dir, r.Config); err == nil && r.room.Runs == nil {
		r.room.resume(r)
	}
	return err
}

// resume takes over what an earlier agent knew of paths by probes: those that were out of use stay
// so until probes come back, whatever is known of a prober that has just begun.
func (r *Room) resume(next *Role) {
	if !next.config.Probes() {
		return
	}
	for sid, was := range next.Program.Found() {
		r.lost[sid], r.delays[sid] = was.Down, was.Delay
	}
}

// Fill gives the programs the paths, with what is known of them.
func (r *Role) Fill(*Role) error {
	r.room.lookAtRoutes(r)
	return r.Program.SetGroups(r.known())
}

// known are the groups with what was found out of paths.
func (r *Role) known() []model.FlowletGroup {
	groups := slices.Clone(r.Groups)
	for i, g := range groups {
		groups[i].Paths = slices.Clone(g.Paths)
		for j := range g.Paths {
			p := &groups[i].Paths[j]
			if way, ok := r.room.ways[p.SID]; ok {
				p.Interface, p.MTU = uint32(way.Index), min(r.mtu, way.MTU)
			}
			p.Down, p.Delay = r.room.lost[p.SID], r.room.delays[p.SID]
		}
	}
	return groups
}

// lookAtRoutes finds out by which interfaces paths leave.
func (r *Room) lookAtRoutes(runs *Role) {
	clear(r.ways)
	for _, g := range runs.Groups {
		for _, p := range g.Paths {
			if way, err := linux.WayTo(p.SID); err == nil {
				r.ways[p.SID] = way
			}
		}
	}
}

// RoutesChanged is role.RouteWatcher.
func (r *Room) RoutesChanged() { r.moved = true }

// Due is when paths are looked at again.
func (r *Room) Due() (wait time.Duration, waits bool) {
	if r.Runs == nil || !r.moved && r.prober == nil {
		return 0, false
	}
	return r.lookAt - r.Now(), true
}

// Act makes the programs know what is new of paths.
func (r *Room) Act() {
	r.lookAt = r.Now() + lookInterval
	ways, delays := maps.Clone(r.ways), maps.Clone(r.delays)
	if r.moved {
		r.moved = false
		r.lookAtRoutes(r.Runs)
	}
	r.lookAtProbes()
	if !maps.Equal(ways, r.ways) || !maps.Equal(delays, r.delays) {
		r.refresh()
	}
}

// lookAtProbes takes over what probes measured, where it differs by a tenth at least.
func (r *Room) lookAtProbes() {
	if r.prober == nil {
		return
	}
	for i, g := range r.Runs.Groups {
		for j, p := range g.Paths {
			stats, _ := r.prober.Stats(r.Runs.key(i, j))
			before := r.delays[p.SID]
			if stats.RTT > 0 && (stats.RTT-before).Abs() > before/10 {
				r.delays[p.SID] = stats.RTT
			}
		}
	}
}

// refresh gives the programs what is known of paths.
func (r *Room) refresh() {
	fault := ""
	if err := r.Runs.Program.SetGroups(r.Runs.known()); err != nil {
		fault = "what was known of paths stays: " + err.Error()
	}
	if fault != r.Runs.Fault {
		r.Runs.Fault = fault
		r.Rewarn()
	}
}

// key is a path, as it is probed.
func (r *Role) key(group, path int) pathprobe.Key {
	return pathprobe.Key{Name: r.config.Groups[group].Name, Slot: path}
}

// Settled probes the paths that the node has now.
func (r *Room) Settled() {
	if r.Runs == nil || !r.Runs.config.Probes() {
		r.stopProbes()
		r.forgetProbes()
		return
	}
	if r.prober != nil && (r.probes != *r.Runs.config.Probe || r.own != r.Runs.Config.Source) {
		r.stopProbes() // what they found holds until others find out
	}
	if r.prober == nil {
		if err := r.startProbes(*r.Runs.config.Probe); err != nil {
			r.Log.Error("paths of flowlets are not probed", "error", err)
			r.forgetProbes()
			return
		}
	}
	var lists []pathprobe.List
	for i, g := range r.Runs.Groups {
		for j, p := range g.Paths {
			lists = append(lists, pathprobe.List{Key: r.Runs.key(i, j),
				Segments: []netip.Addr{p.SID}})
		}
	}
	if err := r.prober.Set(lists); err != nil {
		r.Log.Error("paths of flowlets can't be probed", "error", err)
	}
}

func (r *Room) startProbes(probes config.Probe) error {
	prober, err := pathprobe.Open(pathprobe.Options{Own: r.Runs.Config.Source, Log: r.Log,
		Settings: pathprobe.Settings{Interval: probes.Interval, Missed: probes.Missed,
			Good: probes.Good}})
	if err != nil {
		return err
	}
	r.prober, r.probes, r.own = prober, probes, r.Runs.Config.Source
	role.Follow(r.Life, &r.Loop, prober.Changes(), func(changes []pathprobe.Change) {
		if r.prober == prober && r.Runs != nil {
			r.probed(changes)
		}
	})
	return nil
}

func (r *Room) stopProbes() {
	if r.prober == nil {
		return
	}
	if err := r.prober.Close(); err != nil {
		r.Log.Warn("probes end with an error", "error", err)
	}
	r.prober = nil
}

// forgetProbes brings paths back into use that probes found silent.
func (r *Room) forgetProbes() {
	if len(r.lost)+len(r.delays) == 0 {
		return
	}
	clear(r.lost)
	clear(r.delays)
	if r.Runs != nil {
		r.refresh()
	}
}

// probed takes paths out of use, or into it.
func (r *Room) probed(changes []pathprobe.Change) {
	for _, c := range changes {
		for i, g := range r.Runs.Groups {
			if r.Runs.config.Groups[i].Name != c.Name || c.Slot >= len(g.Paths) {
				continue
			}
			r.lost[g.Paths[c.Slot].SID] = !c.Answers
			status := "silent"
			if c.Answers {
				status = "answers"
			}
			r.Tell(api.Event{Policy: c.Name, List: r.Runs.config.Groups[i].Paths[c.Slot].Name,
				Status: status, Reason: "probes of flowlets"})
		}
	}
	r.refresh()
	r.Rewarn()
}

// End is role.Ender.
func (r *Room) End() {
	if r.prober != nil {
		r.prober.Close()
	}
}

// Warnings names paths that are not used.
func (r *Room) Warnings() (list []string) {
	if r.Runs == nil {
		return nil
	}
	for i, g := range r.Runs.config.Groups {
		for _, p := range g.Paths {
			switch _, routed := r.ways[p.SID]; {
			case r.lost[p.SID]:
				list = append(list, fmt.Sprintf("flowlets: probes over path %s of %s don't come "+
					"back, so it is not used", p.Name, r.Runs.config.Groups[i].Name))
			case !routed:
				list = append(list, fmt.Sprintf("flowlets: there is no route to %s, the SID of "+
					"path %s of %s: its packets leave by the route of their destination", p.SID,
					p.Name, r.Runs.config.Groups[i].Name))
			}
		}
	}
	return list
}
