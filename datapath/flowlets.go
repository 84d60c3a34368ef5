package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/datapath/model"
)

// FlowletsConfig is what the programs of flowlets are loaded for: a change loads them anew.
type FlowletsConfig struct {
	Interfaces []string   // by which packets leave, and answers arrive
	Source     netip.Addr // of outer headers
	config.FlowletsOuter
	Gap    time.Duration // without a packet that ends a flowlet, at least
	Choice model.FlowletChoice
	Flows  int // that are known at a time
}

// Bounds of flowlets.
const (
	flowletGroupPaths = len(flowletGroup{}.Path) // of a group
	flowletGroupsMax  = 256                      // FLOWLET_GROUPS_MAX
	flowletPathsMax   = 1024                     // FLOWLET_PATHS
)

// FlowletCounters are packets by what became of them.
type FlowletCounters struct {
	Sent     uint64 // over a path
	TooLong  uint64 // for the path: they took the kernel's route
	Pathless uint64 // all paths are down: they took the kernel's route
}

// FlowletTraffic is what the programs know of a path.
type FlowletTraffic struct {
	Packets  uint64
	Bytes    uint64
	Moves    uint64 // flows that came from another path
	Left     uint64 // flows that left as nothing was heard
	UnderWay uint64 // octets that were sent and not acknowledged
	// Silent is how long nothing was heard, with octets under way; 0: it is heard.
	Silent    time.Duration
	RoundTrip time.Duration
	Lost      float64 // share of segments that came again
}

// Flowlets is the programs that send a host's flows over several paths, with their tables. Its
// methods are for one goroutine.
type Flowlets struct {
	*collection
	config       FlowletsConfig
	programs     map[string]*ebpf.Program
	paths        map[netip.Addr]uint32 // numbers
	groups       map[flowletGroup]uint32
	destinations map[flowletDestination]uint32
	found        map[netip.Addr]model.FlowletPath
}

// flowletState is taken over from the predecessor: counters, what is measured of paths, and flows
// with the paths that they are on, if as many can be known.
var flowletState = []string{"flowlet_outcomes", "flowlet_measures", "flowlet_flows"}

var _ = objectsOf("flowlets", loadFlowlet)

// OpenFlowlets loads the programs beside whatever is running, without paths. Dir is a directory on
// the bpf file system.
func OpenFlowlets(dir string, config FlowletsConfig) (*Flowlets, error) {
	c, err := newCollection(dir, loadFlowlet)
	if err != nil {
		return nil, err
	}
	f := &Flowlets{collection: c, config: config}
	if err := f.open(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *Flowlets) open() error {
	spec, err := f.spec()
	if err != nil {
		return err
	}
	if f.programs, err = f.load(spec, flowletState...); err != nil {
		return err
	}
	return f.resumePaths(spec.Maps["flowlet_paths"])
}

// resumePaths learns the numbers of paths that an earlier agent gave: by these, flows and what is
// measured are known.
func (f *Flowlets) resumePaths(shape *ebpf.MapSpec) error {
	table := f.pinned(shape, "flowlet_paths")
	if table == nil {
		return nil
	}
	defer table.Close()
	f.paths, f.found = map[netip.Addr]uint32{}, map[netip.Addr]model.FlowletPath{}
	for number := uint32(1); number < flowletPathsMax; number++ {
		var l flowletPath
		if err := table.Lookup(number, &l); err != nil {
			return fmt.Errorf("read the paths of flowlets: %w", err)
		}
		if l.MTU == 0 { // none, or one that has left
			continue
		}
		p := model.FlowletPath{SID: flowletAddress(l.SID), Down: l.Down != 0,
			Interface: l.Interface, MTU: int(l.MTU), Delay: time.Duration(l.Delay)}
		f.paths[p.SID], f.found[p.SID] = number, p
	}
	return nil
}

// Found are the paths of the earlier agent, as it knew them when its programs were last told.
func (f *Flowlets) Found() map[netip.Addr]model.FlowletPath { return f.found }

// spec is the object with the settings.
func (f *Flowlets) spec() (*ebpf.CollectionSpec, error) {
	spec, err := loadFlowlet()
	if err != nil {
		return nil, err
	}
	settings := flowletSettings{
		Source: flowletWords(f.config.Source), Gap: uint64(f.config.Gap),
		Choice: uint32(f.config.Choice),
	}
	setByName(&settings, f.config.FlowletsOuter)
	spec.Maps["flowlet_flows"].MaxEntries = uint32(f.config.Flows)
	return spec, spec.Variables["settings"].Set(settings)
}

// flowletWords are an address as the programs know it, IPv4 as ::ffff:a.b.c.d.
func flowletWords(a netip.Addr) [2]uint64 {
	b := a.As16()
	return [2]uint64{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}

// flowletAddress is the opposite of flowletWords, for IPv6.
func flowletAddress(words [2]uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], words[0])
	binary.BigEndian.PutUint64(b[8:], words[1])
	return netip.AddrFrom16(b)
}

