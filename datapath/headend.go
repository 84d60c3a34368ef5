package datapath

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"sextant/packet/lists"
	"sextant/te/srpolicy"
)

// HeadendInterface is an interface that traffic for SR policies comes in by.
type HeadendInterface struct {
	Name string
	Side Side
	Mode Mode
}

// HeadendConfig is what is compiled into the head-end's programs: a change loads them anew.
type HeadendConfig struct {
	Domain
	HopLimit uint8 // of the outer headers
	// of the numbers, when no earlier ones are there to continue: other than in the sender's last
	// life
	Epoch uint8
	// with which policies go on in that epoch, by index, see DetachHeadend; others begin with 0
	Numbers    map[uint32]uint64
	AnswerRate int                // as in [EdgeConfig]
	Flows      int                // how many can have paths of their own; 0: none
	Spread     int                // how many remember what they chose of a group; 0: no groups
	Interfaces []HeadendInterface // by which forwarded traffic comes in
	// interfaces with another role's XDP program, or none, on which packets may be sent
	Uplinks []string
	// interfaces by which packets of this machine itself leave that policies are to choose from
	Local []string
}

// Headend is the head-end's programs with their tables. Its methods are for one goroutine.
type Headend struct {
	*collection
	config   HeadendConfig
	spec     *ebpf.CollectionSpec
	loop     loop
	hasMade  bool // the loop was not there before
	programs map[Side]*ebpf.Program
	divert   *ebpf.Program
	change   *ebpf.Program // filter of sockets to which changes of paths come; nil: see noChange
	noChange error         // why the kernel does not take that filter
	hops     hopNumbers
	flows    sharedLists
	tables   uint32 // how many were set: the number of the last one
	epoch    uint8
}

// headendState is taken over from the predecessor: counters and numbers, which run on.
var headendState = []string{"drops", "outcomes", "sequences", "policy_traffic"}

// loopSource is the Ethernet address from which the kernel gets what comes out of the loop.
var loopSource = net.HardwareAddr{2, 0x53, 0x52, 0x76, 0x36, 1}

var _ = objectsOf("headend", loadHeadend)

// OpenHeadend loads the head-end's programs and an empty table, beside whatever is running. It
// makes the loop, a pair of interfaces of its own. Dir is the instance's directory on the bpf file
// system. Set the table, then Commit.
func OpenHeadend(dir string, config HeadendConfig) (*Headend, error) {
	c, err := newCollection(dir, loadHeadend)
	if err != nil {
		return nil, err
	}
	h := &Headend{collection: c, config: config, programs: map[Side]*ebpf.Program{},
		hops: hopNumbers{of: map[netip.Addr]uint16{}}}
	if err := h.open(); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *Headend) open() (err error) {
	for _, name := range h.config.Local {
		if err := checkLocal(name); err != nil {
			return err
		}
	}
	if h.spec, err = loadHeadend(); err != nil {
		return err
	}
	if _, err := net.InterfaceByName(loopOuter); err != nil {
		h.hasMade = true
	}
	if h.loop, err = openLoop(loopOuter); err != nil {
		return err
	}
	if err := h.loadSide(
		Internal); err != nil { // what comes out of the loop was judged when it came in
		return err
	}
	for _, i := range h.config.Interfaces {
		if err := h.loadSide(i.Side); err != nil {
			return err
		}
	}
	for n := 1; n <= srpolicy.MaxLists; n++ {
		if err := h.setBroadcast(n); err != nil {
			return fmt.Errorf("prepare %d copies: %w", n, err)
		}
	}
	if err := h.resumeFlows(); err != nil {
		return err
	}
	if err := h.loadChange(); err != nil {
		return err
	}
	return h.openEpoch()
}

func (h *Headend) loadSide(side Side) error {
	if h.programs[side] != nil {
		return nil
	}
	spec, err := h.sideSpec(side)
	if err != nil {
		return err
	}
	delete(spec.Programs, flowChange) // see loadChange
	state := headendState
	if h.config.Flows > 0 {
		state = slices.Concat(headendState, flowState)
	}
	programs, err := h.load(spec, state...)
	if err != nil {
		return err
	}
	h.programs[side] = programs["headend"]
	if side == Internal {
		h.divert = programs["headend_divert"]
	}
	return nil
}

