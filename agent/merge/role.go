// Package merge is role merge: the egress of protected traffic, which drops copies and watches
// paths.
package merge

import (
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/packet/lists"
	"sextant/te/frer"
)

// Role is the egress of protected traffic as it runs. A nil Role is a node without one.
type Role struct {
	role.Loaded[*datapath.Merge]
	Config    datapath.MergeConfig
	Instances []MergeInstance
	ended     []state.MergeNumber    // of the configuration before, as long as the kernel has them
	watches   map[uint32]*mergeWatch // by index
}

var _ role.Switchable[*Role] = (*Role)(nil)

// MergeInstance is a protected flow.
type MergeInstance struct {
	config.MergeSID
	state.MergeNumber
}

// mergeConfig is the part of the configuration that is compiled into the programs.
func mergeConfig(n *config.Node) datapath.MergeConfig {
	c := datapath.MergeConfig{Domain: role.DomainOf(n, netip.Addr{})}
	for _, i := range n.Merge.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.MergeInterface{Name: i.Name,
			Mode: role.AttachModes[i.Mode]})
	}
	for _, s := range n.Merge.SIDs {
		sid := datapath.MergeSID{Prefix: s.Prefix, Mark: uint32(s.Mark)}
		if !slices.Contains(c.SIDs, sid) {
			c.SIDs = append(c.SIDs, sid)
		}
	}
	return c
}

// Room is the node's place for the egress of protected traffic.
type Room struct {
	role.Slot[*Role]
	ordering *ordering // nil: no protected flow is put in order
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}}
}

// End is role.Ender.
func (m *Room) End() { m.ordering.end() }

// Serve is role.Server.
func (m *Room) Serve() { role.Every(m.Life, &m.Loop, watchInterval, m.watchMerges) }

// mergeChange is a change of the egress.
type mergeChange struct {
	*role.Prepared[*Role]
	room *Room
}

// Prepare is role.Room.
func (m *Room) Prepare(next *config.Node) (role.Change, error) {
	p, err := m.ChangeTo(func() (*Role, error) { return m.Build(next) })
	return mergeChange{p, m}, err
}

func (c mergeChange) Discard() {
	c.Prepared.Discard()
	c.room.tidy(c.Prepared)
}

func (c mergeChange) Finish() {
	if !c.SameProgram() {
		c.room.ordering.end()
	}
	c.Prepared.Finish()
}

// Settled is role.Settler.
func (m *Room) Settled() {
	m.tidy(nil)
	m.orderMerges()
}

// Build makes what the configuration wants.
func (m *Room) Build(n *config.Node) (*Role, error) {
	if n.Merge == nil {
		return nil, nil
	}
	next := &Role{Config: mergeConfig(n)}
	for _, s := range n.Merge.SIDs {
		instance, err := InstanceOf(s)
		if err != nil {
			return nil, err
		}
		next.Instances = append(next.Instances,
			MergeInstance{s, state.MergeNumber{Instance: instance}})
	}
	if m.Runs != nil {
		next.watches = m.Runs.watches
	}
	next.ended = m.Store.Kept.Merges
	next.Number(next.ended)
	return next, nil
}

// Load is role.Switchable.
func (m *Role) Load(dir string) (err error) {
	m.Program, err = datapath.OpenMerge(dir, m.Config)
	return err
}

// InstanceOf translates a configured protected flow.
func InstanceOf(s config.MergeSID) (datapath.Instance, error) {
	i := datapath.Instance{SID: s.Prefix, Order: s.Ordered,
		Rules: frer.Settings{HistoryLog2: s.History, Bits: frer.BitsTLV,
			Reset: s.Reset}}
	if s.Form == config.NumberedInSID {
		i.Rules.Bits = frer.BitsSID
	}
	for _, f := range s.Flows {
		i.Flows = append(i.Flows, uint32(f))
	}
	var err error
	if s.History == 0 {
		i.Rules.HistoryLog2, err = frer.HistoryFor(float64(s.Rate), s.Skew)
	}
	return i, err
}

