package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/packet/flow"
	"sextant/te/srpolicy"
)

// flowLists is how many segment lists flows of a head-end can have, shared ones counted once.
const flowLists = 4096

// listRest is how long a segment list that no flow has any more is left as it is: a packet that is
// on its way through the program may have looked it up.
const listRest = 100 * time.Millisecond

// sharedLists are the segment lists of flows. Which are in use is counted by looking at all flows,
// when places run out: the kernel evicts flows without telling.
type sharedLists struct {
	places  map[string]uint32 // by the octets of their headers
	headers []srpolicy.Header // by place; without octets: free
	freed   []time.Time       // by place
	next    uint32            // no place from here on was ever used
}

// ErrNoFlowPaths says that a head-end was opened without a table of flows.
var ErrNoFlowPaths = errors.New("this head-end has no table of flows; " +
	"give it one with headend.flows")

// flowState is taken over from the predecessor: flows keep their paths, and the filter of the
// predecessor finds no list in a place that this head-end gives to another one.
var flowState = []string{"flow_paths", "flow_lists", "flow_traffic", "flow_places", "flow_groups",
	"flow_choices", "flow_ways"}

// sizeFlows gives the maps of flows their sizes.
func (h *Headend) sizeFlows(spec *ebpf.CollectionSpec) error {
	if h.config.Flows == 0 {
		return nil
	}
	spec.Maps["flow_paths"].MaxEntries = uint32(h.config.Flows)
	spec.Maps["flow_lists"].MaxEntries = flowLists
	spec.Maps["flow_traffic"].MaxEntries = flowLists
	spec.Maps["flow_places"].MaxEntries = flowLists
	if h.config.Spread > 0 {
		spec.Maps["flow_groups"].MaxEntries = FlowGroups
		spec.Maps["flow_choices"].MaxEntries = uint32(h.config.Spread)
		if err := spec.Variables["has_flow_groups"].Set(true); err != nil {
			return err
		}
	}
	return spec.Variables["has_flow_paths"].Set(true)
}

// resumeFlows learns which lists the maps hold that an earlier agent left.
func (h *Headend) resumeFlows() error {
	if h.config.Flows == 0 {
		return nil
	}
	if err := h.hideLists(); err != nil {
		return err
	}
	h.flows = sharedLists{places: map[string]uint32{},
		headers: make([]srpolicy.Header, flowLists), freed: make([]time.Time, flowLists)}
	for place := range uint32(flowLists) {
		var l list
		if err := h.maps["flow_lists"].Lookup(place, &l); err != nil {
			return fmt.Errorf("read segment lists of flows: %w", err)
		}
		if l.Words == 0 {
			continue
		}
		header := srpolicy.Header{Octets: l.Header[:int(l.Words)*numberWord], NextAt: int(l.Next)}
		h.flows.places[string(header.Octets)] = place
		h.flows.headers[place] = header
		h.flows.next = place + 1
		h.hops.of[header.Destination()] = l.Hop
		h.hops.most = max(h.hops.most, l.Hop)
	}
	return nil
}

// SetFlow gives a flow a segment list, for so long, in one step: a packet takes the old way or the
// new one. If the table is full, the flow that rested longest loses its own.
func (h *Headend) SetFlow(t flow.Tuple, header srpolicy.Header, during time.Duration) error {
	if h.config.Flows == 0 {
		return fmt.Errorf("set the path of flow %s: %w", flowName(t), ErrNoFlowPaths)
	}
	if header.Redundancy != srpolicy.None {
		return fmt.Errorf("set the path of flow %s: its list has numbers, which flows do not "+
			"take; use a policy", flowName(t))
	}
	place, err := h.placeList(header)
	if err == nil {
		err = h.showList(place)
	}
	if err != nil {
		return fmt.Errorf("set the path of flow %s: %w", flowName(t), err)
	}
	now, err := coarseClock()
	if err != nil {
		return err
	}
	path := flowPath{Until: now + uint64(max(0, during)), List: place}
	if err := h.maps["flow_paths"].Put(flowKeyOf(t), path); err != nil {
		return fmt.Errorf("set the path of flow %s: %w", flowName(t), err)
	}
	return nil
}

// RemoveFlow lets the rules choose for a flow again.
func (h *Headend) RemoveFlow(t flow.Tuple) error {
	if h.config.Flows == 0 {
		return fmt.Errorf("remove the path of flow %s: %w", flowName(t), ErrNoFlowPaths)
	}
	err := h.maps["flow_paths"].Delete(flowKeyOf(t))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("remove the path of flow %s: %w", flowName(t), err)
	}
	return nil
}

// FlowPath is a flow with a path of its own.
type FlowPath struct {
	Flow   flow.Tuple
	Header srpolicy.Header
	Left   time.Duration // until its time is over; not above 0: it is
}

