package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/te/frer"
)

// MergeInterface is an interface that the merge program is attached to.
type MergeInterface struct {
	Name string
	Mode Mode
}

// MergeSID is a SID with behaviour End.MERGE.
type MergeSID struct {
	Prefix netip.Prefix // what is behind it is the argument: flow and number of the SID form
	// of decapsulated packets, for a rule (ip rule fwmark) that leads them to a table; 0: the main
	// table
	Mark uint32
}

// MergeConfig is what is compiled into the merge programs: a change loads them anew.
type MergeConfig struct {
	Domain                // without secret and source
	SIDs       []MergeSID // at most 16
	Interfaces []MergeInterface
}

// Limits of the merge program.
const (
	MaxInstances = 256        // of a node
	MaxPaths     = membersMax // of an instance
)

// Instance is a protected flow at its egress: what tells the copies of its packets.
type Instance struct {
	SID   netip.Prefix  // to which they come
	Flows []uint32      // flow ids, one per path, in the order in which paths are counted
	Rules frer.Settings // history, sequence space, reset
	Order bool          // packets that pass are put in order, while an Order runs
}

// Merge is the merge programs with their tables. Its methods are for one goroutine.
type Merge struct {
	*collection
	config   MergeConfig
	sids     []MergeSID // longest prefix first: their numbers
	programs map[string]*ebpf.Program
}

// mergeState is taken over from the predecessor: counters, and what the instances remember.
var mergeState = []string{"drops", "outcomes", "instances", "recoveries", "histories",
	"instance_counters"}

var _ = objectsOf("merge", loadEgress)

// OpenMerge loads the merge programs and empty tables, beside whatever is running. Dir is the
// instance's directory on the bpf file system. Set the instances, then Commit.
func OpenMerge(dir string, config MergeConfig) (*Merge, error) {
	c, err := newCollection(dir, loadEgress)
	if err != nil {
		return nil, err
	}
	m := &Merge{collection: c, config: config}
	if err := m.open(); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *Merge) open() error {
	m.sids = slices.SortedStableFunc(slices.Values(m.config.SIDs),
		func(a, b MergeSID) int { return b.Prefix.Bits() - a.Prefix.Bits() })
	spec, err := m.spec()
	if err != nil {
		return err
	}
	m.programs, err = m.load(spec, mergeState...)
	return err
}

// spec is the object with this egress's settings.
func (m *Merge) spec() (*ebpf.CollectionSpec, error) {
	spec, err := loadEgress()
	if err != nil {
		return nil, err
	}
	settings, err := m.settings()
	if err != nil {
		return nil, err
	}
	return spec, spec.Variables["settings"].Set(settings)
}

func (m *Merge) settings() (mergeSettings, error) {
	s := mergeSettings{Domain: m.config.Domain.settings()}
	if len(m.sids) > mergeSIDs {
		return s, fmt.Errorf("the node has %d SIDs with End.MERGE; at most %d can be used",
			len(m.sids), mergeSIDs)
	}
	for i, sid := range m.sids {
		s.SIDs[i] = mergeSID{Prefix: prefixOf(sid.Prefix), Mark: sid.Mark, Used: true}
	}
	return s, nil
}

// SetInstance makes the instance of index eliminate the copies that come by its paths. What it
// remembers is kept if its settings stay as they are. An earlier instance of this index must have
// been deleted if its flows were others.
func (m *Merge) SetInstance(index uint32, i Instance) error {
	sid := slices.IndexFunc(m.sids, func(s MergeSID) bool { return s.Prefix == i.SID })
	if sid < 0 {
		return fmt.Errorf("set instance %d: %s is no SID with End.MERGE of this node", index, i.SID)
	}
	if len(i.Flows) == 0 || len(i.Flows) > MaxPaths {
		return fmt.Errorf("set instance %d: %d paths; it can have 1 to %d", index, len(i.Flows),
			MaxPaths)
	}
	if err := i.Rules.Check(); err != nil {
		return fmt.Errorf("set instance %d: %w", index, err)
	}
	if err := m.prepare(index, i); err != nil {
		return fmt.Errorf("set instance %d: %w", index, err)
	}
	for path, flow := range i.Flows {
		key := memberKey{SID: uint32(sid), Flow: flow}
		if err := m.maps["members"].Put(key,
			member{Instance: index, Path: uint32(path)}); err != nil {
			return fmt.Errorf("set instance %d: flow %d: %w", index, flow, err)
		}
	}
	return nil
}

// prepare gives the instance its settings and a history, which is the one it has if that fits.
func (m *Merge) prepare(index uint32, i Instance) error {
	settings := recoverySettingsOf(i)
	var before recoverySettings
	if err := m.maps["instances"].Lookup(index, &before); err != nil {
		return err
	}
	if before != settings || !m.hasHistory(index, settings.Blocks) {
		history, err := ebpf.NewMap(&ebpf.MapSpec{
			Name: "history", Type: ebpf.Array, KeySize: 4, ValueSize: 8,
			MaxEntries: settings.Blocks, Flags: unix.BPF_F_INNER_MAP,
		})
		if err != nil {
			return err
		}
		defer history.Close()
		if err := errors.Join(m.maps["recoveries"].Put(index, recoverySlot{}),
			m.maps["histories"].Put(index, history)); err != nil {
			return err
		}
	}
	return m.maps["instances"].Put(index, settings)
}