// sideSpec is the object with this head-end's settings, for interfaces of a side.
func (h *Headend) sideSpec(side Side) (*ebpf.CollectionSpec, error) {
	spec, err := loadHeadend()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables["settings"].Set(h.settings(side)); err != nil {
		return nil, err
	}
	return spec, errors.Join(setJiffies(spec),
		setAnswerRate(spec, h.config.AnswerRate), h.sizeFlows(spec))
}

func (h *Headend) settings(side Side) headendSettings {
	s := headendSettings{
		Domain:    h.config.Domain.settings(),
		LoopInner: uint32(h.loop.inner), LoopOuter: uint32(h.loop.outer), Side: uint8(side),
	}
	copy(s.LoopAddresses[:], h.loop.address)
	copy(s.LoopAddresses[len(h.loop.address):], loopSource)
	return s
}

// setBroadcast makes the map by which a packet is sent into the loop n times.
func (h *Headend) setBroadcast(n int) error {
	inner, err := ebpf.NewMap(h.spec.Maps["broadcasts"].InnerMap)
	if err != nil {
		return err
	}
	defer inner.Close()
	for i := range n {
		if err := inner.Put(uint32(i), uint32(h.loop.outer)); err != nil {
			return err
		}
	}
	return h.maps["broadcasts"].Put(uint32(n), inner)
}

// openEpoch finds the epoch of the numbers that run on, or begins one.
func (h *Headend) openEpoch() error {
	var first sequence
	if err := h.maps["sequences"].Lookup(uint32(0), &first); err != nil {
		return fmt.Errorf("read sequence numbers: %w", err)
	}
	if first.Epoch == 0 {
		first.Epoch, first.Next = uint32(h.config.Epoch)+1, h.config.Numbers[0]
		for index, next := range h.config.Numbers {
			if err := h.maps["sequences"].Put(index, sequence{Next: next}); err != nil {
				return fmt.Errorf("continue the sequence of policy %d: %w", index, err)
			}
		}
		if err := h.maps["sequences"].Put(uint32(0), first); err != nil {
			return fmt.Errorf("begin sequence numbers: %w", err)
		}
	}
	h.epoch = uint8(first.Epoch - 1)
	return nil
}

// HasHeadend reports whether a head-end is loaded in the directory.
func HasHeadend(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "sequences"))
	return err == nil
}

// DetachHeadend detaches the programs of the head-end of the directory, and returns the number that
// each policy would have given next, by index: nothing is numbered any more. Unload is to follow.
// It returns none if no head-end is loaded there.
func DetachHeadend(dir string) (map[uint32]uint64, error) {
	sequences, err := ebpf.LoadPinnedMap(filepath.Join(dir, "sequences"), nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read sequence numbers of %s: %w", dir, err)
	}
	defer sequences.Close()
	if err := errors.Join(removeFilters(dir), releaseOthers(dir, nil)); err != nil {
		return nil, err
	}
	numbers := map[uint32]uint64{}
	for index := range sequences.MaxEntries() {
		var s sequence
		if err := sequences.Lookup(index, &s); err != nil {
			return nil, fmt.Errorf("read sequence of policy %d: %w", index, err)
		}
		if s.Next > 0 {
			numbers[index] = s.Next
		}
	}
	return numbers, nil
}

// Source returns what steer.Compile has to put into the outer headers.
func (h *Headend) Source() srpolicy.Source {
	return srpolicy.Source{Addr: h.config.Source, HopLimit: h.config.HopLimit, Epoch: h.epoch}
}

