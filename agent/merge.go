package agent

import (
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/te/frer"
)

// mergeRole is the egress of protected traffic as it runs. A nil mergeRole is a node without one.
type mergeRole struct {
	loaded[*datapath.Merge]
	config    datapath.MergeConfig
	instances []mergeInstance
	ended     []mergeNumber          // of the configuration before, as long as the kernel has them
	watches   map[uint32]*mergeWatch // by index
}

var _ switchable[*mergeRole] = (*mergeRole)(nil)

// mergeInstance is a protected flow.
type mergeInstance struct {
	config.MergeSID
	mergeNumber
}

// mergeNumber is what the kernel's tables know of a protected flow. A flow with other rules or
// paths is another one, but for paths that come behind those that were there.
type mergeNumber struct {
	Index    uint32            `json:"index"`
	Instance datapath.Instance `json:"instance"`
}

// mergeConfig is the part of the configuration that is compiled into the programs.
func mergeConfig(n *config.Node) datapath.MergeConfig {
	c := datapath.MergeConfig{Domain: domainOf(n, netip.Addr{})}
	for _, i := range n.Merge.Interfaces {
		c.Interfaces = append(c.Interfaces, datapath.MergeInterface{Name: i.Name,
			Mode: attachModes[i.Mode]})
	}
	for _, s := range n.Merge.SIDs {
		sid := datapath.MergeSID{Prefix: s.Prefix, Mark: uint32(s.Mark)}
		if !slices.Contains(c.SIDs, sid) {
			c.SIDs = append(c.SIDs, sid)
		}
	}
	return c
}

// mergeRoom is the node's place for the egress of protected traffic.
type mergeRoom struct {
	slot[*mergeRole]
	ordering *ordering // nil: no protected flow is put in order
}

func newMergeRoom(p parts) *mergeRoom {
	return &mergeRoom{slot: slot[*mergeRole]{parts: p, name: api.Merge}}
}

func (m *mergeRoom) opened() {}
func (m *mergeRoom) end()    { m.ordering.end() }
func (m *mergeRoom) serve()  { every(m.life, &m.loop, watchInterval, m.watchMerges) }

// mergeChange is a change of the egress.
type mergeChange struct {
	*prepared[*mergeRole]
	room *mergeRoom
}

func (m *mergeRoom) prepare(next *config.Node) (change, error) {
	p, err := m.changeTo(func() (*mergeRole, error) { return m.build(next) })
	return mergeChange{p, m}, err
}

func (c mergeChange) discard() {
	c.prepared.discard()
	c.room.tidy(c.prepared)
}

func (c mergeChange) finish() {
	if !c.sameProgram() {
		c.room.ordering.end()
	}
	c.prepared.finish()
}

func (m *mergeRoom) settled() {
	m.tidy(nil)
	m.orderMerges()
}

// build makes what the configuration wants.
func (m *mergeRoom) build(n *config.Node) (*mergeRole, error) {
	if n.Merge == nil {
		return nil, nil
	}
	next := &mergeRole{config: mergeConfig(n)}
	for _, s := range n.Merge.SIDs {
		instance, err := instanceOf(s)
		if err != nil {
			return nil, err
		}
		next.instances = append(next.instances, mergeInstance{s, mergeNumber{Instance: instance}})
	}
	if m.runs != nil {
		next.watches = m.runs.watches
	}
	next.ended = m.store.kept.Merges
	next.number(next.ended)
	return next, nil
}

func (m *mergeRole) load(dir string, running *mergeRole) (err error) {
	if running != nil {
		m.loaded = running.loaded
		return nil
	}
	m.program, err = datapath.OpenMerge(dir, m.config)
	return err
}

// instanceOf translates a configured protected flow.
func instanceOf(s config.MergeSID) (datapath.Instance, error) {
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

// number gives the instances their indexes: what the kernel knows already keeps its own, and what
// is new gets one that nobody has, so that what runs is not touched before all is settled.
func (m *mergeRole) number(known []mergeNumber) {
	taken := map[uint32]bool{}
	for _, k := range known {
		taken[k.Index] = true
	}
	var fresh []*mergeInstance
	used := map[uint32]bool{}
	for i := range m.instances {
		instance := &m.instances[i]
		at := slices.IndexFunc(known, func(k mergeNumber) bool {
			return !used[k.Index] &&
				k.goesOnAs(instance.Instance)
		})
		if at < 0 {
			fresh = append(fresh, instance)
			continue
		}
		instance.Index = known[at].Index
		used[instance.Index] = true
	}
	for _, instance := range fresh {
		index, free := freeIndex(datapath.MaxInstances, taken, nil)
		if !free { // as many as can be are gone or changed at once
			index, _ = freeIndex(datapath.MaxInstances, used, nil)
		}
		instance.Index, taken[index], used[index] = index, true, true
	}
}

// goesOnAs says whether the instance is the known one, with perhaps more paths.
func (k mergeNumber) goesOnAs(i datapath.Instance) bool {
	n := len(k.Instance.Flows)
	return k.Instance.SID == i.SID && k.Instance.Rules == i.Rules && k.Instance.Order == i.Order &&
		n <= len(i.Flows) &&
		slices.Equal(k.Instance.Flows, i.Flows[:n])
}

func (m *mergeRole) numbers() []mergeNumber {
	var numbers []mergeNumber
	for _, i := range m.instances {
		numbers = append(numbers, i.mergeNumber)
	}
	return numbers
}

func (m *mergeRole) adopt(k *kept) { k.Merges = m.numbers() }

func (m *mergeRoom) explain(x *explaining, on string) (err error) {
	if x.at, err = arrival(m.runs.attachments, "merge", on); err != nil {
		return err
	}
	twin := m.runs.model()
	x.decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return m.runs.decide(x, twin, e, frame)
	}
	x.made = func(f api.Flow, _ []string) ([]framed, error) { return m.runs.copiesOf(x, twin, f) }
	x.program, err = m.runs.program.Explainer()
	return err
}

func (m *mergeRole) same(other *mergeRole) bool { return datapath.Same(m.config, other.config) }

// fill sets the instances that before does not have. Those that are gone go when all is settled:
// tidy.
func (m *mergeRole) fill(before *mergeRole) error {
	for _, i := range m.instances {
		if before != nil && slices.ContainsFunc(before.instances, i.isSame) {
			continue
		}
		if err := m.program.SetInstance(i.Index, i.Instance); err != nil {
			return err
		}
	}
	return nil
}

func (i mergeInstance) isSame(o mergeInstance) bool {
	return i.Index == o.Index && o.goesOnAs(i.Instance) &&
		len(i.Instance.Flows) == len(o.Instance.Flows)
}

// tidy ends instances of an earlier configuration, or of one that was refused, which are not
// to run.
func (m *mergeRoom) tidy(refused *prepared[*mergeRole]) {
	if m.runs == nil {
		return
	}
	ended := slices.Clone(m.runs.ended)
	if refused != nil && refused.begun && refused.next != nil && refused.sameProgram() {
		ended = refused.next.numbers()
	}
	for _, k := range ended {
		if slices.ContainsFunc(m.runs.instances,
			func(i mergeInstance) bool { return i.Index == k.Index }) {
			continue
		}
		if err := m.runs.program.DeleteInstance(k.Index); err != nil {
			m.options.Log.Warn("a protected flow that is no longer configured is still told apart",
				"sid", k.Instance.SID, "error", err)
		}
	}
	m.runs.ended = nil
}