// Number gives the instances their indexes: what the kernel knows already keeps its own, and what
// is new gets one that nobody has, so that what runs is not touched before all is settled.
func (m *Role) Number(known []state.MergeNumber) {
	taken := map[uint32]bool{}
	for _, k := range known {
		taken[k.Index] = true
	}
	var fresh []*MergeInstance
	used := map[uint32]bool{}
	for i := range m.Instances {
		instance := &m.Instances[i]
		at := slices.IndexFunc(known, func(k state.MergeNumber) bool {
			return !used[k.Index] &&
				goesOn(k, instance.Instance)
		})
		if at < 0 {
			fresh = append(fresh, instance)
			continue
		}
		instance.Index = known[at].Index
		used[instance.Index] = true
	}
	for _, instance := range fresh {
		index, free := state.FreeIndex(datapath.MaxInstances, taken, nil)
		if !free { // as many as can be are gone or changed at once
			index, _ = state.FreeIndex(datapath.MaxInstances, used, nil)
		}
		instance.Index, taken[index], used[index] = index, true, true
	}
}

// goesOn says whether the instance is the known one, with perhaps more paths.
func goesOn(k state.MergeNumber, i datapath.Instance) bool {
	n := len(k.Instance.Flows)
	return k.Instance.SID == i.SID && k.Instance.Rules == i.Rules && k.Instance.Order == i.Order &&
		n <= len(i.Flows) &&
		slices.Equal(k.Instance.Flows, i.Flows[:n])
}

// Numbers are what the state file keeps of the instances.
func (m *Role) Numbers() []state.MergeNumber {
	return lists.Map(m.Instances, func(i MergeInstance) state.MergeNumber { return i.MergeNumber })
}

// Adopt is role.Role.
func (m *Role) Adopt(k *state.Kept) { k.Merges = m.Numbers() }

// Explain is role.Room.
func (m *Room) Explain(x *explain.Explaining, on string) (err error) {
	if x.At, err = explain.Arrival(m.Runs.Attachments, "merge", on); err != nil {
		return err
	}
	twin := m.Runs.model()
	x.Decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return m.Runs.decide(x, twin, e, frame)
	}
	x.Made = func(f api.Flow, _ []string) ([]explain.Framed, error) {
		return m.Runs.copiesOf(x, twin, f)
	}
	x.Program, err = m.Runs.Program.Explainer()
	return err
}

// Same is role.Switchable.
func (m *Role) Same(other *Role) bool { return datapath.Same(m.Config, other.Config) }

// Fill sets the instances that before does not have. Those that are gone go when all is settled:
// tidy.
func (m *Role) Fill(before *Role) error {
	for _, i := range m.Instances {
		if before != nil && slices.ContainsFunc(before.Instances, i.isSame) {
			continue
		}
		if err := m.Program.SetInstance(i.Index, i.Instance); err != nil {
			return err
		}
	}
	return nil
}

func (i MergeInstance) isSame(o MergeInstance) bool {
	return i.Index == o.Index && goesOn(o.MergeNumber, i.Instance) &&
		len(i.Instance.Flows) == len(o.Instance.Flows)
}

// tidy ends instances of an earlier configuration, or of one that was refused, which are not
// to run.
func (m *Room) tidy(refused *role.Prepared[*Role]) {
	if m.Runs == nil {
		return
	}
	ended := slices.Clone(m.Runs.ended)
	if refused != nil && refused.Begun && refused.Next != nil && refused.SameProgram() {
		ended = refused.Next.Numbers()
	}
	for _, k := range ended {
		if slices.ContainsFunc(m.Runs.Instances,
			func(i MergeInstance) bool { return i.Index == k.Index }) {
			continue
		}
		if err := m.Runs.Program.DeleteInstance(k.Index); err != nil {
			m.Log.Warn("a protected flow that is no longer configured is still told apart",
				"sid", k.Instance.SID, "error", err)
		}
	}
	m.Runs.ended = nil
}