// SetTable replaces all rules, policies and segment lists in one step: a packet sees the old table
// or the new one, see rule_choose. A copy that comes out of the loop then is another packet.
func (h *Headend) SetTable(t srpolicy.Table) error {
	if len(t) > srpolicy.MaxRules {
		return fmt.Errorf("set steering table: %d rules; at most %d fit", len(t), srpolicy.MaxRules)
	}
	rules, err := ebpf.NewMap(h.spec.Maps["steering"].InnerMap)
	if err != nil {
		return fmt.Errorf("set steering table: %w", err)
	}
	defer rules.Close()
	all := slices.Concat(t, h.flowTable())
	if h.hops.give(all) {
		if err := h.ForgetNextHops(); err != nil {
			return fmt.Errorf("set steering table: %w", err)
		}
	}
	h.tables++
	for i, entry := range t {
		rule := ruleOf(entry, h.hops.number)
		rule.Table = h.tables
		if err := rules.Put(uint32(i), rule); err != nil {
			return fmt.Errorf("set rule %d: %w", i+1, err)
		}
	}
	if err := h.maps["steering"].Put(uint32(0), rules); err != nil {
		return fmt.Errorf("set steering table: %w", err)
	}
	h.hops.keep(all)
	return nil
}

// ListTraffic returns what was sent along each list of the policy of index, in the order of its
// active path.
func (h *Headend) ListTraffic(index uint32) ([]Traffic, error) {
	total, err := listTraffic(h.maps["policy_traffic"], index)
	return total.Lists[:], err
}

func listTraffic(traffic *ebpf.Map, policy uint32) (policyTraffic, error) {
	total, err := sumPerCPU(traffic, policy, addWords[policyTraffic])
	if err != nil {
		return total, fmt.Errorf("read what policy %d has counted: %w", policy, err)
	}
	return total, nil
}

// Numbered returns how many packets of the policy of index were numbered.
func (h *Headend) Numbered(index uint32) (uint64, error) {
	var s sequence
	if err := h.maps["sequences"].Lookup(index, &s); err != nil {
		return 0, fmt.Errorf("read sequence of policy %d: %w", index, err)
	}
	return s.Next, nil
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything.
// Interfaces that are no longer configured are released.
func (h *Headend) Commit() ([]Attachment, error) {
	places := []place{{
		name: "headend", program: h.programs[Internal], on: loopInner, mode: Native, side: External,
		sends: true,
	}}
	for _, i := range h.config.Interfaces {
		places = append(places, place{
			name: "headend", program: h.programs[i.Side], on: i.Name, mode: i.Mode, side: i.Side,
			sends: true,
		})
	}
	for _, name := range h.config.Local {
		places = append(places, place{name: "headend_divert", program: h.divert, on: name,
			kind: onLeaving})
	}
	if err := h.FollowUplinks(); err != nil {
		return nil, err
	}
	return h.commit(places)
}

// FollowUplinks allows sending on interfaces that run no program of ours; one that was made anew
// has another number.
func (h *Headend) FollowUplinks() error {
	failures := lists.Map(h.config.Uplinks, h.followUplink)
	return errors.Join(failures...)
}

func (h *Headend) followUplink(name string) error {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("send on interface %s: no such interface here; ip link lists them", name)
	}
	var there uint32
	if h.maps["ports"].Lookup(uint32(device.Index), &there) == nil {
		return nil
	}
	if err := h.maps["ports"].Put(uint32(device.Index), uint32(device.Index)); err != nil {
		return fmt.Errorf("allow sending on interface %s: %w", name, err)
	}
	return nil
}

// HasLoop reports whether the loop is the one that the programs were loaded for.
func (h *Headend) HasLoop() bool { return h.loop.isThere(loopOuter) }

// RaiseLoop brings the loop up if an end was taken down, and reports whether one was.
func (h *Headend) RaiseLoop() (raised bool, err error) { return h.loop.raise(loopOuter) }

// Abandon releases a head-end that is not to run after all: the loop goes too, if it was made for
// it.
func (h *Headend) Abandon() error {
	h.close()
	if !h.hasMade {
		return nil
	}
	return removeLoop(loopOuter)
}

// EpochOf returns an epoch for a sender that begins at the time: the next one after 4 seconds.
func EpochOf(start time.Time) uint8 { return uint8(start.Unix() / 4) }