// Flows returns the flows that have paths of their own.
func (h *Headend) Flows() ([]FlowPath, error) {
	if h.config.Flows == 0 {
		return nil, nil
	}
	now, err := coarseClock()
	if err != nil {
		return nil, err
	}
	var flows []FlowPath
	err = h.eachFlow(func(key flowKey, path flowPath) {
		flows = append(flows, FlowPath{Flow: key.tuple(), Header: h.flows.headers[path.List],
			Left: time.Duration(path.Until - now)})
	})
	if errors.Is(err, ebpf.ErrIterationAborted) { // it changes: this is a part
		err = nil
	}
	return flows, err
}

func (h *Headend) eachFlow(each func(flowKey, flowPath)) error {
	var key flowKey
	var path flowPath
	entries := h.maps["flow_paths"].Iterate()
	for entries.Next(&key, &path) {
		if path.List < flowLists {
			each(key, path)
		}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("read the paths of flows: %w", err)
	}
	return nil
}

// placeList finds or makes a place for a list.
func (h *Headend) placeList(header srpolicy.Header) (uint32, error) {
	if place, known := h.flows.places[string(header.Octets)]; known {
		return place, nil
	}
	place, err := h.freePlace()
	if err != nil {
		return 0, err
	}
	old := h.flows.headers[place]
	h.flows.headers[place] = header
	if h.hops.give(h.flowTable()) {
		if err := h.ForgetNextHops(); err != nil {
			h.flows.headers[place] = old
			return 0, err
		}
	}
	if err := h.maps["flow_lists"].Put(place, listOf(header, h.hops.number)); err != nil {
		h.flows.headers[place] = old
		return 0, err
	}
	h.flows.places[string(header.Octets)] = place
	h.flows.next = max(h.flows.next, place+1)
	return place, nil
}

// freePlace is a place that no flow uses.
func (h *Headend) freePlace() (uint32, error) {
	if h.flows.next < flowLists {
		return h.flows.next, nil
	}
	if place, ok := h.rested(); ok {
		return place, nil
	}
	if err := h.sweep(); err != nil {
		return 0, err
	}
	if place, ok := h.rested(); ok {
		return place, nil
	}
	return 0, fmt.Errorf("all %d segment lists are in use", flowLists)
}

// rested is a place that has been free for long enough.
func (h *Headend) rested() (uint32, bool) {
	for place, header := range h.flows.headers {
		if header.Octets == nil && time.Since(h.flows.freed[place]) >= listRest {
			return uint32(place), true
		}
	}
	return 0, false
}

// sweep removes flows whose time is over, and frees the places of lists that none has, and that
// none has got from a change that was under way.
func (h *Headend) sweep() error {
	before, err := h.usedLists()
	if err != nil {
		return err
	}
	for place, header := range h.flows.headers {
		if header.Octets != nil && !before[uint32(place)] {
			if err := h.hideList(uint32(place)); err != nil {
				return err
			}
		}
	}
	now := time.Now()
	time.Sleep(listRest)
	after, err := h.usedLists()
	if err != nil {
		return err
	}
	for place, header := range h.flows.headers {
		if header.Octets != nil && !before[uint32(place)] && !after[uint32(place)] {
			delete(h.flows.places, string(header.Octets))
			h.flows.headers[place], h.flows.freed[place] = srpolicy.Header{}, now
		}
	}
	return nil
}

// usedLists returns the places of lists that flows and groups have, and removes those whose time is
// over.
func (h *Headend) usedLists() (map[uint32]bool, error) {
	now, err := coarseClock()
	if err != nil {
		return nil, err
	}
	used := map[uint32]bool{}
	var over []flowKey
	if err := h.eachFlow(func(key flowKey, path flowPath) {
		if path.Until > now {
			used[path.List] = true
		} else {
			over = append(over, key)
		}
	}); err != nil {
		return nil, err
	}
	if err := h.sweepGroups(now, used); err != nil {
		return nil, err
	}
	for _, key := range over {
		err := h.maps["flow_paths"].Delete(key)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil, fmt.Errorf("remove flows whose time is over: %w", err)
		}
	}
	return used, nil
}

// flowTable is the lists of flows as an entry of a table, for the numbers of their next hops.
func (h *Headend) flowTable() srpolicy.Table {
	var entry srpolicy.Entry
	for _, header := range h.flows.headers {
		if header.Octets != nil {
			entry.Lists = append(entry.Lists, header)
		}
	}
	return srpolicy.Table{entry}
}

// coarseClock is that of the program, bpf_ktime_get_coarse_ns.
func coarseClock() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(now.Nano()), nil
}

func flowName(t flow.Tuple) string {
	return fmt.Sprintf("%s to %s", netip.AddrPortFrom(t.Src, t.SrcPort),
		netip.AddrPortFrom(t.Dst, t.DstPort))
}