func recoverySettingsOf(i Instance) recoverySettings {
	s := i.Rules
	return recoverySettings{
		ResetNs: uint64(s.Reset), History: uint32(s.History()), Blocks: uint32(s.Blocks()),
		Bits: uint32(s.Bits), Ordered: uint32(truth(i.Order)),
		RoundShift: uint32(s.RoundShift()), RoundMask: uint32(s.RoundMask()),
	}
}

// hasHistory reports whether the instance has a ring of so many blocks already.
func (m *Merge) hasHistory(index, blocks uint32) bool {
	var history *ebpf.Map
	if err := m.maps["histories"].Lookup(index, &history); err != nil || history == nil {
		return false
	}
	defer history.Close()
	return history.MaxEntries() == blocks
}

// DeleteInstance ends the instance of index, and forgets what it counted and remembered.
func (m *Merge) DeleteInstance(index uint32) error {
	var key memberKey
	var value member
	var failures []error
	var gone []memberKey
	for entries := m.maps["members"].Iterate(); entries.Next(&key, &value); {
		if value.Instance == index {
			gone = append(gone, key)
		}
	}
	for _, key := range gone {
		failures = append(failures, m.maps["members"].Delete(key))
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	if err := m.maps["histories"].Delete(index); err != nil &&
		!errors.Is(err, ebpf.ErrKeyNotExist) {
		failures = append(failures, err)
	}
	failures = append(failures,
		m.maps["recoveries"].Put(index, recoverySlot{}),
		m.maps["instance_counters"].Put(index, make([]instanceCounters, cpus)))
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("delete instance %d: %w", index, err)
	}
	return nil
}

// PathStats is what came by one path of an instance.
type PathStats struct {
	Packets uint64
	Bytes   uint64        // of inner packets
	First   uint64        // of the packets, those that came before their copies
	Silent  time.Duration // since the latest; negative: none has come
	// Of packets with timestamps: how many, and what their one-way delays add up to, with their
	// squares (in us^2), least and most. Between two machines they are as right as their clocks.
	Delays       uint64
	DelaySum     time.Duration
	DelaySquares float64
	DelayLeast   time.Duration
	DelayMost    time.Duration
}

// InstanceStats is what an instance counted since it was first set.
type InstanceStats struct {
	frer.Counters
	Contended uint64 // passed without a look, as other CPUs were at the same place all the time
	Paths     []PathStats
}

// Stats returns the counters of the instance of index, with so many paths.
func (m *Merge) Stats(index uint32, paths int) (InstanceStats, error) {
	total, err := sumPerCPU(m.maps["instance_counters"], index, addInstance)
	if err != nil {
		return InstanceStats{}, fmt.Errorf("read counters of instance %d: %w", index, err)
	}
	now, err := monotonic()
	if err != nil {
		return InstanceStats{}, err
	}
	r := total.Recovery
	stats := InstanceStats{
		Counters: frer.Counters{
			Passed: r.Passed, Duplicate: r.Duplicate, Rogue: r.Rogue, OldEpoch: r.OldEpoch,
			OutOfOrder: r.OutOfOrder, Expected: r.Expected, Resets: r.Resets,
		},
		Contended: r.Contended,
	}
	for _, p := range total.Paths[:min(paths, MaxPaths)] {
		stats.Paths = append(stats.Paths, pathStats(p, now))
	}
	return stats, nil
}

func pathStats(p pathCounters, now uint64) PathStats {
	s := PathStats{
		Packets: p.Packets, Bytes: p.Bytes, First: p.First, Silent: -1,
		Delays: p.Delays, DelaySum: time.Duration(p.DelaySum) * time.Microsecond,
		DelaySquares: float64(p.DelaySquares),
		DelayLeast:   time.Duration(p.DelayLeast) * time.Microsecond,
		DelayMost:    time.Duration(p.DelayMost) * time.Microsecond,
	}
	if p.Packets > 0 {
		s.Silent = time.Duration(now - p.SeenNs)
	}
	return s
}

func monotonic() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(now.Nano()), nil
}

func addInstance(total *instanceCounters, v instanceCounters) {
	addWords(&total.Recovery, v.Recovery)
	for i, p := range v.Paths {
		addPath(&total.Paths[i], p)
	}
}

func addPath(t *pathCounters, p pathCounters) {
	if p.Delays > 0 {
		if t.Delays == 0 || p.DelayLeast < t.DelayLeast {
			t.DelayLeast = p.DelayLeast
		}
		if t.Delays == 0 || p.DelayMost > t.DelayMost {
			t.DelayMost = p.DelayMost
		}
	}
	t.Packets += p.Packets
	t.Bytes += p.Bytes
	t.First += p.First
	t.SeenNs = max(t.SeenNs, p.SeenNs)
	t.DelaySum += p.DelaySum
	t.DelaySquares += p.DelaySquares
	t.Delays += p.Delays
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything.
// Interfaces that are no longer configured are released.
func (m *Merge) Commit() ([]Attachment, error) {
	marks := slices.ContainsFunc(m.sids, func(s MergeSID) bool { return s.Mark != 0 })
	var places []place
	for _, i := range m.config.Interfaces {
		if marks {
			places = append(places, place{name: "merge_mark", program: m.programs["merge_mark"],
				on: i.Name, kind: onArriving})
		}
		places = append(places, place{name: "merge", program: m.programs["merge"], on: i.Name,
			mode: i.Mode})
	}
	return m.commit(places)
}