// SetGroups makes these the groups of paths. Paths that stay keep what is known of them, and flows
// that are on them stay. An error of the input changes nothing.
func (f *Flowlets) SetGroups(groups []model.FlowletGroup) error {
	numbers, err := f.placePaths(groups)
	if err != nil {
		return err
	}
	layouts := make([]flowletGroup, len(groups))
	for i, g := range groups {
		layouts[i] = flowletGroup{Paths: uint32(len(g.Paths)), MTU: g.MTU()}
		for j, p := range g.Paths {
			layouts[i].Path[j] = numbers[p.SID]
		}
	}
	places, err := placed(f.groups, layouts, flowletGroupsMax, f.maps["flowlet_groups"])
	if err != nil {
		return fmt.Errorf("set groups of paths: %w; join those of the same paths", err)
	}
	destinations := map[flowletDestination]uint32{}
	for i, g := range groups {
		for _, to := range g.Destinations {
			key := flowletDestination{uint32(to.Bits()), to.Masked().Addr().As16()}
			if to.Addr().Is4() {
				key.Bits += 96
			}
			destinations[key] = places[layouts[i]]
		}
	}
	if err := replace(f.maps["flowlet_destinations"], f.destinations, destinations); err != nil {
		return fmt.Errorf("set destinations of paths: %w", err)
	}
	if err := f.leavePaths(numbers); err != nil {
		return err
	}
	f.paths, f.groups, f.destinations = numbers, places, destinations
	return nil
}

// placePaths writes the paths, and returns their numbers.
func (f *Flowlets) placePaths(groups []model.FlowletGroup) (map[netip.Addr]uint32, error) {
	var sids []netip.Addr
	paths := map[netip.Addr]model.FlowletPath{}
	for _, g := range groups {
		if len(g.Paths) > flowletGroupPaths {
			return nil, fmt.Errorf("%d paths of one group: at most %d can be used", len(g.Paths),
				flowletGroupPaths)
		}
		for _, p := range g.Paths {
			sids, paths[p.SID] = append(sids, p.SID), p
		}
	}
	numbers, err := placed(f.paths, sids, flowletPathsMax, pathBlank{f.maps})
	if err != nil {
		return nil, fmt.Errorf("set paths: %w", err)
	}
	for sid, number := range numbers {
		if err := f.maps["flowlet_paths"].Put(number, flowletPathOf(paths[sid])); err != nil {
			return nil, fmt.Errorf("set path %s: %w", sid, err)
		}
	}
	return numbers, nil
}

// leavePaths marks the numbers of paths that left as free, for resumePaths. The SIDs stay: a packet
// that is on its way through the program may have looked one up.
func (f *Flowlets) leavePaths(numbers map[netip.Addr]uint32) error {
	for sid, number := range f.paths {
		if _, stays := numbers[sid]; stays {
			continue
		}
		left := flowletPathOf(model.FlowletPath{SID: sid})
		if err := f.maps["flowlet_paths"].Put(number, left); err != nil {
			return fmt.Errorf("forget path %s: %w", sid, err)
		}
	}
	return nil
}

// pathBlank forgets what was measured of the path whose number another one gets.
type pathBlank struct{ maps map[string]*ebpf.Map }

// Put is for placed.
func (b pathBlank) Put(number, _ any) error {
	return b.maps["flowlet_measures"].Put(number, flowletMeasure{})
}

// flowletPathOf is how the programs know a path.
func flowletPathOf(p model.FlowletPath) flowletPath {
	l := flowletPath{SID: flowletWords(p.SID), Delay: uint64(p.Delay), Interface: p.Interface,
		MTU: uint32(min(p.MTU, math.MaxUint16))}
	if p.Down {
		l.Down = 1
	}
	return l
}

// Commit attaches the programs, replacing what an earlier agent attached, and pins everything.
func (f *Flowlets) Commit() ([]Attachment, error) {
	var places []place
	for _, name := range f.config.Interfaces {
		places = append(places,
			place{name: "flowlet_send", program: f.programs["flowlet_send"], on: name,
				kind: onLeaving},
			place{name: "flowlet_heard", program: f.programs["flowlet_heard"], on: name,
				kind: onArriving})
	}
	return f.commit(places)
}

// Counters returns what became of packets.
func (f *Flowlets) Counters() (c FlowletCounters, err error) {
	var failed error
	for i, n := range []*uint64{&c.Sent, &c.TooLong, &c.Pathless} {
		*n, err = sumPerCPU(f.maps["flowlet_outcomes"], uint32(i), addWords[uint64])
		failed = errors.Join(failed, err)
	}
	return c, failed
}

// Traffic returns what is known of a path.
func (f *Flowlets) Traffic(sid netip.Addr) (t FlowletTraffic, err error) {
	number, ok := f.paths[sid]
	if !ok {
		return t, fmt.Errorf("there is no path %s", sid)
	}
	var m flowletMeasure
	if err := f.maps["flowlet_measures"].Lookup(number, &m); err != nil {
		return t, fmt.Errorf("read what is known of path %s: %w", sid, err)
	}
	t = FlowletTraffic{Packets: m.Packets, Bytes: m.Bytes, Moves: m.Moves, Left: m.Left,
		UnderWay: uint64(max(m.Octets, 0)), RoundTrip: time.Duration(m.RoundTrip),
		Lost: float64(m.Lost) / model.FlowletLost}
	if m.Silent != 0 {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return t, fmt.Errorf("read the clock of the programs: %w", err)
		}
		t.Silent = time.Duration(max(now.Nano()-int64(m.Silent), 0))
	}
	return t, nil
}
